#include "monitor/import/interval_window.h"
#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Those of a whole table.
struct Intervals {
  std::vector<Interval> all;
  uint64_t only_begin = 0;
  bool by_tick = false;
  int64_t median_ns = 0;
};

absl::StatusOr<Intervals> FindIntervals(const Table& table, std::optional<double> max_hz) {
  IntervalFinder finder(0);
  absl::Status taken = finder.Take(table, 0);
  if (!taken.ok()) return taken;
  absl::StatusOr<std::vector<Interval>> all = finder.Release(table, true, false);
  if (!all.ok()) return all.status();
  Survey survey;
  survey.Add(table, *all);
  Prepare(table, survey, max_hz, *all);
  return Intervals{*std::move(all), finder.only_begin(), survey.by_tick(),
                   survey.lengths.Median_ns()};
}

Intervals Find(std::string_view text, std::optional<double> max_hz = {}) {
  const auto table = ParseCsv(text, "x.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  const auto intervals = FindIntervals(*table, max_hz);
  EXPECT_TRUE(intervals.ok()) << intervals.status();
  return intervals.ok() ? *intervals : Intervals();
}

std::vector<std::pair<int64_t, int64_t>> Spans(const Intervals& intervals) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const Interval& interval : intervals.all) {
    spans.emplace_back(interval.begin_ns, interval.end_ns);
  }
  return spans;
}

using P = std::pair<int64_t, int64_t>;

std::string FindError(std::string_view text) {
  const auto table = ParseCsv(text, "x.csv");
  if (!table.ok()) return table.status().ToString();
  return FindIntervals(*table, std::nullopt).status().ToString();
}

TEST(CsvIntervals, InTheOrderOfTime) {
  EXPECT_THAT(Spans(Find("t_ns,dt_ns\n30,10\n10,10\n20,10\n")),
              ElementsAre(P(0, 10), P(10, 20), P(20, 30)));
}

TEST(CsvIntervals, WithoutLengthTheyGoBackToTheRowBefore) {
  const Intervals intervals = Find("t_ns,vcpu\n10,0\n11,1\n20,0\n31,1\n");
  EXPECT_THAT(Spans(intervals), ElementsAre(P(10, 20), P(11, 31)));
  EXPECT_EQ(intervals.only_begin, 2u);
}

TEST(CsvIntervals, ALengthThatIsMissingInOneRow) {
  const Intervals intervals = Find("t_ns,dt_ns\n10,5\n30,\n");
  EXPECT_THAT(Spans(intervals), ElementsAre(P(5, 10), P(10, 30)));
  EXPECT_EQ(intervals.only_begin, 0u);
}

TEST(CsvIntervals, WithoutInstantsLengthsAddUpPerVcpu) {
  EXPECT_THAT(Spans(Find("dt_ns,vcpu\n10,0\n7,1\n20,0\n7,1\n")),
              ElementsAre(P(0, 7), P(0, 10), P(7, 14), P(10, 30)));
  EXPECT_THAT(Spans(Find("t_ns,dt_ns\n100,10\n,10\n")), ElementsAre(P(90, 100), P(100, 110)));
}

TEST(CsvIntervals, NeitherIsRefused) {
  EXPECT_THAT(Refusal("t_ns,dt_ns\n1,1\n,\n"),
              HasSubstr("x.csv: row 3: neither t_ns (when the interval ended) nor dt_ns"));
}

TEST(CsvIntervals, ARepetitionNamesBothRows) {
  EXPECT_EQ(
      Refusal("t_ns,dt_ns,vm\n10,5,a\n10,5,b\n10,5,a\n"),
      "x.csv: row 4, column t_ns: 10 repeats row 2 of the same VM and vCPU: where two VMs have "
      "one name, vm_number, vm_pid or vm_uuid tells them apart");
}

TEST(CsvIntervals, ASumThatIsTooLong) {
  EXPECT_EQ(Refusal("dt_ns\n4611686018427387903\n1\n"),
            "x.csv: row 3, column dt_ns: the sum so far is beyond 2^62 ns");
}

TEST(CsvIntervals, RunningForLongerThanEnabled) {
  EXPECT_EQ(Refusal("t_ns,dt_ns,time_running_ns\n9000000,1000000,1100001\n"),
            "x.csv: row 2, column time_running_ns: 1100001 is more than the interval, which is "
            "1000000");
  EXPECT_EQ(Refusal("t_ns,dt_ns,time_enabled_ns,time_running_ns\n100,10,5,6\n"),
            "x.csv: row 2, column time_running_ns: 6 is more than time_enabled_ns, which is 5");
}

