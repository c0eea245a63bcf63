// Two drawn timelines compared: who is matched with whom, what the numbers are, what is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "monitor/compare/compare.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::compare {
namespace {

// Quantities that are compared of each vCPU.
const auto kAsked =
    static_cast<size_t>(std::ranges::count_if(metric::Table(), &metric::Info::asked));

using check::DrawnRecording;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string Times(const std::string& letters, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += letters;
  return all;
}

absl::StatusOr<Comparison> Compare(DrawnRecording& a, DrawnRecording& b,
                                   const CompareOptions& options = {}) {
  return CompareTimelines(std::vector{a.Finish()}, std::vector{b.Finish()}, options);
}

const Row* Find(const Comparison& comparison, Metric metric, uint32_t vcpu = 0,
                const std::optional<std::string>& phase = std::nullopt) {
  for (const Row& row : comparison.rows) {
    if (row.metric == metric && row.vcpu == vcpu && row.phase == phase) return &row;
  }
  return nullptr;
}

TEST(Compare, SharesAndIpcAreThoseOfTheReport) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw(Times("HSPU", 20));
  b.Draw(Times("HSSP", 20));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const Row* const spinning = Find(*comparison, Metric::kSpinning);
  ASSERT_NE(spinning, nullptr);
  EXPECT_DOUBLE_EQ(*spinning->a.value, 0.25);
  EXPECT_DOUBLE_EQ(*spinning->b.value, 0.50);
  EXPECT_DOUBLE_EQ(*spinning->difference, 0.25);
  EXPECT_EQ(spinning->a.ticks, 80u);
  // Of what was not HALTED: S 0.5, P 2, U 0.9.
  EXPECT_NEAR(*Find(*comparison, Metric::kIpc)->a.value, 3.4 / 3, 1e-6);
  EXPECT_NEAR(*Find(*comparison, Metric::kResidency)->a.value, 0.75, 1e-6);
  EXPECT_DOUBLE_EQ(*Find(*comparison, Metric::kUnknown)->difference, -0.25);
  EXPECT_EQ(Find(*comparison, Metric::kStarved)->a.value, 0.0);
  EXPECT_THAT(comparison->warnings, ElementsAre("both are the same recording"));  // of one stream
}

TEST(Compare, TicksWithoutVerdictAndGapsAreMissing) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw(Times("SP", 20) + "????" + Times("SP", 20));
  b.Draw(Times("SP", 40));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_DOUBLE_EQ(*Find(*comparison, Metric::kSpinning)->a.value, 0.5);
  EXPECT_EQ(Find(*comparison, Metric::kSpinning)->verdict, Verdict::kNotToldApart);
}

TEST(Compare, AClearShiftDiffersAndIsFirst) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw(Times("HPPHPHPPHS", 20));
  b.Draw(Times("HPSHSHPSHS", 20));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->rows.front().verdict, Verdict::kDiffers);
  EXPECT_EQ(Find(*comparison, Metric::kSpinning)->verdict, Verdict::kDiffers);
  EXPECT_EQ(Find(*comparison, Metric::kHalted)->verdict, Verdict::kNotToldApart);
  const auto told = static_cast<size_t>(
      std::ranges::count_if(comparison->rows, [](const Row& r) { return r.contrast.has_value(); }));
  EXPECT_EQ(comparison->tests, told);
  EXPECT_GE(told, 7u);
  const std::string text = RenderText(*comparison);
  EXPECT_THAT(text, AllOf(HasSubstr("spinning 10.0% 40.0%"), HasSubstr("differs"),
                          HasSubstr("not shown: 3 with 0 in both"), Not(HasSubstr("\x1b["))));
  EXPECT_THAT(RenderJson(*comparison), AllOf(HasSubstr("\"quantity\": \"spinning\""),
                                             HasSubstr("\"tested\": " + std::to_string(told)),
                                             HasSubstr("\"outcome\": null")));
}

TEST(Compare, PhasesAreMatchedByNameAndTheirSpansJoined) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw("[boot]" + Times("P", 10) + "[body]" + Times("SH", 10) + "[boot]" + Times("P", 10) +
         "[body]" + Times("SH", 10));
  b.Draw("[body]" + Times("SH", 20) + "[end]" + Times("P", 10));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->phases, ElementsAre("body"));
  EXPECT_THAT(comparison->notes,
              AllOf(Contains("phases of A that the other recording lacks: boot"),
                    Contains("phases of B that the other recording lacks: end")));
  const Row* const row = Find(*comparison, Metric::kSpinning, 0, "body");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->a.ticks, 40u);
  EXPECT_DOUBLE_EQ(*row->a.value, 0.5);
  EXPECT_DOUBLE_EQ(*row->difference, 0);
  const auto missing = Compare(a, b, {.phase = "boot"});
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("no phase 'boot'; phases are: body, end"));
}

