#include "monitor/check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/monitor/check/check_texts.h"

namespace vcpulse::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CheckTimeline, DescribesWhatItJudged) {
  DrawnRecording recording;
  recording.Draw("PP[work]PPPPPPPPPPPP[rest]HHHHHHHHHH[work]PPPPPPPPPP");
  const Result result = Check(recording.Finish(), {"vcpu=0: productive >= 100%"},
                              {.phase = "work", .skip_first_ns = kSecond_ns / 2});
  EXPECT_EQ(result.outcome, Outcome::kPass);
  EXPECT_EQ(result.host_name, "host1");
  EXPECT_EQ(result.start_realtime_ns, kRealtime_ns);
  EXPECT_EQ(result.duration_ns, 34 * kDrawnTick_ns);
  EXPECT_EQ(result.phase, "work");
  EXPECT_EQ(result.spans, 2u);
  EXPECT_EQ(result.judged_ns, 12 * kDrawnTick_ns);
  EXPECT_THAT(result.phases, ElementsAre("work", "rest"));
  EXPECT_THAT(result.notes, IsEmpty());
  ASSERT_EQ(result.judged.size(), 1u);
  EXPECT_EQ(result.judged[0].expectation.text, "vcpu=0: productive >= 100%");
  EXPECT_EQ(result.judged[0].findings.at(0), (Finding{.subject = "VM guest1 vCPU 0",
                                                      .vm = "guest1",
                                                      .vcpu = 0,
                                                      .outcome = Outcome::kPass,
                                                      .observed = Bounds{1, 1},
                                                      .ticks = 12,
                                                      .judged_ns = 12 * kDrawnTick_ns}));
}

TEST(CheckTimeline, WithoutAPhaseJudgesTheRecordingAsOneSpan) {
  DrawnRecording recording;
  recording.Draw("[a]PPPPP[b]SSSSSUUUUU");
  const Result result = Check(recording.Finish(), {"productive <= 80%"});
  EXPECT_EQ(result.spans, 1u);
  EXPECT_EQ(result.phase, std::nullopt);
  EXPECT_EQ(result.judged_ns, 15 * kDrawnTick_ns);
  EXPECT_EQ(result.judged.at(0).findings.at(0).unknown_ns, 5 * kDrawnTick_ns);
}

TEST(CheckTimeline, JudgesEachExpectationAndTakesTheWorst) {
  DrawnRecording recording;
  recording.Draw("SSSSSPPPPPPPPPP");
  const std::string path = recording.Finish();
  const auto outcome = [&path](const std::vector<std::string>& texts) {
    return Check(path, texts).outcome;
  };
  EXPECT_EQ(outcome({"spinning <= 40%", "productive >= 10%"}), Outcome::kPass);
  EXPECT_EQ(outcome({"spinning <= 40%", "vcpu=7: productive >= 10%"}), Outcome::kInconclusive);
  EXPECT_EQ(outcome({"spinning <= 30%", "vcpu=7: productive >= 10%"}), Outcome::kFail);
  EXPECT_EQ(outcome({}), Outcome::kSkip);
}

TEST(CheckTimeline, StarMeansEachOne) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"PPPPPPPPPP", "SSSSSSSSSS"});
  const Result result = Check(recording.Finish(), {"vcpu=*: productive >= 50%"});
  EXPECT_EQ(result.outcome, Outcome::kFail);
  EXPECT_THAT(Lines(result.judged.at(0)),
              ElementsAre("VM guest1 vCPU 0: PASS",
                          "VM guest1 vCPU 1: FAIL, productive 0.0 %, wanted >= 50 %; worst 0.0 % "
                          "from 0.0 s to 1.0 s"));
}

