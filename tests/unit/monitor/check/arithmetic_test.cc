// The arithmetic of a check, row by row: each row is drawn, a letter for 100 ms
// (drawn_recording.h), and can be worked out on paper.

#include <limits>
#include <optional>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "monitor/check/check.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::check {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMs = 1e6;

struct ArithmeticRow {
  const char* why;
  const char* drawn;
  const char* expectation;
  Outcome outcome;
  double low = 0;
  double high = 0;
  const char* phase = nullptr;
  int64_t skip_first_ms = 0;
};

void PrintTo(const ArithmeticRow& row, std::ostream* out) {
  *out << row.why << ": \"" << row.drawn << "\" " << row.expectation;
}

class CheckArithmetic : public ::testing::TestWithParam<ArithmeticRow> {};

constexpr auto kPass = Outcome::kPass;
constexpr auto kFail = Outcome::kFail;
constexpr auto kInconclusive = Outcome::kInconclusive;
constexpr auto kSkip = Outcome::kSkip;

TEST_P(CheckArithmetic, GivesTheBoundsAndTheOutcome) {
  const ArithmeticRow& row = GetParam();
  DrawnRecording recording;
  recording.Draw(row.drawn);
  const auto expectation = ParseExpectation(row.expectation);
  ASSERT_TRUE(expectation.ok()) << expectation.status();
  CheckOptions options{
      .skip_first_ns = row.skip_first_ms * 1'000'000, .min_ticks = 1, .min_measured = 0};
  if (row.phase != nullptr) options.phase = row.phase;
  const auto result = CheckTimeline(recording.Finish(), {{*expectation}}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->judged.size(), 1u);
  ASSERT_EQ(result->judged[0].findings.size(), 1u);
  const Finding& finding = result->judged[0].findings[0];
  EXPECT_EQ(finding.outcome, row.outcome) << finding.reason;
  EXPECT_EQ(result->judged[0].outcome, row.outcome);
  EXPECT_EQ(result->outcome, row.outcome);
  if (row.outcome == kSkip) {
    EXPECT_EQ(finding.observed, std::nullopt);
    return;
  }
  ASSERT_TRUE(finding.observed.has_value()) << finding.reason;
  EXPECT_DOUBLE_EQ(finding.observed->low, row.low);
  EXPECT_DOUBLE_EQ(finding.observed->high, row.high);
}

