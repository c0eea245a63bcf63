#include "kvm/microguest/program.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <array>

namespace vcpulse::kvm::microguest {
namespace {

// Stands before the code of each program: PROGRAM of programs_*.S.
struct Header {
  uint32_t turn;
  uint32_t turn_branches;
  uint32_t look;
  uint32_t look_branches;
  uint32_t once;
  std::array<uint32_t, 3> unused;
};
static_assert(sizeof(Header) == 32);

const Header& HeaderOf(const Program& program) { return *static_cast<const Header*>(program.code); }

}  // namespace
}  // namespace vcpulse::kvm::microguest

#if defined(__x86_64__) || defined(__aarch64__)

extern "C" {
extern const std::byte vcpulse_guest_begin[];
extern const std::byte vcpulse_guest_end[];
extern const std::byte vcpulse_guest_loop[];
extern const std::byte vcpulse_guest_alu[];
extern const std::byte vcpulse_guest_branchy[];
extern const std::byte vcpulse_guest_chase[];
extern const std::byte vcpulse_guest_divide[];
extern const std::byte vcpulse_guest_copy[];
extern const std::byte vcpulse_guest_hash[];
extern const std::byte vcpulse_guest_multiply[];
extern const std::byte vcpulse_guest_vector[];
extern const std::byte vcpulse_guest_pause[];
extern const std::byte vcpulse_guest_poll[];
extern const std::byte vcpulse_guest_clock[];
extern const std::byte vcpulse_guest_deadline[];
extern const std::byte vcpulse_guest_phases[];
extern const std::byte vcpulse_guest_test_and_set[];
extern const std::byte vcpulse_guest_ticket[];
extern const std::byte vcpulse_guest_queue[];
extern const std::byte vcpulse_guest_wait[];
extern const std::byte vcpulse_guest_halt[];
extern const std::byte vcpulse_guest_tick[];
#if defined(__x86_64__)
extern const std::byte vcpulse_guest_interrupt[];
#endif
}

