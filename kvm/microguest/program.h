#pragma once

// Guest programs whose every instruction is known. Their code, and the numbers below, stand in
// programs_x86_64.S and programs_aarch64.S.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace vcpulse::kvm::microguest {

// What a vCPU that runs it is, by construction.
enum class Truth {
  kHalted,
  kSpinning,
  kProductive,
  kMixed,
  kWaiting,  // it does no work; whether it halts or spins depends on what KVM lets it do
};

std::string_view ToString(Truth truth);  // "halted", "spinning", "productive", "mixed", "waiting"

// How often a guest did what, as it counted itself.
struct Turns {
  uint64_t turns = 0;
  uint64_t looks = 0;  // fruitless ones, of a program that waits for another vCPU or the clock
  // In KVM_RUN, on the host's clock: what KVM does there and a vCPU that waits for its CPU are in
  // it.
  int64_t inside_ns = 0;
};

struct Program {
  std::string_view name;  // stable, such as "loop"
  std::string_view what;  // for people
  Truth truth = Truth::kProductive;
  size_t vcpus = 1;            // that must run it at a time; more wait for each other
  bool wakes = false;          // out of its halts, by itself
  const void* code = nullptr;  // in this process; see Machine

  // Whether the following are known: not where KVM may skip an instruction.
  bool CountsAreKnown() const;
  // Instructions and branches that so many turns retire, from the program's first instruction to
  // the one that leaves the guest, which does not count.
  uint64_t Instructions(const Turns& turns) const;
  uint64_t Branches(const Turns& turns) const;
};

// All programs that this CPU can run; none where there is no code for its architecture.
std::span<const Program> Programs();

// The program of this name, or null.
const Program* FindProgram(std::string_view name);

// The code of all programs, to be copied into a guest as it is: it holds no address.
std::span<const std::byte> AllCode();

// Where the first instruction of a program stands in AllCode(), bytes.
size_t EntryOf(const Program& program);

// Likewise the handler of interrupts (x86).
size_t InterruptEntry();

// Bits of the clock at which the program "phases" spins: of the TSC, or of CNTVCT. Half of the
// time, in short parts: of 0.35 ms at a TSC of 3 GHz.
uint64_t PhaseBits();

}  // namespace vcpulse::kvm::microguest