// Of ten ticks a letter each is 10 %.
const ArithmeticRow kShares[] = {
    {"all of it known: low and high are one", "SSSPPPPPPP", "spinning <= 30%", kPass, 0.3, 0.3},
    {"a limit that is met is no more than that", "SSSPPPPPPP", "spinning < 30%", kFail, 0.3, 0.3},
    {"at least, met exactly", "SSSPPPPPPP", "productive >= 70%", kPass, 0.7, 0.7},
    {"above, met exactly", "SSSPPPPPPP", "productive > 70%", kFail, 0.7, 0.7},
    {"HALTED is its own band", "HHSPPPPPPP", "halted <= 20%", kPass, 0.2, 0.2},
    {"UNKNOWN may have been it: all of [0.3, 0.5] is below", "SSSUUPPPPP", "spinning <= 50%", kPass,
     0.3, 0.5},
    {"some of [0.3, 0.5] is above", "SSSUUPPPPP", "spinning <= 40%", kInconclusive, 0.3, 0.5},
    {"none of [0.3, 0.5] is below", "SSSUUPPPPP", "spinning <= 20%", kFail, 0.3, 0.5},
    {"the same UNKNOWN may have been another band", "SSSUUPPPPP", "productive >= 60%",
     kInconclusive, 0.5, 0.7},
    {"and halted", "SSSUUPPPPP", "halted > 20%", kFail, 0, 0.2},
    {"a tick without a verdict is as unknown", "SS?PPPPPPP", "spinning <= 25%", kInconclusive, 0.2,
     0.3},
    {"a missed tick: the joined window tells of its last half", "SSS.PPPPPP", "spinning <= 35%",
     kInconclusive, 0.3, 0.4},
    {"two missed ticks: of its last third", "SSS..PPPPP", "productive >= 50%", kPass, 0.5, 0.7},
    {"what no sample covers at the end is unknown", "SSSPPPPP..", "spinning >= 50%", kInconclusive,
     0.3, 0.5},
    {"and before the first sample", "..SSSPPPPP", "spinning >= 50%", kInconclusive, 0.3, 0.5},
    {"nothing known at all", "UUUUUUUUUU", "productive >= 0%", kPass, 0, 1},
    {"UNKNOWN itself: what is missing may be it", "UU.PPPPPPP", "unknown <= 20%", kInconclusive,
     0.2, 0.3},
    {"UNKNOWN itself: a band is not", "UUSHPPPPPP", "unknown <= 20%", kPass, 0.2, 0.2},
    {"UNKNOWN itself: without a verdict it may be", "UU?PPPPPPP", "unknown > 30%", kFail, 0.2, 0.3},
    {"starved, whatever the band", "sphuPPPPPP", "starved <= 40%", kPass, 0.4, 0.4},
    {"starved: UNKNOWN says nothing against knowing that it did not wait", "spUUPPPPPP",
     "starved <= 20%", kPass, 0.2, 0.2},
    {"starved: without a verdict nothing is said", "sp?PPPPPPP", "starved < 30%", kInconclusive,
     0.2, 0.3},
    {"residency: R is in the guest for half of the time", "RRRRSSSHHH", "residency >= 50%", kPass,
     0.5, 0.5},
    {"residency: what is missing may have been all or nothing", "RRRRSSS.HH", "residency <= 50%",
     kInconclusive, 0.5, 0.6},
    {"gaps are exact", "SSS.PPPPPP", "gaps <= 10%", kPass, 0.1, 0.1},
    {"gaps above their limit", "SSS..PPPPP", "gaps <= 10%", kFail, 0.2, 0.2},
    {"UNKNOWN is not a gap", "SSUU?PPPPP", "gaps <= 0%", kPass, 0, 0},
    {"before the first sample of an epoch there is no gap", "..SSSPPPPP", "gaps <= 0%", kPass, 0,
     0},
    {"but for two intervals at most", "....SPPPPP", "gaps <= 10%", kFail, 0.2, 0.2},
    {"after the last one, none was due for an interval", "SSSPPPPP..", "gaps <= 10%", kPass, 0.1,
     0.1},
    {"the same before another epoch", "SSS.^PPPPPP", "gaps <= 0%", kPass, 0, 0},
    {"an epoch of one interval without a sample", "SSS^.^PPPPPP", "gaps <= 0%", kPass, 0, 0},
    {"of two, one was due", "SSS^..^PPPPP", "gaps <= 10%", kPass, 0.1, 0.1},
    {"the next epoch's first sample comes an interval late", "SSS^.PPPPPP", "spinning <= 35%",
     kInconclusive, 0.3, 0.4},
};

const ArithmeticRow kTimes[] = {
    {"a phase runs to the next marker", "PPP[a]SSSPP[b]SSSSS", "spinning <= 60%", kPass, 0.6, 0.6,
     "a"},
    {"the last phase runs to the end", "PPP[a]SSSPP[b]SSSSP", "spinning <= 80%", kPass, 0.8, 0.8,
     "b"},
    {"a name that comes again is a second span: 3 + 1 of 5 + 5", "[a]SSSPP[b]SSSSS[a]SPPPP[b]SS",
     "spinning <= 40%", kPass, 0.4, 0.4, "a"},
    {"at once: two spans", "[a]SSSPP[a]SPPPP[b]SS", "spinning <= 40%", kPass, 0.4, 0.4, "a"},
    {"the first 200 ms of each span are skipped: 1 + 0 of 3 + 3", "[a]SSSPP[b]SS[a]SPPPP[b]SS",
     "spinning < 20%", kPass, 1.0 / 6, 1.0 / 6, "a", 200},
    {"a span shorter than what is skipped has nothing left", "[a]S[b]SS[a]SSSPP", "spinning < 40%",
     kPass, 1.0 / 3, 1.0 / 3, "a", 200},
    {"without a phase the recording's first 200 ms are skipped", "SSPPPPPPPP", "spinning <= 0%",
     kPass, 0, 0, nullptr, 200},
    {"a missed tick at its start: half of the phase", "SS[a].P[b]SS", "productive >= 50%", kPass,
     0.5, 1, "a"},
    {"what was missed before a phase is not of it", "SS.[a]P[b]SS", "productive >= 100%", kPass, 1,
     1, "a"},
    {"a pause of the recording is not a time of the vCPU: 3 of 8", "SSSPP(..)PPP", "spinning < 38%",
     kPass, 0.375, 0.375},
    {"nor a gap", "SSSPP(..)PPP", "gaps <= 0%", kPass, 0, 0},
    {"after its VM ended a vCPU is not there", "SSSPPP!....", "spinning <= 50%", kPass, 0.5, 0.5},
    {"but of a phase that it did not see the end of, the rest is unknown", "[a]SSSPP!.....",
     "spinning <= 50%", kInconclusive, 0.3, 0.8, "a"},
    {"which makes no PASS of a FAIL", "[a]SSSPP!.....", "spinning <= 20%", kFail, 0.3, 0.8, "a"},
    {"nor is it known whether there were gaps", "[a]SSSPP!.....", "gaps <= 10%", kInconclusive, 0,
     0.5, "a"},
    {"only to the end of that span", "[a]SSSPP![b].....[a]....", "spinning <= 60%", kPass, 0.6, 0.6,
     "a"},
    {"another epoch of the same vCPU goes on", "SSS^PPPPPPP", "spinning <= 30%", kPass, 0.3, 0.3},
};

