// The instructions and branches of each x86-64 program, counted by stepping through it in a process
// of its own: a witness that needs neither KVM nor a PMU. (Those of arm64 are held by the lab's
// PMU.)

#if defined(__x86_64__)

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "kvm/microguest/guest_memory.h"
#include "kvm/microguest/program.h"

namespace vcpulse::kvm::microguest {
namespace {

constexpr size_t kMemory = 32 << 20;
constexpr size_t kDataAt = 1 << 20;  // the code is at 0
constexpr size_t kSharedAt = 512 << 10;
constexpr uint8_t kOut = 0xe6;  // out %al, imm8: the last instruction, which is not allowed here
constexpr uint64_t kMostSteps = 100'000;

struct Steps {
  uint64_t instructions = 0;
  uint64_t branches = 0;
  bool finished = false;
};

// Jcc and JMP with a short offset, Jcc with a near one: all that the programs have.
bool IsBranch(const uint8_t* code) {
  return (code[0] & 0xf0) == 0x70 || code[0] == 0xeb || code[0] == 0xe9 ||
         (code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

// A child that is stopped at once, with memory that it shares with this process.
class Stepper {
 public:
  Stepper() {
    void* const memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(memory);
    std::ranges::copy(AllCode(), memory_);
    child_ = fork();
    if (child_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) raise(SIGSTOP);
      _exit(1);
    }
    int status = 0;
    if (child_ > 0 && (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status))) child_ = -1;
  }
  ~Stepper() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (memory_ != nullptr) munmap(memory_, kMemory);
  }
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Whether this process may trace one of its own.
  bool ok() const { return child_ > 0; }
  Mailbox& mailbox() const { return *reinterpret_cast<Mailbox*>(memory_ + kSharedAt - 4096); }
  // What the program "queue" waits for first.
  uint64_t& before() const {
    return *reinterpret_cast<uint64_t*>(memory_ + kSharedAt - 2 * 4096 + 0xf00);
  }
  uint64_t* shared() const { return reinterpret_cast<uint64_t*>(memory_ + kSharedAt); }

  void FreeLocks(const Program& program) const {
    shared()[0] = program.name == "queue" ? reinterpret_cast<uint64_t>(&before()) - 0xf00 : 0;
    shared()[1] = 0;
  }

  // Steps until the program would leave the guest; the `locked` word of those that wait falls, or
  // the ticket is served, after so many looks.
  Steps Run(const Program& program, uint64_t turns, uint64_t looks) const {
    mailbox() = {.turns = 0, .limit = turns, .looks = 0, .spin_bits = looks > 0 ? ~0UL : 0};
    before() = looks > 0 ? 1 : 0;
    // A pointer to itself is a chain.
    auto* const data = reinterpret_cast<uint64_t*>(memory_ + kDataAt);
    *data = reinterpret_cast<uint64_t>(data);
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
    const user_regs_struct before = registers;
    registers = {};
    registers.rip = reinterpret_cast<uint64_t>(memory_) + EntryOf(program);
    registers.rsp = before.rsp;
    registers.eflags = before.eflags;
    registers.cs = before.cs;
    registers.ss = before.ss;
    registers.ds = before.ds;
    registers.es = before.es;
    registers.fs = before.fs;
    registers.gs = before.gs;
    registers.fs_base = before.fs_base;
    registers.gs_base = before.gs_base;
    registers.orig_rax = ~uint64_t{0};
    registers.rdi = reinterpret_cast<uint64_t>(&mailbox());
    registers.rsi = reinterpret_cast<uint64_t>(data);
    registers.rdx = reinterpret_cast<uint64_t>(shared());
    ptrace(PTRACE_SETREGS, child_, nullptr, &registers);
    Steps steps;
    while (steps.instructions < kMostSteps) {
      ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
      const auto* const code = reinterpret_cast<const uint8_t*>(registers.rip);
      if (*code == kOut) {
        steps.finished = true;
        return steps;
      }
      if (looks > 0 && registers.r9 == looks) {
        Release(program);
        looks = 0;
      }
      steps.branches += IsBranch(code) ? 1 : 0;
      ++steps.instructions;
      ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr);
      int status = 0;
      if (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status) ||
          WSTOPSIG(status) != SIGTRAP) {
        return steps;
      }
    }
    return steps;
  }

 private:
  void Release(const Program& program) const {
    if (program.name == "test-and-set") shared()[0] = 0;
    if (program.name == "ticket") shared()[1] = 1;
    if (program.name == "queue") before() = 0;
    if (program.name == "phases") mailbox().spin_bits = 0;
  }

  std::byte* memory_ = nullptr;
  pid_t child_ = -1;
};

TEST(SteppedPrograms, RetireWhatTheTableSays) {
  const Stepper stepper;
  ASSERT_TRUE(stepper.ok());
  for (const Program& program : Programs()) {
    if (!program.CountsAreKnown()) continue;  // its HLT or MWAIT is not allowed here
    SCOPED_TRACE(program.name);
    for (const uint64_t turns : {1, 2, 37}) {
      stepper.FreeLocks(program);
      const Steps steps = stepper.Run(program, turns, 0);
      ASSERT_TRUE(steps.finished);
      EXPECT_EQ(stepper.mailbox().turns, turns);
      const Turns did{.turns = turns, .looks = stepper.mailbox().looks};
      EXPECT_TRUE(did.looks == 0 || program.name == "deadline");
      EXPECT_EQ(steps.instructions, program.Instructions(did));
      EXPECT_EQ(steps.branches, program.Branches(did));
    }
  }
}

// The lock is held, or another's turn, or the clock says so, for so many looks.
TEST(SteppedPrograms, RetireWhatTheTableSaysWhileTheyWait) {
  const Stepper stepper;
  ASSERT_TRUE(stepper.ok());
  for (const char* name : {"test-and-set", "ticket", "queue", "phases"}) {
    SCOPED_TRACE(name);
    const Program& program = *FindProgram(name);
    stepper.FreeLocks(program);
    if (program.name != "queue") stepper.shared()[0] = 1;
    const Steps steps = stepper.Run(program, 3, 5);
    ASSERT_TRUE(steps.finished);
    const Turns did{.turns = 3, .looks = stepper.mailbox().looks};
    EXPECT_GE(did.looks, 5u);
    EXPECT_EQ(steps.instructions, program.Instructions(did));
    EXPECT_EQ(steps.branches, program.Branches(did));
  }
}

}  // namespace
}  // namespace vcpulse::kvm::microguest

#endif
