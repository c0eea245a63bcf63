// Limits that are relative to another recording.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/monitor/check/check_texts.h"

namespace vcpulse::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of `now`, held against `before`; both are of one VM with one vCPU.
Result CheckAgainst(const std::string& before, const std::string& now, const std::string& text) {
  DrawnRecording baseline;
  baseline.Draw(before);
  DrawnRecording recording;
  recording.Draw(now);
  CheckOptions options;
  options.baseline = baseline.Finish();
  return Check(recording.Finish(), {text}, options);
}

std::string Line(const std::string& before, const std::string& now, const std::string& text) {
  return Lines(CheckAgainst(before, now, text).judged.at(0)).at(0);
}

constexpr char kPassed[] = "VM guest1 vCPU 0: PASS";

TEST(Baseline, IsTheLimit) {
  EXPECT_EQ(Line("PPPPPPPPSS", "PPPPPPPPSS", "productive >= baseline"), kPassed);
  EXPECT_EQ(Line("PPPPPPPPSS", "PPPPPPPPSS", "productive == baseline"), kPassed);
  EXPECT_EQ(Line("PPPPPPPPSS", "PPPPPPPSSS", "productive >= baseline - 10pt"), kPassed);
  EXPECT_EQ(Line("PPPPPPPPSS", "PPPPPPPSSS", "productive >= baseline - 9pt"),
            "VM guest1 vCPU 0: FAIL, productive 70.0 %, wanted >= 71.0 % (baseline - 9pt); worst "
            "70.0 % from 0.0 s to 1.0 s");
  EXPECT_EQ(Line("PPPPPPPPSS", "PPPPPPSSSS", "productive >= baseline * 0.75"), kPassed);
  EXPECT_THAT(Line("PPPPPPPPSS", "PPPPPPSSSS", "productive >= baseline * 0.76"),
              HasSubstr("wanted >= 60.8 % (baseline * 0.76)"));
  EXPECT_EQ(Line("SSPPPPPPPP", "SSSPPPPPPP", "longest(spinning) <= baseline + 100ms"), kPassed);
  EXPECT_EQ(Line("3333333333", "2222222222", "ipc.p50 >= baseline - 1"), kPassed);
}

// 0.7 + 0.1 is a little less than 0.8.
TEST(Baseline, DecimalsAddUp) {
  EXPECT_EQ(Line("PPPPPPPSSS", "PPPPPPPPSS", "productive <= baseline + 10pt"), kPassed);
}

TEST(Baseline, ItsUnknownTimeIsARange) {
  const std::string before = "PPPPPPPPUU";  // 80 % to 100 %
  EXPECT_EQ(Line(before, "PPPPPPPPPP", "productive >= baseline"), kPassed);
  EXPECT_THAT(Line(before, "PPPPPPPSSS", "productive >= baseline"), HasSubstr("FAIL"));
  EXPECT_EQ(Line(before, "PPPPPPPPPS", "productive >= baseline"),
            "VM guest1 vCPU 0: INCONCLUSIVE, productive 90.0 %, wanted >= 80.0 % to 100.0 % "
            "(baseline): the baseline is a range");
}

TEST(Baseline, WithoutEnoughEvidenceThereIsNoLimit) {
  EXPECT_EQ(Line("PPPP", "PPPPPPPPPP", "productive >= baseline"),
            "VM guest1 vCPU 0: INCONCLUSIVE, baseline: 4 ticks measured in 400.0 ms, wanted >= 10");
  EXPECT_EQ(Line("HHHHHHHHHH", "PPPPPPPPPP", "ipc.p50 >= baseline"),
            "VM guest1 vCPU 0: INCONCLUSIVE, baseline: HALTED all the time, so there is no IPC to "
            "judge");
  EXPECT_THAT(Line("%NNNNNNNNNNNN", "PPPPPPPPPP", "productive >= baseline"),
              HasSubstr("INCONCLUSIVE, baseline: productive needs hardware counters"));
  EXPECT_THAT(Line("PPPPPPPPPP", "[a]PPPPPPPPPP", "phase=a: productive >= baseline"),
              HasSubstr("INCONCLUSIVE, baseline: no phase 'a'; no phase was marked"));
}

TEST(Baseline, IsMeasuredInTheSamePhase) {
  EXPECT_EQ(Line("[a]PPPPPPPPPP[b]SSSSSSSSSS", "[b]SSSSSSSSSS[a]PPPPPPPPPP",
                 "phase=a: productive >= baseline"),
            kPassed);
}

