// A verdict is never surer than its evidence: a timeline, what is expected of it, and the outcome
// and exit code of a check. docs/harness.md tells users the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/monitor/check/check_texts.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::check {
namespace {

using ::testing::HasSubstr;
using Draw = std::function<void(DrawnRecording&)>;

struct EvidenceRow {
  std::string name;
  v1::Session session;
  Draw draw;
  std::vector<std::string> expectations;
  CheckOptions options;
  Outcome outcome;
  int exit_code;
  std::string reason;  // in one of the findings
};

void PrintTo(const EvidenceRow& row, std::ostream* out) { *out << row.name; }

v1::Session SessionOf(v1::ResidencyMethod method, double max_hz, double tsc_hz = 0) {
  v1::Session session = DrawnRecording::Session();
  session.set_residency_method(method);
  session.set_max_hz(max_hz);
  session.set_tsc_hz(tsc_hz);
  return session;
}

Draw Letters(const std::string& letters, const DrawnRecording::Epoch& epoch = {}) {
  return [=](DrawnRecording& recording) {
    recording.Begin(1, epoch);
    recording.Draw(letters);
  };
}

// db is not recorded `after` so many ticks, or from then on for `missed` ticks.
Draw SkippedAfter(size_t after, v1::LifeCycle::SkipReason reason,
                  std::optional<size_t> missed = std::nullopt) {
  return [=](DrawnRecording& recording) {
    const std::string busy = "PPPPPPPPPPPPPPPPPPPP";
    recording.Draw(std::string(after, 'P'));
    recording.Skip("db", 1002, reason);
    if (!missed) return recording.Draw(busy);
    recording.Draw(std::string(*missed, 'P') + "[rest]");
    recording.Name(2, "db");
    recording.Begin(2, {});  // PID 1002
    recording.Draw({{1, {busy}}, {2, {busy}}});
  };
}

// db is not recorded, and has ended after so many ticks.
Draw SkippedFor(size_t ticks) {
  return [=](DrawnRecording& recording) {
    recording.Skip("db", 1002, v1::LifeCycle::SKIP_REASON_NOT_OPENED);
    recording.Draw(std::string(ticks, 'P') + "[rest]");
    recording.EndSkipped(1002);
    recording.Draw("PPPPPPPPPPPPPPPPPPPP");
  };
}

Draw UnopenedFrom(size_t ticks) {
  return [=](DrawnRecording& recording) {
    recording.Draw(std::string(ticks, 'P'));
    recording.Begin(1, {.vcpus = {0}, .unopened = {1}});
    recording.Draw("PPPPPPPPPPPPPPPPPPPP");
  };
}

class Evidence : public ::testing::TestWithParam<EvidenceRow> {};

TEST_P(Evidence, IsWhatTheVerdictRestsOn) {
  const EvidenceRow& row = GetParam();
  DrawnRecording recording(row.session);
  row.draw(recording);
  const Result result = Check(recording.Finish(), row.expectations, row.options);
  EXPECT_EQ(ToString(result.outcome), ToString(row.outcome));
  EXPECT_EQ(tools::ExitCodeOf(result.outcome), row.exit_code);
  std::string said;
  for (const Judged& judged : result.judged) {
    for (const std::string& line : Lines(judged)) said += line + "\n";
  }
  EXPECT_THAT(said, HasSubstr(row.reason));
}

const v1::Session kPlain = DrawnRecording::Session();
const CheckOptions kTrusting = {.trust_ipc_bands = true};
const CheckOptions kAllowing = {.allow_skip = true};
constexpr auto kNotOpened = v1::LifeCycle::SKIP_REASON_NOT_OPENED;
// 1 GHz of guest cycles, on a CPU all the time.
const v1::Session kSlow = SessionOf(v1::RESIDENCY_METHOD_MAX_FREQUENCY, 4e9);
const v1::Session kRateAlone = SessionOf(v1::RESIDENCY_METHOD_HIGHEST_RATE, 0);
const v1::Session kByTime = SessionOf(v1::RESIDENCY_METHOD_TIME_ENABLED, 0);
const v1::Session kByTsc = SessionOf(v1::RESIDENCY_METHOD_REF_CYCLES, 4e9, 2e9);
const DrawnRecording::Epoch kIpcBands = {.classifier = "ipc-bands"};
const DrawnRecording::Epoch kDeadRefCycles = {.events = {"cycles", "instructions", "ref-cycles"}};
const DrawnRecording::Epoch kRefCycles = {.events = {"cycles", "instructions", "ref-cycles"},
                                          .counts_ref_cycles = true};
const std::string kBusy = "PPPPPPPPPPPPPPPPPPPP";
const std::string kBusyHalf = "RRRRRRRRRRRRRRRRRRRR";
const std::string kHalfSpun = "SSSSSSSSSSPPPPPPPPPP";
const std::string kHint = "ipc-bands, which is a hint: record more events";

// clang-format off
const std::vector<EvidenceRow> kRows = {
    // 2a: a vCPU that could not be opened.
    {"UnopenedVcpu", kPlain, UnopenedFrom(0), {"vcpu=*: productive >= 80%"}, {}, Outcome::kInconclusive, 3, "it could not be opened: EACCES"},
    {"UnopenedVcpuByIndex", kPlain, UnopenedFrom(0), {"vcpu=0-1: productive >= 80%"}, {}, Outcome::kInconclusive, 3, "it could not be opened"},
    {"UnopenedVcpuIsNotMeant", kPlain, UnopenedFrom(0), {"vcpu=0: productive >= 80%"}, {}, Outcome::kPass, 0, ""},
    {"UnopenedVcpuLeavesAFail", kPlain, UnopenedFrom(0), {"vcpu=*: productive <= 10%"}, {}, Outcome::kFail, 1, "it could not be opened"},
    {"UnopenedVcpuMayBeGaps", kPlain, UnopenedFrom(20), {"gaps <= 20%"}, {}, Outcome::kInconclusive, 3, "it was not open: vCPU 1: EACCES"},
    // 2b: a VM that was not recorded.
    {"SkippedVm", kPlain, SkippedAfter(0, kNotOpened), {"gaps <= 20%"}, {}, Outcome::kInconclusive, 3, "vm=*: INCONCLUSIVE, VM db was not recorded from 0.0 s on: too many open files"},
    {"SkippedVmOfAnyVcpu", kPlain, SkippedAfter(0, kNotOpened), {"vcpu=0: halted <= 5%"}, {}, Outcome::kInconclusive, 3, "VM db was not recorded"},
    {"SkippedVmByName", kPlain, SkippedAfter(0, kNotOpened), {"vm=db: halted <= 5%"}, {}, Outcome::kInconclusive, 3, "VM db was not recorded"},
    {"SkippedVmByPid", kPlain, SkippedAfter(0, kNotOpened), {"vm=1002: halted <= 5%"}, {}, Outcome::kInconclusive, 3, "VM db was not recorded"},
    {"SkippedVmIsNotMeant", kPlain, SkippedAfter(0, kNotOpened), {"vm=guest1: halted <= 5%"}, {}, Outcome::kPass, 0, ""},
    {"SkippedVmLeavesAFail", kPlain, SkippedAfter(0, kNotOpened), {"halted >= 5%"}, {}, Outcome::kFail, 1, "VM db was not recorded"},
    {"SkippedVmThatEnded", kPlain, SkippedFor(5), {"gaps <= 20%"}, {}, Outcome::kInconclusive, 3, "VM db was not recorded from 0.0 s to 0.5 s"},
    {"SkippedVmOnceEnded", kPlain, SkippedFor(5), {"gaps <= 20%"}, {.phase = "rest"}, Outcome::kPass, 0, ""},
    {"SkippedVmOfOlderFiles", kPlain, SkippedAfter(0, v1::LifeCycle::SKIP_REASON_UNSPECIFIED), {"gaps <= 20%"}, {}, Outcome::kInconclusive, 3, "too many open files (not known whether it ran KVM)"},
    {"SkippedWithoutKvm", kPlain, SkippedAfter(0, v1::LifeCycle::SKIP_REASON_NO_KVM), {"gaps <= 20%"}, {}, Outcome::kPass, 0, ""},
    {"SkippedWithoutAVcpu", kPlain, SkippedAfter(0, v1::LifeCycle::SKIP_REASON_NO_VCPU), {"gaps <= 20%"}, {}, Outcome::kPass, 0, ""},
    {"SkippedVmRecordedLater", kPlain, SkippedAfter(5, kNotOpened, 5), {"vm=db: halted <= 5%"}, {}, Outcome::kInconclusive, 3, "VM db was not recorded from 0.5 s to 1.0 s"},
    {"SkippedVmOnceRecorded", kPlain, SkippedAfter(5, kNotOpened, 5), {"vm=db: halted <= 5%"}, {.phase = "rest"}, Outcome::kPass, 0, ""},
    // 2c: a VM that lives while none of its epochs is open.
    {"NothingOpenedIsAGap", kPlain, [](DrawnRecording& r) { r.Draw(kBusy); r.Begin(1, {.vcpus = {}, .unopened = {0}}); r.Pass(kSecond_ns * 2); }, {"gaps <= 20%"}, {}, Outcome::kFail, 1, "gaps 50.0 %"},
    {"NothingOpenedIsNotMeasured", kPlain, [](DrawnRecording& r) { r.Draw(kBusy); r.Begin(1, {.vcpus = {}, .unopened = {0}}); r.Pass(kSecond_ns * 2); }, {"productive >= 80%"}, {}, Outcome::kInconclusive, 3, "50.0 % of 4.0 s is not known"},
    {"NotReopenedAfterAPause", kPlain, [](DrawnRecording& r) { r.Draw(kBusy + "("); r.LifeCycle(0, v1::LifeCycle::KIND_RECORDING_RESUMED); r.Pass(kSecond_ns * 2); }, {"productive >= 80%"}, {}, Outcome::kInconclusive, 3, "47.4 % of 3.8 s is not known"},
    {"NotReopenedAfterAPauseIsAGap", kPlain, [](DrawnRecording& r) { r.Draw(kBusy + "("); r.LifeCycle(0, v1::LifeCycle::KIND_RECORDING_RESUMED); r.Pass(kSecond_ns * 2); }, {"gaps <= 20%"}, {}, Outcome::kFail, 1, "gaps"},
    // 6: residency between its ends.
    {"ResidencyBySlowCyclesMayBeHigh", kSlow, Letters(kBusy), {"residency <= 50%"}, {}, Outcome::kInconclusive, 3, "residency 25.0 % to 100.0 %, wanted <= 50 %: residency lies between the two"},
    {"ResidencyBySlowCyclesMayBeLow", kSlow, Letters(kBusy), {"residency >= 90%"}, {}, Outcome::kInconclusive, 3, "residency lies between the two"},
    {"ResidencyIsSurelyAbove", kSlow, Letters(kBusy), {"residency >= 20%"}, {}, Outcome::kPass, 0, ""},
    {"ResidencyIsSurelyNotBelow", kSlow, Letters(kBusy), {"residency < 20%"}, {}, Outcome::kFail, 1, "residency"},
    {"ResidencyIsSurelyBelow", kSlow, Letters(kBusyHalf), {"residency <= 50%"}, {}, Outcome::kPass, 0, ""},
    {"ResidencyOfBothSums", kSlow, Letters(kBusy + kBusyHalf), {"residency <= 75%"}, {}, Outcome::kPass, 0, ""},
    {"ResidencyBelowBothSums", kSlow, Letters(kBusy + kBusyHalf), {"residency <= 74%"}, {}, Outcome::kInconclusive, 3, "residency 18.8 % to 75.0 %"},
    {"ResidencyByRefCyclesIsExact", kByTsc, Letters(kBusy, kRefCycles), {"residency <= 50%"}, {}, Outcome::kPass, 0, ""},
    {"RefCyclesThatCountNothing", kByTsc, Letters(kBusy, kDeadRefCycles), {"residency <= 5%"}, {}, Outcome::kFail, 1, "residency 25.0 % to 100.0 %"},
    {"ResidencyWithoutRefCyclesInTheSet", kByTsc, Letters(kBusy), {"residency <= 50%"}, {}, Outcome::kInconclusive, 3, "residency 25.0 % to 100.0 %"},
    {"ResidencyByHighestRateHasNoLowEnd", kRateAlone, Letters(kBusy), {"residency >= 90%"}, {}, Outcome::kInconclusive, 3, "residency 0.0 % to 100.0 %"},
    {"ResidencyByTimeHasNoLowEnd", kByTime, Letters(kBusy), {"residency >= 90%"}, {}, Outcome::kInconclusive, 3, "residency 0.0 % to 100.0 %"},
    // 9: ipc-bands is a hint.
    {"HintOfSpinning", kPlain, Letters(kHalfSpun, kIpcBands), {"spinning <= 5%"}, {}, Outcome::kInconclusive, 3, kHint},
    {"HintOfProductive", kPlain, Letters(kBusy, kIpcBands), {"productive >= 80%"}, {}, Outcome::kInconclusive, 3, kHint},
    {"HintOfUnknown", kPlain, Letters("UUUUUUUUUUUUUUUUUUUU", kIpcBands), {"unknown <= 10%"}, {}, Outcome::kInconclusive, 3, kHint},
    {"HintOfALongSpin", kPlain, Letters(kHalfSpun, kIpcBands), {"longest(spinning) <= 200ms"}, {}, Outcome::kInconclusive, 3, kHint},
    {"HintThatIsTrusted", kPlain, Letters(kHalfSpun, kIpcBands), {"spinning <= 5%"}, kTrusting, Outcome::kFail, 1, "spinning 50.0 %"},
    {"HintThatIsTrustedPasses", kPlain, Letters(kBusy, kIpcBands), {"productive >= 80%"}, kTrusting, Outcome::kPass, 0, ""},
    {"HintThatIsTrustedByName", kPlain, Letters(kHalfSpun, kIpcBands), {"longest(spinning) by ipc-bands <= 200ms"}, {}, Outcome::kFail, 1, "longest(spinning) by ipc-bands 1.0 s"},
    {"HintThatMakesNoDifference", kPlain, Letters("HHHHHHHHHHHHHHHHHHHS", kIpcBands), {"spinning <= 5%"}, {}, Outcome::kPass, 0, ""},
    {"HintThatMakesNoDifferenceToAFail", kPlain, Letters("HHHHHHHHHHHHHHHHHHHP", kIpcBands), {"productive >= 80%"}, {}, Outcome::kFail, 1, "productive 0.0 % to 5.0 %"},
    {"HaltedIsNoHint", kPlain, Letters(kBusy, kIpcBands), {"halted <= 1%"}, {}, Outcome::kPass, 0, ""},
    {"StarvedIsNoHint", kPlain, Letters("ssssssssssssssssssss", kIpcBands), {"starved <= 1%"}, {}, Outcome::kFail, 1, "starved 100.0 %"},
    {"EvidenceIsNoHint", kPlain, Letters(kBusy), {"productive >= 80%"}, {}, Outcome::kPass, 0, ""},
    // 14: skipped beside passed.
    {"SkippedBesidePassed", kPlain, Letters("NNNNNNNNNNNNNNNNNNNN", {.degraded = true}), {"spinning <= 5%", "halted <= 5%"}, {}, Outcome::kSkip, 4, "spinning needs hardware counters"},
    {"SkippedBesidePassedAllowed", kPlain, Letters("NNNNNNNNNNNNNNNNNNNN", {.degraded = true}), {"spinning <= 5%", "halted <= 5%"}, kAllowing, Outcome::kPass, 0, ""},
    {"AllSkippedAllowed", kPlain, Letters("NNNNNNNNNNNNNNNNNNNN", {.degraded = true}), {"spinning <= 5%"}, kAllowing, Outcome::kSkip, 4, ""},
    {"SkippedBesideFailed", kPlain, Letters("NNNNNNNNNNNNNNNNNNNN", {.degraded = true}), {"spinning <= 5%", "halted >= 5%"}, {}, Outcome::kFail, 1, ""},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Table, Evidence, ::testing::ValuesIn(kRows),
                         [](const auto& row_of) { return row_of.param.name; });

}  // namespace
}  // namespace vcpulse::check