TEST(Compare, WithoutACommonPhaseTheWholeIsCompared) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw("[x]" + Times("SP", 20));
  b.Draw(Times("SP", 20));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->notes, Contains(HasSubstr("the whole recordings are compared")));
  EXPECT_EQ(Find(*comparison, Metric::kHalted)->a.ticks, 40u);
}

TEST(Compare, VmsByNameThenUuidAndWhoIsLeftIsTold) {
  DrawnRecording a;
  DrawnRecording b;
  a.Name(1, "web");
  a.Name(2, "old", "AB-1");
  a.Name(3, "gone");
  b.Name(1, "new", "ab-1");
  b.Name(2, "web");
  for (const uint32_t vm : {1, 2, 3}) a.Begin(vm, {});
  for (const uint32_t vm : {1, 2}) b.Begin(vm, {});
  const std::string s = Times("S", 40);
  const std::string p = Times("P", 40);
  a.Draw({{1, {s}}, {2, {p}}, {3, {s}}});
  b.Draw({{1, {p}}, {2, {s}}});
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->rows.size(), 2 * kAsked);
  for (const Row& row : comparison->rows) {
    EXPECT_EQ(row.difference.value_or(0), 0) << row.vm;
  }
  EXPECT_THAT(comparison->notes, ElementsAre(AllOf(HasSubstr("not compared"), HasSubstr("gone"))));
  const auto only = Compare(a, b, {.vm = "web"});
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(only->rows.size(), kAsked);
  EXPECT_THAT(std::string(Compare(a, b, {.vm = "db"}).status().message()),
              HasSubstr("no VM is called 'db'; VMs are: web, old, gone"));
}

TEST(Compare, TheOnlyVmOfEachIsMatchedAndThatIsSaid) {
  DrawnRecording a;
  DrawnRecording b;
  a.Name(1, "one");
  b.Name(1, "two");
  a.Draw(Times("S", 40));
  b.Draw(Times("S", 40));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->notes, ElementsAre(HasSubstr("one of A is compared with two of B")));
}

TEST(Compare, AVcpuOfOneAloneIsTold) {
  DrawnRecording a;
  DrawnRecording b;
  a.Begin(1, {.vcpus = {0, 1}});
  a.Draw(std::vector<std::string>{Times("S", 40), Times("P", 40)});
  b.Draw(Times("S", 40));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->rows.size(), kAsked);
  EXPECT_THAT(comparison->notes,
              ElementsAre("not compared, as B has no sample of it: VM guest1 vCPU 1"));
}

// A limit on whom nothing was compared of is not known to be kept.
TEST(Compare, LimitsOnWhomNotEachRecordingHasAreInconclusive) {
  DrawnRecording a;
  DrawnRecording b;
  for (const uint32_t vm : {1, 2}) a.Begin(vm, {.vcpus = {0, 1}});
  b.Begin(1, {});
  b.Skip("db", 77, v1::LifeCycle::SKIP_REASON_NOT_OPENED);
  a.Draw({{1, {Times("SP", 40), Times("SP", 40)}}, {2, {Times("S", 80), Times("S", 80)}}});
  b.Draw(Times("SP", 40));
  CompareOptions options{.single_run = true};
  for (const char* limit : {"vm=guest1 vcpu=0: spinning > +50pt", "vm=guest1: spinning > +50pt",
                            "vm=guest2: spinning > +50pt", "vm=db: spinning > +50pt",
                            "vcpu=0: spinning > +50pt", "vm=guest1 vcpu=0,5-7: spinning > +50pt"}) {
    options.limits.push_back(*ParseLimit(limit));
  }
  const auto comparison = Compare(a, b, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  std::vector<std::string> lines;
  for (const JudgedLimit& judged : comparison->limits) {
    const LimitFinding& last = judged.findings.back();
    lines.push_back(std::string(check::ToString(judged.outcome)) + ", " + last.subject + ": " +
                    last.reason);
  }
  EXPECT_THAT(lines, ElementsAre(HasSubstr("PASS, VM guest1 vCPU 0: spinning"),
                                 "INCONCLUSIVE, VM guest1 vCPU 1: no sample of it in B",
                                 "INCONCLUSIVE, VM guest2: in A, but not in all recordings",
                                 "INCONCLUSIVE, VM db: not recorded in B: too many open files",
                                 "INCONCLUSIVE, VM db: not recorded in B: too many open files",
                                 "INCONCLUSIVE, vCPU 5-7: no VM that was compared has it"));
}

TEST(Compare, LimitsAreDecidedOfPhasesInWhichNobodyIsLeftOut) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw("[x]" + Times("SP", 20) + "[y]" + Times("SP", 20));
  b.Draw("[x]" + Times("SP", 20) + "[y]");
  b.Skip("db", 77, v1::LifeCycle::SKIP_REASON_NOT_OPENED);
  b.Draw(Times("SP", 20));
  CompareOptions options{.single_run = true};
  options.limits = {*ParseLimit("phase=x: spinning > +50pt"), *ParseLimit("spinning > +50pt")};
  const auto comparison = Compare(a, b, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->limits[0].outcome, check::Outcome::kPass);
  EXPECT_EQ(comparison->limits[1].findings.back().subject, "VM db phase y");
  EXPECT_EQ(comparison->limits[1].outcome, check::Outcome::kInconclusive);
}