TEST(CheckTimeline, SelectsByNameUuidAndPid) {
  DrawnRecording recording;
  recording.Name(1, "web", "8C1E0F8E-0000-4000-8000-000000000001");
  recording.Name(2, "db");
  recording.Begin(1, {.vcpus = {0}});
  recording.Begin(2, {.vcpus = {0, 1, 2}});
  recording.Draw({{1, {"PPPPPPPPPP"}}, {2, {"PPPPPPPPPP", "HHHHHHHHHH", "PPPPPPPPPP"}}});
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "vm=web: halted < 1%"), ElementsAre("VM web vCPU 0: PASS"));
  EXPECT_THAT(LinesOf(path, "vm=8c1e0f8e-0000-4000-8000-000000000001: halted < 1%"),
              ElementsAre("VM web vCPU 0: PASS"));
  EXPECT_THAT(LinesOf(path, "vm=1001: halted < 1%"), ElementsAre("VM web vCPU 0: PASS"));
  EXPECT_THAT(LinesOf(path, "vm=1: halted < 1%"), ElementsAre("VM web vCPU 0: PASS"));
  EXPECT_THAT(LinesOf(path, "vm=db vcpu=0,2: halted < 1%"),
              ElementsAre("VM db vCPU 0: PASS", "VM db vCPU 2: PASS"));
  // An index that one of the VMs has is there.
  EXPECT_THAT(LinesOf(path, "vcpu=2: halted < 1%"), ElementsAre("VM db vCPU 2: PASS"));
  EXPECT_THAT(LinesOf(path, "gaps <= 1%"), ElementsAre("VM web: PASS", "VM db: PASS"));
  EXPECT_EQ(Check(path, {"gaps <= 1%"}).judged[0].findings[0].vcpu, std::nullopt);
}

TEST(CheckTimeline, NamesWhomThereIsWhereNobodyFits) {
  DrawnRecording recording;
  recording.Name(1, "a");
  recording.Name(2, "b");
  recording.Begin(1, {.vcpus = {0, 1, 2, 3}});
  recording.Begin(2, {.vcpus = {1}});
  recording.Draw(
      {{1, {"PPPPPPPPPP", "PPPPPPPPPP", "PPPPPPPPPP", "PPPPPPPPPP"}}, {2, {"PPPPPPPPPP"}}});
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "vm=web vcpu=0: halted < 1%"),
              ElementsAre("vm=web vcpu=0: INCONCLUSIVE, no VM is called 'web'; VMs are: a, b"));
  EXPECT_THAT(LinesOf(path, "vm=web: gaps < 1%"),
              ElementsAre("vm=web: INCONCLUSIVE, no VM is called 'web'; VMs are: a, b"));
  EXPECT_THAT(LinesOf(path, "vm=a vcpu=7: halted < 1%"),
              ElementsAre("vm=a vcpu=7: INCONCLUSIVE, VM a has vCPUs 0-3, no 7"));
  // Those who are there are judged all the same.
  EXPECT_THAT(LinesOf(path, "vm=a vcpu=3-5,8-4294967295: halted < 1%"),
              ElementsAre("VM a vCPU 3: PASS",
                          "vm=a vcpu=3-5,8-4294967295: INCONCLUSIVE, VM a "
                          "has vCPUs 0-3, no 4-5, 8-4294967295"));
  EXPECT_THAT(LinesOf(path, "vcpu=9: halted < 1%"),
              ElementsAre("vcpu=9: INCONCLUSIVE, none of the VMs has a vCPU 9; there are vCPUs "
                          "0-3"));
}

TEST(CheckTimeline, WithoutAnyVmNothingIsConclusive) {
  DrawnRecording recording;
  recording.Pass(kSecond_ns);
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "halted < 1%"),
              ElementsAre("vcpu=*: INCONCLUSIVE, no VM was recorded"));
  EXPECT_THAT(LinesOf(path, "gaps < 1%"), ElementsAre("vm=*: INCONCLUSIVE, no VM was recorded"));
}

TEST(CheckTimeline, WithoutAnyVmOrTimeTheVmIsWhatIsMissing) {
  DrawnRecording recording;
  EXPECT_THAT(LinesOf(recording.Finish(), "halted < 1%"),
              ElementsAre("vcpu=*: INCONCLUSIVE, no VM was recorded"));
}