// Each column that can stand for the time enabled, the best that is there.
TEST(CsvIntervals, TimeEnabled) {
  const std::string head = "dt_ns,time_enabled_ns,run_ns,cycles\n";
  const auto enabled = [&](const std::string& row, std::optional<double> max_hz) {
    return Find(head + row, max_hz).all.at(0).time_enabled_ns;
  };
  EXPECT_EQ(enabled("1000,7,8,900", 1e9), 7u);
  EXPECT_EQ(enabled("1000,,8,900", 1e9), 8u);
  EXPECT_EQ(enabled("1000,,,900", 1e9), 900u);
  EXPECT_EQ(enabled("1000,,,2000", 1e9), 1000u);  // faster than --max-hz: no more than there was
  EXPECT_EQ(enabled("1000,,,900", std::nullopt), 1000u);
  EXPECT_EQ(enabled("1000,,,", 1e9), 1000u);
}

TEST(CsvIntervals, TimeRunning) {
  const Intervals intervals =
      Find("dt_ns,time_enabled_ns,time_running_ns,run_ns\n9,8,4,\n9,8,,\n9,,6,5\n");
  EXPECT_EQ(intervals.all.at(0).time_running_ns, 4u);
  EXPECT_EQ(intervals.all.at(1).time_running_ns, 8u);
  EXPECT_EQ(intervals.all.at(2).time_running_ns, 6u);
  EXPECT_EQ(intervals.all.at(2).time_enabled_ns, 6u);  // what was counted was enabled
}

// Windows are sized by it: a VM with short intervals must not go without verdicts.
TEST(CsvIntervals, OneThatBeginsBeforeTheLastEndedIsRefused) {
  EXPECT_EQ(Find("t_ns,dt_ns\n50000000,50000000\n99500000,50000000\n").all.size(), 2u);
  EXPECT_THAT(FindError("t_ns,dt_ns\n50000000,50000000\n99499999,50000000\n"),
              testing::HasSubstr("row 3, column dt_ns: the interval begins 500001 ns before"));
}

TEST(CsvIntervals, NoTimeOnACpuIsBeyondTheInterval) {
  EXPECT_THAT(FindError("dt_ns,time_enabled_ns\n100000000,101000001\n"),
              testing::HasSubstr("row 2, column time_enabled_ns: 101000001 is more than the "
                                 "interval, which is 100000000"));
  EXPECT_EQ(Find("dt_ns,time_enabled_ns\n100000000,101000000\n").all.size(), 1u);
  // Booked at scheduler ticks, so it may run ahead.
  EXPECT_EQ(Find("dt_ns,run_ns\n100000000,120000000\n").all.size(), 1u);
  EXPECT_THAT(FindError("dt_ns,run_ns\n100000000,120000001\n"),
              testing::HasSubstr("column run_ns"));
  // A wait is booked when it ends, however long it was.
  EXPECT_EQ(Find("dt_ns,run_delay_ns\n100000000,900000000\n").all.size(), 1u);
}

// Taken as enabled throughout, an idle vCPU would look as if the host had polled for it.
TEST(CsvIntervals, WithoutTimesTheBusiestRowSetsTheRate) {
  const Intervals intervals = Find("dt_ns,cycles\n1000,3000\n1000,30\n1000,0\n");
  EXPECT_EQ(intervals.all.at(0).time_enabled_ns, 1000u);
  EXPECT_EQ(intervals.all.at(1).time_enabled_ns, 10u);
  EXPECT_EQ(intervals.all.at(2).time_enabled_ns, 0u);
}

TEST(CsvIntervals, TheMedianLength) {
  EXPECT_EQ(Find("dt_ns,cycles\n500,1\n10,1\n400,1\n").median_ns, 400);
  EXPECT_EQ(Lengths().Median_ns(), 0);
  Lengths many;
  for (int64_t i = 0; i < 1'000'000; ++i) many.Add(100'000'000 + i);
  EXPECT_NEAR(static_cast<double>(many.Median_ns()), 100'500'000, 16);
}

TEST(CsvIntervals, SaysWhatStandsForWhat) {
  FieldSet present;
  bool cycles = false;
  EXPECT_THAT(Substitutions(present, cycles, true),
              ElementsAre(HasSubstr("the whole interval"), HasSubstr("time_running_ns is absent")));
  cycles = true;
  EXPECT_THAT(Substitutions(present, cycles, true).at(0), HasSubstr("--max-hz"));
  EXPECT_THAT(Substitutions(present, cycles, false).at(0),
              HasSubstr("the highest rate of any row"));
  present.set(static_cast<size_t>(Field::kRun));
  EXPECT_THAT(Substitutions(present, cycles, true).at(0), HasSubstr("run_ns stands"));
  present.set(static_cast<size_t>(Field::kTimeEnabled));
  present.set(static_cast<size_t>(Field::kTimeRunning));
  EXPECT_THAT(Substitutions(present, cycles, true), ElementsAre(HasSubstr("run_ns is not kept")));
  present.set(static_cast<size_t>(Field::kRunDelay));
  EXPECT_TRUE(Substitutions(present, cycles, true).empty());
}

}  // namespace
}  // namespace vcpulse::importing