TEST(Compare, NoLimitIsKeptInAPhaseWhereRecordsAreLost) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw("[x]" + Times("SP", 20));
  b.Draw("[x]" + Times("SP", 20));
  b.Flush();
  b.Draw(Times("SP", 20));
  b.Flush(/*lost=*/true);
  b.Draw(Times("SP", 20));
  CompareOptions options{.single_run = true};
  options.limits = {*ParseLimit("spinning > +50pt"), *ParseLimit("spinning > -50pt")};
  const auto comparison = Compare(a, b, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->limits[0].outcome, check::Outcome::kInconclusive);
  EXPECT_THAT(comparison->limits[0].findings[0].reason,
              HasSubstr("records of B are lost, a marker may be among them"));
  EXPECT_EQ(comparison->limits[1].outcome, check::Outcome::kFail);
}

TEST(Compare, DegradedHasNoIpcAndItsLimitIsSkipped) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw(Times("SP", 30));
  b.Draw("%" + Times("NH", 30));
  CompareOptions options;
  options.limits = {*ParseLimit("ipc < -10%")};
  const auto comparison = Compare(a, b, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const Row* const ipc = Find(*comparison, Metric::kIpc);
  EXPECT_TRUE(ipc->a.value);
  EXPECT_FALSE(ipc->b.value);
  EXPECT_FALSE(ipc->difference);
  EXPECT_EQ(ipc->verdict, Verdict::kUntold);
  EXPECT_EQ(comparison->outcome, check::Outcome::kSkip);
  EXPECT_THAT(comparison->warnings, Contains(HasSubstr("B was recorded degraded")));
  EXPECT_THAT(RenderText(*comparison),
              StartsWith("DEGRADED: B: no hardware counter was read\nA: "));
}