TEST(CheckTimeline, TwoVmsOfOneNameAreToldApart) {
  DrawnRecording recording;
  recording.Name(1, "web");
  recording.Name(2, "web");
  recording.Begin(1, {});
  recording.Draw("PPPPPPPPPP!");
  recording.Begin(2, {});
  recording.Draw({{2, {"PPPPPPPPPP"}}});
  EXPECT_THAT(LinesOf(recording.Finish(), "vm=web: halted < 1%"),
              ElementsAre("VM web (PID 1001) vCPU 0: PASS", "VM web (PID 1002) vCPU 0: PASS"));
}

TEST(CheckTimeline, AHotpluggedVcpuIsJudgedWhileItWasThere) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0}});
  recording.Draw("[one]PPPPPPPPPP[two]");
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"PPPPPPPPPP[three]", "SSSSSHHHHH"});
  recording.Begin(1, {.vcpus = {0}});
  recording.Draw("PPPPPPPPPP");
  const std::string path = recording.Finish();
  const Result whole = Check(path, {"vcpu=1: spinning <= 50%"});
  EXPECT_EQ(whole.outcome, Outcome::kPass);
  EXPECT_EQ(whole.judged[0].findings.at(0).judged_ns, kSecond_ns);
  EXPECT_EQ(whole.judged[0].findings.at(0).observed, (Bounds{0.5, 0.5}));
  // It is not of the phases in which it was not there; named, that is told.
  EXPECT_THAT(LinesOf(path, "vcpu=*: halted < 1%", InPhase("one")),
              ElementsAre("VM guest1 vCPU 0: PASS"));
  EXPECT_THAT(LinesOf(path, "vcpu=0-1: halted < 1%", InPhase("three")),
              ElementsAre("VM guest1 vCPU 0: PASS",
                          "vcpu=0-1: INCONCLUSIVE, vCPU 1 was not there in the time that was "
                          "judged"));
}

TEST(CheckTimeline, AVmThatWasNotThereIsToldWhereNoneWas) {
  DrawnRecording recording;
  recording.Draw("PPPPPPPPPP![after]..........");
  const std::string path = recording.Finish();
  for (const auto& [text, whom] : std::vector<std::pair<std::string, std::string>>{
           {"vm=guest1: halted < 1%", "vm=guest1"}, {"gaps < 1%", "vm=*"}}) {
    EXPECT_THAT(LinesOf(path, text, InPhase("after")),
                ElementsAre(whom + ": INCONCLUSIVE, no vCPU of VM guest1 was there to be sampled "
                                   "in the time that was judged"));
  }
}

TEST(CheckTimeline, AVcpuThatCouldNotBeOpenedIsThereAndNotMeasured) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0}, .unopened = {1}});
  recording.Draw("[a]PPPPPPPPPP[b]");
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"PPPPPPPPPP", "PPPPPPPPPP"});
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "productive >= 90%", InPhase("a")),
              ElementsAre("VM guest1 vCPU 0: PASS",
                          "VM guest1 vCPU 1: INCONCLUSIVE, it could not be opened: EACCES: "
                          "Permission denied; perf_event_paranoid is 3"));
  EXPECT_THAT(
      LinesOf(path, "vcpu=1: productive >= 90%"),
      ElementsAre("VM guest1 vCPU 1: INCONCLUSIVE, productive 50.0 % to 100.0 %, wanted >= "
                  "90 %: 50.0 % of 2.0 s is not known; for some of that it was not open: EACCES: "
                  "Permission denied; perf_event_paranoid is 3"));
}

TEST(CheckTimeline, APhaseThatNeverCameIsInconclusive) {
  DrawnRecording recording;
  recording.Draw("[warm up]PPPPP[work]PPPPP");
  const Result result = Check(recording.Finish(), {"halted < 1%", "gaps < 1%"}, InPhase("rest"));
  EXPECT_EQ(result.outcome, Outcome::kInconclusive);
  EXPECT_EQ(result.spans, 0u);
  EXPECT_THAT(Lines(result.judged.at(0)),
              ElementsAre("vcpu=*: INCONCLUSIVE, no phase 'rest'; phases are: warm up, "
                          "work"));
  EXPECT_THAT(Lines(result.judged.at(1)),
              ElementsAre("vm=*: INCONCLUSIVE, no phase 'rest'; phases are: warm up, work"));
  EXPECT_EQ(ReasonOf("PPPPP", "halted < 1%", InPhase("rest")),
            "no phase 'rest'; no phase was marked");
}