const ArithmeticRow kDegraded[] = {
    {"without counters: bands cannot be told", "%HHNNNNNNNN", "spinning <= 5%", kSkip},
    {"nor what is UNKNOWN of them", "%HHNNNNNNNN", "unknown <= 5%", kSkip},
    {"nor residency", "%HHNNNNNNNN", "residency <= 5%", kSkip},
    {"nor the IPC", "%HHNNNNNNNN", "ipc.p50 >= 1", kSkip},
    {"nor runs of bands", "%HHNNNNNNNN", "longest(productive) <= 1s", kSkip},
    {"but on a CPU it surely was not HALTED", "%HHNNNNNNNN", "halted <= 20%", kPass, 0.2, 0.2},
    {"nor was its run of HALTED longer", "%HHNNNNNNNN", "longest(halted) <= 200ms", kPass,
     200 * kMs, 200 * kMs},
    {"another UNKNOWN without counters may have been", "%HHUNNNNNNN", "halted <= 20%",
     kInconclusive, 0.2, 0.3},
    {"with counters UNKNOWN(no-counters) would say nothing", "HHNPPPPPPP", "halted <= 20%",
     kInconclusive, 0.2, 0.3},
    {"starved is judged", "%HHnnNNNNNN", "starved <= 20%", kPass, 0.2, 0.2},
    {"and gaps", "%HH.NNNNNNN", "gaps <= 10%", kPass, 0.1, 0.1},
    {"counters for a part of the time: the other part is unknown", "SPPPP%HNNNN", "spinning <= 20%",
     kInconclusive, 0.1, 0.5},
    {"residency without counters is not known", "RRRRR%NNNNN", "residency >= 25%", kPass, 0.25,
     0.75},
    {"a phase that lies in the part without counters", "SPPPP%[a]HNNNN", "spinning <= 20%", kSkip,
     0, 0, "a"},
};

// Digits are the IPC.
const ArithmeticRow kIpc[] = {
    {"the middle of 1 2 3 4 5", "12345", "ipc.p50 >= 3", kPass, 3, 3},
    {"is not above 3", "12345", "ipc.p50 > 3", kFail, 3, 3},
    {"half at or below is enough: of 1 2 3 4 it is 2", "1234", "ipc.p50 <= 2", kPass, 2, 2},
    {"and not below 2", "1234", "ipc.p50 < 2", kFail, 2, 2},
    {"order does not count", "53142", "ipc.p50 >= 3", kPass, 3, 3},
    {"p90 of ten is the ninth", "1234567899", "ipc.p90 <= 9", kPass, 9, 9},
    {"p80 of ten is the eighth", "1234567899", "ipc.p80 < 9", kPass, 8, 8},
    {"p1 is the least", "1234567899", "ipc.p1 <= 1", kPass, 1, 1},
    {"p99 is the greatest", "1234567899", "ipc.p99 >= 9", kPass, 9, 9},
    {"HALTED has no IPC and takes no part", "HHHHH12345", "ipc.p50 >= 3", kPass, 3, 3},
    {"UNKNOWN that was counted does: 1 0.9 2, middle 1", "1UP", "ipc.p50 >= 1", kPass, 1, 1},
    {"a missing tick at the low end: 0? 1 2 3 3, middle 2; at the high end 3", "1.233",
     "ipc.p50 >= 2", kPass, 2, 3},
    {"the same is not surely 3", "1.233", "ipc.p50 >= 3", kInconclusive, 2, 3},
    {"and surely not above 3", "1.233", "ipc.p50 > 3", kFail, 2, 3},
    {"no verdict is unknown though counted", "1?233", "ipc.p50 >= 3", kInconclusive, 2, 3},
    {"more than half unknown: it may be anything", "..233", "ipc.p40 >= 0.1", kInconclusive, 0, 3},
    {"the unknown reach the percentile on both sides", "...33", "ipc.p50 >= 0.1", kInconclusive, 0,
     kInfinity},
    {"at 0 the unknown may still be at the limit", "...33", "ipc.p50 >= 0", kPass, 0, kInfinity},
    {"but not below it", "...33", "ipc.p50 < 0", kFail, 0, kInfinity},
    {"time counts, not ticks: a joined window is one tick's", "5.511", "ipc.p50 <= 1",
     kInconclusive, 1, 5},
    {"a phase that cuts ticks off", "999[a]123[b]999", "ipc.p50 <= 2", kPass, 2, 2, "a"},
    {"without counters for a part of the time", "33%NN", "ipc.p50 >= 3", kInconclusive, 0, 3},
};