TEST(Compare, LimitsChooseTheirRows) {
  DrawnRecording a;
  DrawnRecording b;
  a.Begin(1, {.vcpus = {0, 1}});
  b.Begin(1, {.vcpus = {0, 1}});
  a.Draw(std::vector<std::string>{Times("HPPHS", 40), Times("HPPHS", 40)});
  b.Draw(std::vector<std::string>{Times("HPSHS", 40), Times("HPPHS", 40)});
  CompareOptions options{.single_run = true};
  options.limits = {*ParseLimit("spinning > +5pt"), *ParseLimit("vcpu=1: spinning > +5pt"),
                    *ParseLimit("vcpu=0: productive < -20%"), *ParseLimit("vm=x: ipc < -1%")};
  const auto comparison = Compare(a, b, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  std::vector<check::Outcome> outcomes;
  for (const JudgedLimit& judged : comparison->limits) outcomes.push_back(judged.outcome);
  EXPECT_THAT(outcomes, ElementsAre(check::Outcome::kFail, check::Outcome::kPass,
                                    check::Outcome::kFail, check::Outcome::kInconclusive));
  EXPECT_EQ(comparison->outcome, check::Outcome::kFail);
}

TEST(Compare, SettingsThatDifferAreWarnings) {
  v1::Session other = DrawnRecording::Session();
  other.set_stream_id(std::string(16, '\7'));
  other.set_cpu_model("Another CPU");
  other.set_residency_method(v1::RESIDENCY_METHOD_REF_CYCLES);
  other.mutable_classifier()->set_spinning_below(0.6);
  DrawnRecording a;
  DrawnRecording b(other);
  a.Draw(Times("S", 40));
  b.Draw(Times("S", 40));
  const auto comparison = Compare(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->warnings,
              AllOf(Contains(HasSubstr("CPU models differ: not known in A, Another CPU in B")),
                    Contains(HasSubstr("residency methods differ")),
                    Contains(HasSubstr("thresholds differ"))));
}

// Recordings of streams of their own, each of `letters` 40 times.
class SeveralRuns : public ::testing::Test {
 protected:
  std::vector<std::string> Draw(const std::vector<std::string>& all) {
    std::vector<std::string> paths;
    for (const std::string& letters : all) {
      v1::Session session = DrawnRecording::Session();
      session.set_stream_id(std::string(16, static_cast<char>('a' + runs_.size())));
      runs_.push_back(std::make_unique<DrawnRecording>(session));
      runs_.back()->Draw(Times(letters, 40));
      paths.push_back(runs_.back()->Finish());
    }
    return paths;
  }

  static check::Outcome OutcomeOf(const std::vector<std::string>& before,
                                  const std::vector<std::string>& after, const char* limit) {
    const auto comparison =
        CompareTimelines(before, after, {.limits = {*ParseLimit(limit)}, .single_run = false});
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return comparison->outcome;
  }

  std::vector<std::unique_ptr<DrawnRecording>> runs_;
};

TEST_F(SeveralRuns, AreOneObservationEach) {
  const std::vector<std::string> before = Draw({"SPPPP", "SSPPP", "SPPPP"});
  const std::vector<std::string> after = Draw({"SSSPP", "SSSSP"});
  const auto comparison = CompareTimelines(before, after, {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(comparison->between_runs);
  const Row& row = *Find(*comparison, Metric::kSpinning);
  EXPECT_NEAR(*row.a.value, 0.8 / 3, 1e-12);  // the mean of 0.2, 0.4 and 0.2
  EXPECT_NEAR(*row.b.value, 0.7, 1e-12);
  EXPECT_EQ(row.a.runs, 3u);
  EXPECT_EQ(row.b.runs, 2u);
  EXPECT_EQ(row.a.ticks, 600u);
  const Contrast welch = ContrastOfRuns(std::vector{0.2, 0.4, 0.2}, std::vector{0.6, 0.8}, 1);
  EXPECT_NEAR(row.contrast->low, welch.low, 1e-12);
  EXPECT_NEAR(row.contrast->high, std::min(1.0, welch.high), 1e-12);
  EXPECT_NE(row.verdict, Verdict::kDiffers);  // however many ticks there are
  const std::string text = RenderText(*comparison);
  EXPECT_THAT(text, AllOf(HasSubstr("A3: "), HasSubstr("B2: "), HasSubstr("means of the runs"),
                          Not(HasSubstr("B3: "))));
  EXPECT_THAT(RenderJson(*comparison),
              AllOf(HasSubstr("\"between_run_variance\": true"), HasSubstr("\"label\": \"B2\"")));
}

TEST_F(SeveralRuns, AnIntervalOfAllThatAShareCouldDoIsInsufficientData) {
  const auto comparison = CompareTimelines(Draw({"S", "P"}), Draw({"P", "S"}), {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const Row& row = *Find(*comparison, Metric::kSpinning);
  EXPECT_EQ(row.contrast->low, -1);
  EXPECT_EQ(row.contrast->high, 1);
  EXPECT_EQ(row.verdict, Verdict::kUntold);
  EXPECT_THAT(RenderText(*comparison), HasSubstr("comparisons: differs 0, "));
}

TEST_F(SeveralRuns, LimitsAreJudgedByThemAndOnePerSideIsInconclusive) {
  const std::vector<std::string> before = Draw({"SPPPPPPPPP", "SSPPPPPPPP", "SPPPPPPPPP"});
  const std::vector<std::string> after = Draw({"SSSSSSSPPP", "SSSSSSSSPP", "SSSSSSSPPP"});
  EXPECT_EQ(OutcomeOf(before, after, "spinning > +5pt"), check::Outcome::kFail);
  EXPECT_EQ(OutcomeOf(before, after, "spinning > +95pt"), check::Outcome::kPass);
  EXPECT_EQ(OutcomeOf({before[0]}, {after[0]}, "spinning > +5pt"), check::Outcome::kInconclusive);
  EXPECT_EQ(OutcomeOf({before[0]}, {after[0]}, "spinning > +95pt"), check::Outcome::kInconclusive);
  const auto single =
      CompareTimelines(std::vector{before[0]}, std::vector{after[0]},
                       {.limits = {*ParseLimit("spinning > +5pt")}, .single_run = true});
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_FALSE(single->between_runs);
  EXPECT_EQ(single->outcome, check::Outcome::kFail);
  EXPECT_THAT(RenderText(*single), HasSubstr("the variance between runs is unknown"));
}

TEST_F(SeveralRuns, OneThatDidNotMeasureAQuantityIsNoObservationOfIt) {
  const std::vector<std::string> before = Draw({"H", "P", "S"});
  const std::vector<std::string> after = Draw({"H", "H", "P"});
  const auto comparison = CompareTimelines(before, after, {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const Row& ipc = *Find(*comparison, Metric::kIpc);
  EXPECT_EQ(ipc.a.runs, 2u);
  EXPECT_DOUBLE_EQ(*ipc.a.value, 1.25);  // of 2 and 0.5, not of 0 besides
  EXPECT_EQ(ipc.b.runs, 1u);
  EXPECT_FALSE(ipc.contrast);
  EXPECT_EQ(ipc.verdict, Verdict::kUntold);
  EXPECT_EQ(OutcomeOf(before, after, "ipc < -0.1"), check::Outcome::kInconclusive);
}

TEST_F(SeveralRuns, WhatNotEachHasIsNamed) {
  std::vector<std::string> before = Draw({"[x]S[y]P", "[x]S"});
  const std::vector<std::string> after = Draw({"[x]SP", "[z]P[x]S"});
  const auto comparison = CompareTimelines(before, after, {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->phases, ElementsAre("x"));
  EXPECT_THAT(comparison->notes, ElementsAre("phases of A1 that another recording lacks: y",
                                             "phases of B2 that another recording lacks: z"));
  EXPECT_THAT(std::string(CompareTimelines(before, after, {.phase = "z"}).status().message()),
              AllOf(HasSubstr(before[0]), HasSubstr("phase 'z'")));
  v1::Session other = DrawnRecording::Session();
  other.set_stream_id(std::string(16, 'z'));
  other.set_cpu_model("Another CPU");
  DrawnRecording named(other);
  named.Name(1, "web");
  named.Draw("[x]" + Times("S", 40));
  before.push_back(named.Finish());
  const auto one_named = CompareTimelines(before, after, {});
  ASSERT_TRUE(one_named.ok()) << one_named.status();
  EXPECT_THAT(one_named->notes, Contains(HasSubstr("guest1 of A1 is compared with web of A3")));
  EXPECT_THAT(one_named->warnings,
              Contains(HasSubstr("CPU models differ: not known in A1 and A2 and B1 and B2, Another "
                                 "CPU in A3")));
}

TEST_F(SeveralRuns, TooFewAndTheSameOneTwiceAreRefused) {
  const std::vector<std::string> runs = Draw({"S", "P", "S"});
  const auto message = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    const absl::Status status = CompareTimelines(a, b, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message({runs[0]}, {runs[1], runs[2]}),
              HasSubstr("one recording before and 2 after: the variance between runs needs at "
                        "least 2 recordings per side"));
  EXPECT_THAT(message({runs[1], runs[2]}, {runs[0]}),
              HasSubstr("one recording after and 2 before"));
  EXPECT_THAT(message({runs[0], runs[1]}, {runs[2], runs[0]}),
              AllOf(HasSubstr(runs[0]), HasSubstr("are the same recording")));
  EXPECT_THAT(message({"-", runs[1]}, {"-", runs[0]}), HasSubstr("name files for the others"));
}

TEST(Compare, TwoRecordingsInOneFileAreRefused) {
  DrawnRecording a;
  DrawnRecording b;
  a.Draw(Times("S", 40));
  b.Draw("S");
  b.BeginStream();
  const std::vector<std::string> kStdin = {"-"};
  EXPECT_TRUE(absl::IsInvalidArgument(Compare(a, b).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CompareTimelines(kStdin, kStdin, {}).status()));
}

}  // namespace
}  // namespace vcpulse::compare