TEST(CheckTimeline, ToldToSkipEverythingSaysSo) {
  CheckOptions options = InPhase("a");
  options.skip_first_ns = 2 * kSecond_ns;
  EXPECT_EQ(ReasonOf("[a]PPPPP[b]P[a]PPPPPP[b]", "halted < 1%", options),
            "phase 'a' lasted 600.0 ms at most, and its first 2.0 s are skipped");
  EXPECT_EQ(ReasonOf("PPPPP", "halted < 1%", {.skip_first_ns = kSecond_ns}),
            "the recording lasted 500.0 ms at most, and its first 1.0 s are skipped");
  EXPECT_EQ(ReasonOf("PP[a][b]PP", "halted < 1%", InPhase("a")), "phase 'a' lasted 0 ns");
}

TEST(CheckTimeline, TooFewTicksAreInconclusive) {
  EXPECT_EQ(ReasonOf("PP[a]SS[b]PPPPPPPPPPP", "spinning <= 5%", {.phase = "a"}),
            "2 ticks measured in 200.0 ms, wanted >= 10");
  EXPECT_EQ(ReasonOf("SSSSSSSSS", "spinning > 5%"), "9 ticks measured in 900.0 ms, wanted >= 10");
  EXPECT_EQ(ReasonOf("SSSSSSSSSS", "spinning > 5%"), "");
}

TEST(CheckTimeline, ATimelineFullOfGapsIsInconclusiveButForGaps) {
  std::string drawn;
  for (int i = 0; i < 20; ++i) drawn += "S...............";
  EXPECT_EQ(ReasonOf(drawn, "spinning > 5%"), "6.2 % of 32.0 s measured, wanted >= 10 %");
  EXPECT_EQ(ReasonOf(drawn, "spinning > 5%", {.min_measured = 0.05}), "");
  EXPECT_THAT(ReasonOf(drawn, "gaps <= 1%"), HasSubstr("gaps 93.4 %, wanted <= 1 %; worst"));
}

TEST(CheckTimeline, NothingMeasuredAtAllIsToldAsSuch) {
  const std::string drawn = "S[a]..........[b]S";
  EXPECT_EQ(ReasonOf(drawn, "gaps <= 1%", InPhase("a")),
            "gaps 100.0 %, wanted <= 1 %; worst 100.0 % from 0.1 s to 1.1 s");
  EXPECT_EQ(ReasonOf(drawn, "spinning <= 1%", InPhase("a")),
            "0 ticks measured in 1.0 s, wanted >= 1");
  CheckOptions nothing_needed = InPhase("a");
  nothing_needed.min_ticks = 0;
  nothing_needed.min_measured = 0;
  EXPECT_EQ(ReasonOf(drawn, "spinning <= 1%", nothing_needed),
            "spinning 0.0 % to 100.0 %, wanted <= 1 %: 100.0 % of 1.0 s is not known");
}

