// Any, sum, == and phases of expectations, over drawn recordings.

#include "monitor/check/quantifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/monitor/check/check_texts.h"

namespace vcpulse::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// VM guest1 with a vCPU per string.
std::string Drawn(DrawnRecording& recording, const std::vector<std::string>& vcpus) {
  DrawnRecording::Epoch epoch;
  epoch.vcpus.clear();
  for (uint32_t i = 0; i < vcpus.size(); ++i) epoch.vcpus.push_back(i);
  recording.Begin(1, epoch);
  recording.Draw(vcpus);
  return recording.Finish();
}

std::string OneLine(const std::vector<std::string>& vcpus, const std::string& text) {
  DrawnRecording recording;
  const std::vector<std::string> lines = LinesOf(Drawn(recording, vcpus), text);
  EXPECT_EQ(lines.size(), 1u);
  return lines.front();
}

TEST(Any, OneSuffices) {
  DrawnRecording recording;
  const std::string path = Drawn(recording, {"PPPPPPPPPP", "SSSSSSSSSS", "HHHHHHHHHH"});
  const Judged judged = Check(path, {"any vcpu=*: spinning >= 50%"}).judged.at(0);
  EXPECT_EQ(judged.outcome, Outcome::kPass);
  EXPECT_THAT(Lines(judged), ElementsAre("any vcpu=*: PASS"));
  EXPECT_EQ(judged.findings[0].of, "VM guest1 vCPU 1");
  EXPECT_EQ(judged.findings[0].vcpu, 1u);
  EXPECT_EQ(judged.findings[0].observed, (Bounds{1, 1}));
}

TEST(Any, AllThatFailAreAFailOfTheNearest) {
  EXPECT_EQ(OneLine({"PPPPPPPPPP", "PPPPPPSSSS", "PPPPPPPPSS"}, "any vcpu=0-2: spinning > 50%"),
            "any vcpu=0-2: FAIL, none of 3, nearest VM guest1 vCPU 1: spinning 40.0 %, wanted > "
            "50 %; worst 40.0 % from 0.0 s to 1.0 s");
  EXPECT_THAT(OneLine({"SSSSSSSSSS", "SSSSSSPPPP"}, "any vcpu=*: spinning < 50%"),
              HasSubstr("none of 2, nearest VM guest1 vCPU 1: spinning 60.0 %"));
}

TEST(Any, OneThatMightSufficeIsInconclusive) {
  EXPECT_EQ(OneLine({"PPPPPPPPPP", "SSSSUUUUUU"}, "any vcpu=*: spinning >= 50%"),
            "any vcpu=*: INCONCLUSIVE, VM guest1 vCPU 1: spinning 40.0 % to 100.0 %, wanted >= "
            "50 %: 60.0 % of 1.0 s is not known");
  EXPECT_EQ(OneLine({"PPPPPPPPPP"}, "any vcpu=0,7: spinning >= 50%"),
            "any vcpu=0,7: INCONCLUSIVE, vcpu=0,7: VM guest1 has vCPUs 0, no 7");
  EXPECT_EQ(OneLine({"SSSSSSSSSS"}, "any vcpu=0,7: spinning >= 50%"), "any vcpu=0,7: PASS");
}

Finding With(const std::string& subject, Outcome outcome) {
  Finding finding;
  finding.subject = subject;
  finding.outcome = outcome;
  finding.reason = outcome == Outcome::kPass ? "" : "because";
  return finding;
}

TEST(Any, WhatWasSkippedMightHaveSufficed) {
  const Finding fail = With("a", Outcome::kFail);
  const Finding skip = With("b", Outcome::kSkip);
  EXPECT_EQ(AnyOf({}, "any", {fail, skip}).outcome, Outcome::kInconclusive);
  EXPECT_EQ(AnyOf({}, "any", {skip, skip}).outcome, Outcome::kSkip);
  EXPECT_EQ(AnyOf({}, "any", {skip, With("c", Outcome::kPass)}).outcome, Outcome::kPass);
  EXPECT_EQ(AnyOf({}, "any", {skip, fail}).reason, "b: because");
}

