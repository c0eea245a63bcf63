// What the text report says once where there are several VMs.

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/report/report.h"
#include "monitor/report/text_report.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What differs from VM to VM is one list, the worst first.
TEST(ManyVms, HaveOneListOfWhatWasUnknown) {
  check::DrawnRecording recording;
  std::map<uint32_t, std::vector<std::string>> drawing;
  for (uint32_t vm = 1; vm <= 3; ++vm) {
    recording.Begin(vm, {.vcpus = {0, 1}});
    drawing[vm] = {"PPPPPPPPPP", std::string(vm, 'U') + std::string(10 - vm, 'P')};
  }
  recording.Draw(drawing);
  Summary summary;
  const auto report = ReadPart(recording.Finish(), {}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(
      RenderText(*report),
      HasSubstr(": vCPU 1 of VM 3 30.0%, vCPU 1 of VM 2 20.0%, vCPU 1 of VM 1\n         10.0%\n"));
  EXPECT_THAT(RenderText(*report, {.vcpu = 0}), Not(HasSubstr("UNKNOWN:")));
}

// All waited for the same share of their time: more of it in ticks that were starved is worse.
TEST(ManyVms, AreNamedByTheWorstOfEquals) {
  check::DrawnRecording recording;
  recording.waited_percent = 4;
  recording.Begin(1, {.vcpus = {0}});
  recording.Begin(2, {.vcpus = {0}});
  recording.Draw(
      std::map<uint32_t, std::vector<std::string>>{{1, {"PPPPPPPPPp"}}, {2, {"PPPPPppppp"}}});
  Summary summary;
  const auto report = ReadPart(recording.Finish(), {}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(RenderText(*report),
              HasSubstr("\nmost starved: vCPU 0 of VM 2 \"guest2\" waited 4.0%"));
}

}  // namespace
}  // namespace vcpulse::report