TEST(CheckTimeline, AFailSaysWhatWasObservedWantedAndWhenItWasWorst) {
  DrawnRecording recording;
  recording.Draw("PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP SSSSSSSSPP PPUPPPPPPP");
  const std::string path = recording.Finish();
  const Result result = Check(path, {"spinning <= 5%"});
  const Finding& finding = result.judged.at(0).findings.at(0);
  EXPECT_EQ(finding.reason,
            "spinning 15.4 % to 17.3 %, wanted <= 5 %; worst 80.0 % from 3.0 s to 4.0 s");
  EXPECT_EQ(finding.worst, (WorstSpan{3 * kSecond_ns, 4 * kSecond_ns, 0.8}));
  EXPECT_THAT(LinesOf(path, "longest(spinning) <= 200ms"),
              ElementsAre(HasSubstr("longest(spinning) 800.0 ms, wanted <= 200ms; worst 800.0 ms "
                                    "from 3.200 s to 4.000 s")));
  EXPECT_THAT(LinesOf(path, "longest(spinning) >= 1.5s"),
              ElementsAre(HasSubstr("longest(spinning) 800.0 ms, wanted >= 1.5s; worst 800.0 ms "
                                    "from 3.200 s to 4.000 s")));
  EXPECT_THAT(
      LinesOf(path, "ipc.p10 >= 1.5"),
      ElementsAre(HasSubstr("ipc.p10 0.50, wanted >= 1.5; worst 0.80 from 3.0 s to 4.0 s")));
  EXPECT_THAT(
      LinesOf(path, "productive >= 99%"),
      ElementsAre(HasSubstr("productive 82.7 % to 84.6 %, wanted >= 99 %; worst 20.0 % from "
                            "3.0 s to 4.0 s")));
  EXPECT_THAT(LinesOf(path, "residency < 10%"),
              ElementsAre(HasSubstr("residency 100.0 %, wanted < 10 %; worst 100.0 % from 0.0 s")));
}

TEST(CheckTimeline, AReasonShowsDigitsThatTellItFromTheLimit) {
  std::string drawn(2001, 'P');
  for (size_t i = 0; i < 101; ++i) drawn[i] = 'S';
  EXPECT_THAT(ReasonOf(drawn, "spinning <= 5%"), HasSubstr("spinning 5.05 %, wanted <= 5 %"));
}

TEST(CheckTimeline, AnInconclusiveSaysHowMuchIsNotKnown) {
  EXPECT_EQ(ReasonOf("SPPPPPPPUU", "spinning <= 20%"),
            "spinning 10.0 % to 30.0 %, wanted <= 20 %: 20.0 % of 1.0 s is not known");
  EXPECT_EQ(ReasonOf("22222......?????", "ipc.p50 >= 1", {.min_ticks = 1}),
            "ipc.p50 0.00 or more, wanted >= 1: 68.8 % of 1.6 s is not known");
}

TEST(CheckTimeline, WithoutAnIpcItIsToldWhy) {
  EXPECT_EQ(ReasonOf("HHHHHHHHHH", "ipc.p50 >= 1"),
            "HALTED all the time, so there is no IPC to judge");
  EXPECT_EQ(ReasonOf("HHHHHHHHHHH???", "ipc.p50 >= 1"),
            "its IPC was never counted while it was not HALTED");
}

TEST(CheckTimeline, SkipsForTheReasonTheSessionGives) {
  v1::Session session = DrawnRecording::Session();
  session.set_degraded_reason("no PMU here");
  DrawnRecording recording(session);
  recording.Draw("%HHHHHNNNNN");
  const std::string path = recording.Finish();
  const Result result = Check(path, {"spinning <= 5%", "ipc.p50 > 1"});
  EXPECT_EQ(result.outcome, Outcome::kSkip);
  EXPECT_EQ(result.degraded, "no hardware counter was read: no PMU here");
  EXPECT_THAT(Lines(result.judged.at(0)),
              ElementsAre("VM guest1 vCPU 0: SKIP, spinning needs hardware counters, and none was "
                          "read: no PMU here"));
}

TEST(CheckTimeline, OnlyVmsWithoutAnyCounterAreDegraded) {
  DrawnRecording recording;
  recording.Begin(1, {});
  recording.Begin(2, {.degraded = true});
  recording.Draw({{1, {"PPPPP"}}, {2, {"NNNNN"}}});
  EXPECT_EQ(Check(recording.Finish(), {"vcpu=0: halted <= 5%"}).degraded,
            "no hardware counter was read of VM guest2");
  // What was opened counts, whatever the session says.
  v1::Session session = DrawnRecording::Session();
  session.set_degraded_reason("no PMU here");
  DrawnRecording counted(session);
  counted.Draw("PPPPP");
  EXPECT_EQ(Check(counted.Finish(), {"halted <= 5%"}).degraded, "");
}

