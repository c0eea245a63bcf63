// A test in C++ with GoogleTest: `harness PID` records the guest of the VMM with this PID, which
// should be idle, while two phases go by, then holds it against expectations.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vcpulse.hpp>
#include <vcpulse_gtest.hpp>

namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

long g_pid = 0;  // of the VMM, from the command line

// Stands for the work of the test.
void RunPhase() { std::this_thread::sleep_for(2s); }

TEST(Guest, IsIdle) {
  vcpulse::Options options;
  options.Pid(g_pid).Interval(50ms).OnNotice(
      [](const std::string& line) { std::cerr << "vcpulse: " << line << "\n"; });
  auto recording = vcpulse::Recording::Attach(options);
  recording.Mark("warm-up");
  RunPhase();
  recording.Mark("settled");
  RunPhase();
  const vcpulse::Timeline timeline = std::move(recording).Stop();

  for (const std::string& phase : timeline.phases()) {
    for (const std::uint32_t vcpu : timeline.vms().front().vcpus) {
      std::cout << phase << ": vCPU " << vcpu << " halted "
                << testing::PrintToString(timeline.Share(vcpu, vcpulse::Band::kHalted, phase))
                << "\n";
    }
  }
  EXPECT_THAT(timeline, vcpulse::Meets("vcpu=*: halted >= 50%").During("settled"));
  EXPECT_THAT(timeline.Share(0, vcpulse::Band::kHalted, "settled"), vcpulse::SurelyAtLeast(0.5));
}

// Bands beyond HALTED need counters: without them such a test says why it cannot speak.
TEST(Guest, DoesNotSpin) {
  auto recording = vcpulse::Recording::Attach(vcpulse::Options().Pid(g_pid));
  RunPhase();
  const vcpulse::Timeline timeline = std::move(recording).Stop();
  if (timeline.no_counters_reason()) GTEST_SKIP() << *timeline.no_counters_reason();
  EXPECT_THAT(timeline, vcpulse::Meets("vcpu=*: spinning <= 50%"));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: harness PID\n";
    return 2;
  }
  g_pid = std::strtol(argv[1], nullptr, 10);
  return RUN_ALL_TESTS();
}