TEST(Sum, AddsTheSharesUp) {
  const std::vector<std::string> vcpus = {"PPPPPPPPPP", "PPPPPPSSSS", "HHHHHHHHHH"};
  EXPECT_EQ(OneLine(vcpus, "sum vcpu=*: productive >= 160%"), "sum vcpu=*: PASS");
  EXPECT_EQ(OneLine(vcpus, "sum vcpu=*: productive == 160%"), "sum vcpu=*: PASS");
  EXPECT_EQ(OneLine(vcpus, "sum vm=guest1: productive < 160%"),
            "sum vm=guest1: FAIL, 3 vCPUs: productive 160.0 %, wanted < 160 %");
}

TEST(Sum, UnknownTimeMakesItARange) {
  const std::vector<std::string> vcpus = {"SSSSSSSSSS", "UUUUUPPPPP"};
  EXPECT_EQ(OneLine(vcpus, "sum vcpu=*: spinning <= 150%"), "sum vcpu=*: PASS");
  EXPECT_EQ(OneLine(vcpus, "sum vcpu=*: spinning <= 120%"),
            "sum vcpu=*: INCONCLUSIVE, 2 vCPUs: spinning 100.0 % to 150.0 %, wanted <= 120 %: "
            "500.0 ms of their time is not known");
}

TEST(Sum, OneThatIsMissingMayAddAnything) {
  const std::string some = "sum vcpu=0,7: spinning ";
  EXPECT_EQ(OneLine({"SSSSSSSSSS"}, some + "<= 300%"),
            "sum vcpu=0,7: INCONCLUSIVE, 1 vCPU: spinning 100.0 % or more, wanted <= 300 %: VM "
            "guest1 has vCPUs 0, no 7");
  EXPECT_EQ(OneLine({"SSSSSSSSSS"}, some + ">= 100%"), "sum vcpu=0,7: PASS");
  EXPECT_THAT(OneLine({"SSSSSSSSSS"}, some + "< 50%"), HasSubstr("FAIL"));
  EXPECT_EQ(OneLine({"SSSSSSSSSS"}, "sum vcpu=7: spinning <= 300%"),
            "sum vcpu=7: INCONCLUSIVE, VM guest1 has vCPUs 0, no 7");
}

// The time of the sum, too, is then not known.
TEST(Sum, OneThatIsMissingMayHaveBeenThereWhenNobodyElseWas) {
  DrawnRecording recording;
  recording.Skip("db", 1002, v1::LifeCycle::SKIP_REASON_NOT_OPENED);
  recording.Draw("PPPPPPPPPPSSSSSSSSSS!");
  recording.Pass(20 * kDrawnTick_ns);
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "sum vm=*: productive >= 50%"),
              ElementsAre(HasSubstr("INCONCLUSIVE, 1 vCPU: productive 25.0 % or more")));
  EXPECT_THAT(LinesOf(path, "sum vm=*: spinning <= 40%"), ElementsAre(HasSubstr("INCONCLUSIVE")));
  EXPECT_THAT(LinesOf(path, "sum vm=*: productive >= 25%"), ElementsAre("sum vcpu=*: PASS"));
}

TEST(Sum, NeedsEvidenceOfOneAtLeast) {
  EXPECT_EQ(OneLine({"SSSS", "SSSS"}, "sum vcpu=*: spinning <= 300%"),
            "sum vcpu=*: INCONCLUSIVE, VM guest1 vCPU 0: 4 ticks measured in 400.0 ms, wanted >= "
            "10");
}

// Its vCPUs never ran at the same time as those of its successor.
TEST(Sum, ARestartedVmCountsAsOne) {
  DrawnRecording recording;
  recording.Name(1, "web");
  recording.Name(2, "web");
  recording.Begin(1, {});
  recording.Draw("PPPPPPPPPP!");
  recording.Begin(2, {});
  recording.Draw({{2, {"PPPPPPPPPP"}}});
  const std::string path = recording.Finish();
  const Judged judged = Check(path, {"sum vm=web: productive <= 100%"}).judged.at(0);
  EXPECT_EQ(judged.outcome, Outcome::kPass);
  EXPECT_EQ(judged.findings[0].observed, (Bounds{1, 1}));
  EXPECT_EQ(judged.findings[0].judged_ns, 20 * kDrawnTick_ns);
  EXPECT_EQ(judged.findings[0].ticks, 20u);
}