TEST(CheckTimeline, StarvedIsUnknownWhereWaitingWasNotMeasured) {
  DrawnRecording recording;
  recording.scheduler_times = false;
  recording.Draw("ssPPPPPPPP");
  const Result result = Check(recording.Finish(), {"starved <= 20%", "longest(starved) < 1s"});
  EXPECT_EQ(result.judged.at(0).findings.at(0).observed, (Bounds{0.2, 1}));
  EXPECT_EQ(result.judged.at(1).findings.at(0).observed, (Bounds{0.2e9, 1e9}));
}

TEST(Measure, GivesTheBoundsOfOne) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"SSSUUPPPPP", "PPPPPPPPPP"});
  const std::string path = recording.Finish();
  const Selector first{.vcpus = {{0, 0}}};
  const auto spinning = Measure(path, first, {.metric = Metric::kSpinning}, {});
  ASSERT_TRUE(spinning.ok()) << spinning.status();
  EXPECT_EQ(*spinning, (Measurement{.subject = "VM guest1 vCPU 0",
                                    .observed = Bounds{0.3, 0.5},
                                    .ticks = 10,
                                    .judged_ns = kSecond_ns,
                                    .unknown_ns = kSecond_ns / 5}));
  const auto ipc =
      Measure(path, first,
              {.kind = Quantity::Kind::kPercentile, .metric = Metric::kIpc, .percentile = 40}, {});
  ASSERT_TRUE(ipc.ok()) << ipc.status();
  EXPECT_EQ(ipc->observed, (Bounds{0.9, 0.9}));
  const auto run =
      Measure(path, first, {.kind = Quantity::Kind::kLongest, .metric = Metric::kProductive}, {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->observed, (Bounds{0.5e9, 0.7e9}));
  EXPECT_TRUE(Measure(path, {}, kGaps, {}).ok());
}

TEST(Measure, NeedsOneThatFits) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"SSSUUPPPPP", "PPPPPPPPPP"});
  const std::string path = recording.Finish();
  const auto error = [&path](const Selector& selector, const Quantity& quantity,
                             const CheckOptions& options) {
    return Measure(path, selector, quantity, options).status().ToString();
  };
  const Quantity spinning{.metric = Metric::kSpinning};
  EXPECT_EQ(error({}, spinning, {}),
            "INVALID_ARGUMENT: vcpu=* fits 2 of them: VM guest1 vCPU 0, VM guest1 vCPU 1...");
  EXPECT_EQ(error({.vcpus = {{7, 7}}}, spinning, {}), "NOT_FOUND: VM guest1 has vCPUs 0-1, no 7");
  EXPECT_EQ(error({.vcpus = {{0, 0}}}, spinning, InPhase("a")),
            "NOT_FOUND: no phase 'a'; no phase was marked");
  EXPECT_EQ(error({.vcpus = {{0, 0}}},
                  {.kind = Quantity::Kind::kLongest, .metric = Metric::kResidency}, {}),
            "INVALID_ARGUMENT: there is no longest(residency) to measure");
  for (const double percentile : {0.0, 100.0}) {
    EXPECT_THAT(
        error(
            {.vcpus = {{0, 0}}},
            {.kind = Quantity::Kind::kPercentile, .metric = Metric::kIpc, .percentile = percentile},
            {}),
        HasSubstr("to measure"));
  }
}

TEST(Measure, SaysWhyThereIsNothingToMeasure) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0}, .unopened = {1}, .degraded = true});
  recording.Draw("HHHHHNNNNN");
  const std::string path = recording.Finish();
  const auto spinning = Measure(path, {.vcpus = {{0, 0}}}, {.metric = Metric::kSpinning}, {});
  EXPECT_EQ(spinning.status().ToString(),
            "FAILED_PRECONDITION: spinning needs hardware counters, and none was read");
  const auto halted = Measure(path, {.vcpus = {{1, 1}}}, {.metric = Metric::kHalted}, {});
  EXPECT_EQ(halted.status().ToString(),
            "FAILED_PRECONDITION: VM guest1 vCPU 1 could not be opened: EACCES: Permission denied; "
            "perf_event_paranoid is 3");
}

}  // namespace
}  // namespace vcpulse::check