namespace vcpulse::kvm::microguest {
namespace {

#if defined(__x86_64__)
constexpr char kPauseWhat[] = "a spin of PAUSE";
constexpr char kWaitWhat[] = "waits of MWAIT";
constexpr char kHaltWhat[] = "HLT";
constexpr char kTickWhat[] = "HLT, woken each millisecond";
constexpr int kPhaseBit = 20;  // 0.35 ms at 3 GHz
const std::byte* const kInterrupt = vcpulse_guest_interrupt;
bool HasAtomics() { return true; }
#else
constexpr char kPauseWhat[] = "a spin of YIELD";
constexpr char kWaitWhat[] = "waits of WFE";
constexpr char kHaltWhat[] = "WFI";
constexpr char kTickWhat[] = "WFI, woken each millisecond";
constexpr int kPhaseBit = 14;                             // 0.7 ms at 24 MHz
const std::byte* const kInterrupt = vcpulse_guest_begin;  // there is none
// Arm CPUs before v8.1 lack SWP and LDADD.
bool HasAtomics() { return (getauxval(AT_HWCAP) & HWCAP_ATOMICS) != 0; }
#endif

constexpr size_t kLocks = 3;  // the last ones of kPrograms, which need atomic instructions

constexpr auto kPrograms = std::to_array<Program>({
    {.name = "loop",
     .what = "an empty loop",
     .truth = Truth::kSpinning,
     .code = vcpulse_guest_loop},
    {.name = "alu", .what = "additions that wait for each other", .code = vcpulse_guest_alu},
    {.name = "branchy", .what = "branches that cannot be predicted", .code = vcpulse_guest_branchy},
    {.name = "chase", .what = "a chain of pointers", .code = vcpulse_guest_chase},
    {.name = "divide", .what = "divisions that wait for each other", .code = vcpulse_guest_divide},
    {.name = "copy", .what = "copies within 4 MiB, 64 bytes a turn", .code = vcpulse_guest_copy},
    {.name = "hash", .what = "a hash of words within 4 KiB", .code = vcpulse_guest_hash},
    {.name = "multiply", .what = "a row by a column", .code = vcpulse_guest_multiply},
    {.name = "vector", .what = "rows by columns, with vectors", .code = vcpulse_guest_vector},
    {.name = "pause", .what = kPauseWhat, .truth = Truth::kSpinning, .code = vcpulse_guest_pause},
    {.name = "poll",
     .what = "a poll of memory",
     .truth = Truth::kSpinning,
     .code = vcpulse_guest_poll},
    {.name = "clock",
     .what = "a poll of the clock",
     .truth = Truth::kSpinning,
     .code = vcpulse_guest_clock},
    {.name = "deadline",
     .what = "waits for the clock",
     .truth = Truth::kSpinning,
     .code = vcpulse_guest_deadline},
    {.name = "phases",
     .what = "work and a spin in turn, by the clock",
     .truth = Truth::kMixed,
     .code = vcpulse_guest_phases},
    {.name = "wait", .what = kWaitWhat, .truth = Truth::kWaiting, .code = vcpulse_guest_wait},
    {.name = "halt", .what = kHaltWhat, .truth = Truth::kHalted, .code = vcpulse_guest_halt},
    {.name = "tick",
     .what = kTickWhat,
     .truth = Truth::kHalted,
     .wakes = true,
     .code = vcpulse_guest_tick},
    // Those of kLocks.
    {.name = "test-and-set",
     .what = "a test-and-set lock",
     .truth = Truth::kSpinning,
     .vcpus = 2,
     .code = vcpulse_guest_test_and_set},
    {.name = "ticket",
     .what = "a ticket lock",
     .truth = Truth::kSpinning,
     .vcpus = 2,
     .code = vcpulse_guest_ticket},
    {.name = "queue",
     .what = "a queue lock",
     .truth = Truth::kSpinning,
     .vcpus = 2,
     .code = vcpulse_guest_queue},
});

}  // namespace

std::span<const Program> Programs() {
  const std::span<const Program> all = kPrograms;
  return HasAtomics() ? all : all.first(all.size() - kLocks);
}

std::span<const std::byte> AllCode() { return {vcpulse_guest_begin, vcpulse_guest_end}; }

size_t EntryOf(const Program& program) {
  return static_cast<size_t>(static_cast<const std::byte*>(program.code) - vcpulse_guest_begin) +
         sizeof(Header);
}

size_t InterruptEntry() { return static_cast<size_t>(kInterrupt - vcpulse_guest_begin); }

uint64_t PhaseBits() { return uint64_t{1} << kPhaseBit; }

}  // namespace vcpulse::kvm::microguest

#else

namespace vcpulse::kvm::microguest {

std::span<const Program> Programs() { return {}; }
std::span<const std::byte> AllCode() { return {}; }
size_t EntryOf(const Program&) { return 0; }
size_t InterruptEntry() { return 0; }
uint64_t PhaseBits() { return 0; }

}  // namespace vcpulse::kvm::microguest

#endif

namespace vcpulse::kvm::microguest {

std::string_view ToString(Truth truth) {
  switch (truth) {
    case Truth::kHalted:
      return "halted";
    case Truth::kSpinning:
      return "spinning";
    case Truth::kProductive:
      return "productive";
    case Truth::kMixed:
      return "mixed";
    case Truth::kWaiting:
      return "waiting";
  }
  return "";
}

bool Program::CountsAreKnown() const { return HeaderOf(*this).turn > 0; }

uint64_t Program::Instructions(const Turns& turns) const {
  const Header& header = HeaderOf(*this);
  return turns.turns * header.turn + turns.looks * header.look + header.once;
}

uint64_t Program::Branches(const Turns& turns) const {
  const Header& header = HeaderOf(*this);
  return turns.turns * header.turn_branches + turns.looks * header.look_branches;
}

const Program* FindProgram(std::string_view name) {
  const auto found = std::ranges::find(Programs(), name, &Program::name);
  return found != Programs().end() ? &*found : nullptr;
}

}  // namespace vcpulse::kvm::microguest