TEST(Sum, IsSkippedWithoutCounters) {
  DrawnRecording recording;
  recording.Draw("%NNNNNNNNNNNNNNN");
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "sum vcpu=*: spinning <= 300%"),
              ElementsAre(HasSubstr("sum vcpu=*: SKIP, spinning needs hardware counters")));
  EXPECT_THAT(LinesOf(path, "sum vcpu=*: halted <= 0%"), ElementsAre("sum vcpu=*: PASS"));
}

TEST(RunDelay, IsTheShareThatTheSchedulerBooked) {
  DrawnRecording recording;
  recording.waited_percent = 30;
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"PPPPPPPPPP", "HHHHHHHHHH"});
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "run_delay == 30%"),
              ElementsAre("VM guest1 vCPU 0: PASS", "VM guest1 vCPU 1: PASS"));
  EXPECT_THAT(LinesOf(path, "sum vcpu=*: run_delay < 60%"),
              ElementsAre("sum vcpu=*: FAIL, 2 vCPUs: run_delay 60.0 %, wanted < 60 %"));
}

TEST(Equal, HoldsWhereAllIsTheLimit) {
  EXPECT_EQ(OneLine({"PPPPPPPPPP"}, "spinning == 0%"), "VM guest1 vCPU 0: PASS");
  EXPECT_EQ(OneLine({"PPPPPPPPUU"}, "spinning == 0%"),
            "VM guest1 vCPU 0: INCONCLUSIVE, spinning 0.0 % to 20.0 %, wanted == 0 %: 20.0 % of "
            "1.0 s is not known");
  // On the wrong side of 0 is what is high.
  EXPECT_EQ(OneLine({"PPPPPPPPSS"}, "longest(spinning) == 0s"),
            "VM guest1 vCPU 0: FAIL, longest(spinning) 200.0 ms, wanted == 0; worst 200.0 ms from "
            "0.800 s to 1.000 s");
  EXPECT_EQ(OneLine({"PPPPPPPPSS"}, "spinning == 30%"),
            "VM guest1 vCPU 0: FAIL, spinning 20.0 %, wanted == 30 %");
  EXPECT_EQ(OneLine({"2222233333"}, "ipc.p50 == 2"), "VM guest1 vCPU 0: PASS");
}

TEST(Phases, OneRunJudgesAll) {
  DrawnRecording recording;
  recording.Draw("[boot]HHHHHHHHHHHH[load]PPPPPPPPPPPPPPPPPPPP[stop]SSSSSSSSSSSS");
  const Result result =
      Check(recording.Finish(),
            {"phase=boot: halted >= 90%", "phase=load: productive >= 90%",
             "phase=stop: spinning <= 5%", "phase=nope: gaps <= 1%", "unknown <= 1%"},
            {.phase = "load", .skip_first_ns = kSecond_ns / 10});
  ASSERT_EQ(result.judged.size(), 5u);
  EXPECT_EQ(result.judged[0].outcome, Outcome::kPass);
  EXPECT_EQ(result.judged[0].time,
            (JudgedTime{.phase = "boot", .spans = 1, .judged_ns = 11 * kDrawnTick_ns}));
  EXPECT_EQ(result.judged[1].outcome, Outcome::kPass);
  EXPECT_EQ(result.judged[2].outcome, Outcome::kFail);
  EXPECT_EQ(result.judged[3].findings.at(0).reason,
            "no phase 'nope'; phases are: boot, load, stop");
  // Without one of its own it is judged in that of the options.
  EXPECT_EQ(result.judged[4].time, std::nullopt);
  EXPECT_EQ(result.judged[4].findings.at(0).judged_ns, 19 * kDrawnTick_ns);
  EXPECT_EQ(result.phase, "load");
}

TEST(Phases, NotesSayWhichPhaseTheyAreOf) {
  DrawnRecording recording;
  recording.Draw("[a]PPPPPPPPPP(");
  recording.Pass(kSecond_ns);
  recording.Draw(")PPPPPPPPPPP[b]PPPPPPPPPPPP");
  const Result result =
      Check(recording.Finish(), {"phase=a: gaps < 9%", "phase=b: gaps < 9%", "gaps < 9%"});
  EXPECT_THAT(result.notes, ElementsAre("whole recording: the recording was paused for 1.0 s of it",
                                        "phase a: the recording was paused for 1.0 s of it"));
}

}  // namespace
}  // namespace vcpulse::check