TEST(Baseline, OfVmsByNameAndOfTheOnlyOneWithoutIt) {
  DrawnRecording before;
  before.Name(1, "a");
  before.Name(2, "b");
  before.Begin(1, {});
  before.Begin(2, {});
  before.Draw({{1, {"PPPPPPPPPP"}}, {2, {"SSSSSSSSSS"}}});
  CheckOptions options;
  options.baseline = before.Finish();
  DrawnRecording both;
  both.Name(1, "b");
  both.Name(2, "a");
  both.Begin(1, {});
  both.Begin(2, {});
  both.Draw({{1, {"SSSSSSSSSS"}}, {2, {"PPPPPPPPPP"}}});
  EXPECT_THAT(LinesOf(both.Finish(), "productive == baseline", options),
              ElementsAre("VM b vCPU 0: PASS", "VM a vCPU 0: PASS"));

  DrawnRecording other;
  other.Name(1, "c");
  other.Begin(1, {});
  other.Draw("PPPPPPPPPP");
  const std::string path = other.Finish();
  EXPECT_THAT(LinesOf(path, "productive == baseline", options),
              ElementsAre("VM c vCPU 0: INCONCLUSIVE, baseline: no VM c vCPU 0 was recorded"));

  DrawnRecording only;
  only.Name(1, "d");
  only.Begin(1, {});
  only.Draw("PPPPPPPPPP");
  options.baseline = only.Finish();
  EXPECT_THAT(LinesOf(path, "productive == baseline", options), ElementsAre("VM c vCPU 0: PASS"));
}

TEST(Baseline, IsNotKnownWhereOneOfThatNameWasNotRecorded) {
  DrawnRecording before;
  before.Name(1, "web");
  before.Begin(1, {});
  before.Draw("PPPPPPPPPP!");
  before.Skip("web", 1002, v1::LifeCycle::SKIP_REASON_NOT_OPENED);
  before.Pass(kSecond_ns);
  CheckOptions options;
  options.baseline = before.Finish();
  for (const std::string name : {"web", "db"}) {
    DrawnRecording now;
    now.Name(1, name);
    now.Begin(1, {});
    now.Draw("PPPPPPPPPP");
    EXPECT_THAT(LinesOf(now.Finish(), "productive >= baseline", options),
                ElementsAre("VM " + name + " vCPU 0: INCONCLUSIVE, baseline: " +
                            (name == "web" ? "a VM web was not recorded"
                                           : "VM web (PID 1002) was not recorded from 1.0 s on: "
                                             "too many open files")));
  }
}

TEST(Baseline, OfASumIsASum) {
  DrawnRecording before;
  before.Begin(1, {.vcpus = {0, 1}});
  before.Draw(std::vector<std::string>{"PPPPPPPPPP", "PPPPPSSSSS"});
  CheckOptions options;
  options.baseline = before.Finish();
  DrawnRecording now;
  now.Begin(1, {.vcpus = {0, 1}});
  now.Draw(std::vector<std::string>{"PPPPPPSSSS", "PPPPPPPPPP"});
  const std::string path = now.Finish();
  EXPECT_THAT(LinesOf(path, "sum vcpu=*: productive == baseline + 10pt", options),
              ElementsAre("sum vcpu=*: PASS"));
  EXPECT_THAT(LinesOf(path, "sum vcpu=*: productive < baseline", options),
              ElementsAre("sum vcpu=*: FAIL, 2 vCPUs: productive 160.0 %, wanted < 150.0 % "
                          "(baseline)"));
  EXPECT_THAT(LinesOf(path, "any vcpu=*: productive < baseline", options),
              ElementsAre("any vcpu=*: PASS"));
}

TEST(Baseline, NoPassWhereItsRecordsAreLost) {
  DrawnRecording before;
  before.Draw("[a]PPPPPPPPPP");
  before.Flush();
  before.Draw("PPPPP");
  before.Flush(/*lost=*/true);
  before.Draw("PPPPP");
  CheckOptions options;
  options.baseline = before.Finish();
  DrawnRecording now;
  now.Draw("[a]PPPPPPPPPP");
  const Result result = Check(now.Finish(), {"phase=a: productive <= baseline"}, options);
  EXPECT_THAT(Lines(result.judged.at(0)),
              ElementsAre("VM guest1 vCPU 0: INCONCLUSIVE, baseline: records of the timeline are "
                          "lost, a marker may be among them"));
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("baseline: ")));
}

TEST(Baseline, IsNeeded) {
  DrawnRecording recording;
  recording.Draw("PPPPPPPPPP");
  const std::string path = recording.Finish();
  const auto expectation = ParseExpectation("halted <= baseline");
  EXPECT_EQ(CheckTimeline(path, std::span(&*expectation, 1), {}).status().ToString(),
            "INVALID_ARGUMENT: 'halted <= baseline' needs a baseline timeline, and none is given");
  CheckOptions options;
  options.baseline = "/nonexistent.vpt";
  EXPECT_THAT(CheckTimeline(path, std::span(&*expectation, 1), options).status().ToString(),
              HasSubstr("INVALID_ARGUMENT: --baseline: cannot read /nonexistent.vpt"));
}

}  // namespace
}  // namespace vcpulse::check