const ArithmeticRow kLongest[] = {
    {"the longest of three runs", "SPSSPSSSPP", "longest(spinning) <= 300ms", kPass, 300 * kMs,
     300 * kMs},
    {"at the end", "SPSSPPSSSS", "longest(spinning) < 400ms", kFail, 400 * kMs, 400 * kMs},
    {"none", "PPPPP", "longest(spinning) <= 0", kPass, 0, 0},
    {"UNKNOWN may join two runs", "SSUSSPPPPP", "longest(spinning) <= 300ms", kInconclusive,
     200 * kMs, 500 * kMs},
    {"and lengthen one", "PUSSUPPPPP", "longest(spinning) >= 500ms", kFail, 200 * kMs, 400 * kMs},
    {"missing ticks join as well", "SS.SSPPPPP", "longest(spinning) > 200ms", kInconclusive,
     200 * kMs, 500 * kMs},
    {"unknown time alone may have been a run", "SPUUUPPPPP", "longest(spinning) <= 100ms",
     kInconclusive, 100 * kMs, 300 * kMs},
    {"another epoch breaks no run", "SS^SSPPPPP", "longest(spinning) >= 400ms", kPass, 400 * kMs,
     400 * kMs},
    {"two spans of a phase do", "[a]PSS[b]SSS[a]SSP[b]PP", "longest(spinning) <= 200ms", kPass,
     200 * kMs, 200 * kMs, "a"},
    {"but not where they touch", "[a]PSS[a]SSP[b]PP", "longest(spinning) <= 300ms", kFail,
     400 * kMs, 400 * kMs, "a"},
    {"its VM's end within the phase: the run may have gone on", "[a]PSS!...[b]PP",
     "longest(spinning) <= 400ms", kInconclusive, 200 * kMs, 500 * kMs, "a"},
    {"unknown time joins no two spans", "[a]PSU[b]SSS[a]USP[b]PP", "longest(spinning) <= 200ms",
     kPass, 100 * kMs, 200 * kMs, "a"},
    {"a pause of the recording ends a run", "PSS(..)SSP", "longest(spinning) <= 200ms", kPass,
     200 * kMs, 200 * kMs},
    {"a run that goes on from before the phase counts from its start", "SS[a]SSPP",
     "longest(spinning) <= 200ms", kPass, 200 * kMs, 200 * kMs, "a"},
    {"starved is a run of its own, over bands", "spuPPPP", "longest(starved) <= 300ms", kPass,
     300 * kMs, 300 * kMs},
    {"UNKNOWN as a run: known where there is a verdict", "UUPUUUPPPP", "longest(unknown) <= 300ms",
     kPass, 300 * kMs, 300 * kMs},
};

INSTANTIATE_TEST_SUITE_P(Shares, CheckArithmetic, ::testing::ValuesIn(kShares));
INSTANTIATE_TEST_SUITE_P(Times, CheckArithmetic, ::testing::ValuesIn(kTimes));
INSTANTIATE_TEST_SUITE_P(Degraded, CheckArithmetic, ::testing::ValuesIn(kDegraded));
INSTANTIATE_TEST_SUITE_P(Ipc, CheckArithmetic, ::testing::ValuesIn(kIpc));
INSTANTIATE_TEST_SUITE_P(Longest, CheckArithmetic, ::testing::ValuesIn(kLongest));

}  // namespace
}  // namespace vcpulse::check
