// The examples of docs/examples with real guests, an idle one and one that spins. Without a PMU the
// latter is UNKNOWN, so its check is INCONCLUSIVE instead of a FAIL: neither is a pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class LibraryExamples : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  }

  static Finished RunOnGuest(GuestProgram program) {
    const auto guest = QemuGuest::Start(
        {.vcpus = 2, .name = "example", .debug_threads = true, .program = program});
    EXPECT_TRUE(guest.ok()) << guest.status();
    if (!guest.ok()) return {};
    EXPECT_TRUE(guest->WaitForProgram(absl::Seconds(20)));
    return Run(guest->pid());
  }

  static Finished Run(pid_t pid) {
    const std::string number = std::to_string(pid);
    if (GetParam() == "C") return RunProgram({VCPULSE_EXAMPLE_C, number});
    if (GetParam() == "Cpp") return RunProgram({VCPULSE_EXAMPLE_CPP, number});
    return RunProgram({"env", "VCPULSE_LIBRARY=" VCPULSE_LIBRARY_FILE, "python3",
                       VCPULSE_EXAMPLE_PYTHON, number});
  }
};

TEST_P(LibraryExamples, PassOnAnIdleGuest) {
  const Finished finished = RunOnGuest(GuestProgram::kHalt);
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_THAT(finished.out,
              AllOf(HasSubstr("warm-up: vCPU 0 halted"), HasSubstr("settled: vCPU 1 halted")));
}

TEST_P(LibraryExamples, DoNotPassOnABusyGuest) {
  const Finished finished = RunOnGuest(GuestProgram::kBusy);
  EXPECT_EQ(finished.exit_code, 1) << finished.out << finished.err;
  EXPECT_THAT(finished.out, ContainsRegex("(FAIL|INCONCLUSIVE) VM example vCPU 0: "));
}

TEST_P(LibraryExamples, SayWhichProcessIsNoGuest) {
  const Finished finished = Run(getpid());
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.out + finished.err, HasSubstr("PID " + std::to_string(getpid())));
}

INSTANTIATE_TEST_SUITE_P(Languages, LibraryExamples, ::testing::Values("C", "Cpp", "Python"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace vcpulse::kvm_tests
