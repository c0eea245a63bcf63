#include "monitor/metric/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/unit/fixtures/made_interval.h"

namespace vcpulse::metric {
namespace {

using core::Band;
using ::testing::Optional;

Totals TotalsOf(const std::vector<Made>& intervals, const IntervalMaker& maker = IntervalMaker()) {
  Totals totals;
  for (const Made& made : intervals) {
    maker.With(made, [&totals](const Interval& interval) { totals.Add(interval); });
  }
  return totals;
}

TEST(MetricTable, KeysAreToldApartAndFound) {
  std::set<std::string_view> keys;
  for (const Info& info : Table()) {
    EXPECT_TRUE(keys.insert(info.key).second) << info.key;
    EXPECT_EQ(FindMetric(info.key), info.metric);
    EXPECT_FALSE(info.label.empty() || info.help.empty()) << info.key;
    EXPECT_NE(info.of, nullptr);
    EXPECT_EQ(info.IsShare(), info.unit_text.empty()) << info.key;
    if (info.IsShare() || info.metric == Metric::kIpc) continue;
    EXPECT_EQ(info.report_key, info.key) << "as the page takes it from the report";
  }
  EXPECT_EQ(FindMetric("gaps"), std::nullopt);
  EXPECT_EQ(FindMetric(""), std::nullopt);
}

TEST(MetricRatio, IsNothingWithoutAWhole) {
  EXPECT_EQ((Ratio{.part = 1, .whole = 0}).Value(), std::nullopt);
  EXPECT_EQ((Ratio{.part = 0, .whole = 0}).Value(), std::nullopt);
  EXPECT_EQ((Ratio{.part = INFINITY, .whole = 1}).Value(), std::nullopt);
  EXPECT_EQ((Ratio{.part = NAN, .whole = 1}).Value(), std::nullopt);
  EXPECT_THAT((Ratio{.part = 0, .whole = 4}).Value(), Optional(0.0));
  EXPECT_THAT((Ratio{.part = 1, .whole = 4}).Value(), Optional(0.25));
}

TEST(MetricTotals, BandsAreSharesOfTheJudgedTime) {
  const Totals totals = TotalsOf({{.end_ns = 100, .verdict = {}},
                                  {.end_ns = 100, .verdict = {.band = Band::kHalted}},
                                  {.end_ns = 300, .verdict = {.band = Band::kSpinning}}});
  EXPECT_EQ(totals.MeasuredNs(), 500);
  EXPECT_EQ(totals.JudgedNs(), 400);
  EXPECT_EQ(totals.UnjudgedNs(), 100);
  EXPECT_THAT(totals.Value(Metric::kHalted), Optional(0.25));
  EXPECT_THAT(totals.Value(Metric::kSpinning), Optional(0.75));
  EXPECT_THAT(totals.Value(Metric::kUnknown), Optional(0.0));
  EXPECT_EQ(Totals().Value(Metric::kUnknown), std::nullopt);
}

TEST(MetricTotals, StarvedIsKnownWhereItWasMeasuredOrTheVerdictSaysSo) {
  const auto starved = [](const Made& made) {
    return IntervalMaker().With(made, [](const Interval& i) { return i.Starved(); });
  };
  EXPECT_EQ(starved({.verdict = {.band = Band::kHalted}, .run_delay_ns = 0}), false);
  EXPECT_EQ(starved({.verdict = {.band = Band::kHalted}, .run_delay_ns = {}}), std::nullopt);
  EXPECT_EQ(starved({.verdict = {.band = Band::kUnknown, .starved = true}, .run_delay_ns = {}}),
            true);
  EXPECT_EQ(starved({.verdict = {}, .run_delay_ns = 5}), std::nullopt) << "no verdict";
  const Totals totals =
      TotalsOf({{.end_ns = 300, .verdict = {.band = Band::kHalted}},
                {.verdict = {.band = Band::kUnknown, .starved = true}, .run_delay_ns = {}},
                {.verdict = {.band = Band::kHalted}, .run_delay_ns = {}}});
  EXPECT_THAT(totals.Value(Metric::kStarved), Optional(0.25));
}

TEST(MetricTotals, NumbersAreOfBusyTimeAndSharesOfAllOfIt) {
  const Totals totals = TotalsOf(
      {{.verdict = {.band = Band::kHalted}, .counts = {100, 900}, .residency = 0.0},
       {.verdict = {}, .counts = {100, 900}, .residency = std::nullopt},
       {.verdict = {.band = Band::kSpinning}, .counts = {100, 50}, .residency = 1.0},
       {.verdict = {.band = Band::kUnknown}, .counts = {300, 550}, .residency = std::nullopt}});
  EXPECT_THAT(totals.Value(Metric::kIpc), Optional(1.5));
  EXPECT_THAT(totals.Value(Metric::kResidency), Optional(0.5));
  EXPECT_EQ(totals.Value(Metric::kCacheMissRate), std::nullopt) << "not counted";
  // Instructions of no cycle are of no IPC.
  EXPECT_THAT(TotalsOf({{.verdict = {.band = Band::kSpinning}, .counts = {0, 900}},
                        {.verdict = {.band = Band::kSpinning}, .counts = {100, 100}}})
                  .Value(Metric::kIpc),
              Optional(1.0));
}

TEST(MetricTotals, MergeAsIfAllHadBeenAddedToOne) {
  const std::vector<Made> first = {{.verdict = {.band = Band::kProductive}, .counts = {10, 20}}};
  const std::vector<Made> second = {{.end_ns = 300, .verdict = {.band = Band::kHalted}},
                                    {.verdict = {.band = Band::kSpinning}, .counts = {30, 20}}};
  std::vector<Made> all = first;
  all.insert(all.end(), second.begin(), second.end());
  Totals merged = TotalsOf(first);
  merged.Add(TotalsOf(second));
  const Totals together = TotalsOf(all);
  for (const Info& info : Table()) {
    EXPECT_EQ(merged.Value(info.metric), together.Value(info.metric)) << info.key;
  }
  Totals half;
  half.Add(together, 0.5);
  EXPECT_EQ(half.MeasuredNs(), together.MeasuredNs() / 2);
  EXPECT_EQ(half.Value(Metric::kIpc), together.Value(Metric::kIpc));
}

TEST(MetricTotals, NoCountersIsWhatHadNoneInAllOfItsBusyTime) {
  const Made halted{.verdict = {.band = Band::kHalted}};
  const Made without{.verdict = {.band = Band::kUnknown, .rule = core::Rule::kNoCounters}};
  EXPECT_FALSE(TotalsOf({}).HadNoCounters());
  EXPECT_FALSE(TotalsOf({halted}).HadNoCounters());
  EXPECT_TRUE(TotalsOf({halted, without}).HadNoCounters());
  EXPECT_FALSE(TotalsOf({halted, without, {.verdict = {.band = Band::kSpinning}}}).HadNoCounters());
}

TEST(MetricGhz, IsCyclesPerTimeRunning) {
  const auto ghz = [](const Made& made, const IntervalMaker& maker = IntervalMaker()) {
    return maker.With(made, [](const Interval& i) { return ValueOf(Metric::kGhz, i); });
  };
  EXPECT_THAT(ghz({.end_ns = 100, .counts = {250}}), Optional(2.5));
  EXPECT_THAT(ghz({.end_ns = 100, .counts = {50}, .running = 0.2}), Optional(2.5));
  EXPECT_EQ(ghz({.counts = {0}, .running = 0}), std::nullopt) << "never on the PMU";
  EXPECT_EQ(ghz({.counts = {250}}, IntervalMaker({"instructions"})), std::nullopt);
  // Of busy time alone, weighed by the time running.
  EXPECT_THAT(TotalsOf({{.verdict = {.band = Band::kHalted}, .counts = {900}},
                        {.verdict = {.band = Band::kSpinning}, .counts = {100}, .running = 0.5},
                        {.verdict = {.band = Band::kProductive}, .counts = {200}}})
                  .Value(Metric::kGhz),
              Optional(2.0));
}

TEST(MetricBranchMissRate, IsMissesPerBranch) {
  const auto rate = [](const Made& made, const IntervalMaker& maker) {
    return maker.With(made, [](const Interval& i) { return ValueOf(Metric::kBranchMissRate, i); });
  };
  const IntervalMaker maker({"branches", "branch-misses"});
  EXPECT_THAT(rate({.counts = {400, 1}}, maker), Optional(0.0025));
  EXPECT_THAT(rate({.counts = {400, 0}}, maker), Optional(0.0));
  EXPECT_EQ(rate({.counts = {0, 0}}, maker), std::nullopt) << "no branch";
  EXPECT_EQ(rate({.counts = {400}}, IntervalMaker({"branches"})), std::nullopt);
}

// Counters of Prometheus: nothing where nothing is known, scaled where the group shared the PMU.
TEST(MetricCounters, AreScaledAndSayWhatIsNotCounted) {
  const auto cycles = [](const Made& made, const IntervalMaker& maker) {
    return maker.With(made, InfoOf(Metric::kIpc).counters[0].of);
  };
  const IntervalMaker counted;
  EXPECT_THAT(cycles({.counts = {100}}, counted), Optional(100.0));
  EXPECT_THAT(cycles({.counts = {100}, .running = 0.25}, counted), Optional(400.0));
  EXPECT_EQ(cycles({.counts = {100}, .running = 0}, counted), std::nullopt);
  EXPECT_EQ(cycles({.counts = {100}}, IntervalMaker({"instructions"})), std::nullopt);
}

// What one grew by over the other is the metric, whatever share of the PMU the group had.
TEST(MetricCounters, OfGhzGiveTheFrequency) {
  for (const double running : {1.0, 0.25}) {
    const Made made{.end_ns = 1000, .counts = {750}, .running = running};
    const IntervalMaker maker;
    const auto cycles = maker.With(made, InfoOf(Metric::kIpc).counters[0].of);
    const auto time = maker.With(made, InfoOf(Metric::kGhz).counters[0].of);
    EXPECT_DOUBLE_EQ(*cycles / *time, 0.75 / running);
    EXPECT_THAT(maker.With(made, [](const Interval& i) { return ValueOf(Metric::kGhz, i); }),
                Optional(0.75 / running));
  }
  EXPECT_EQ(IntervalMaker().With({.running = 0}, InfoOf(Metric::kGhz).counters[0].of),
            std::nullopt);
}

// docs/metrics.md lists what the table has.
std::string Text(std::string_view text) { return std::string(text); }

std::string MetricRow(const Info& info) {
  const std::string unit = info.IsShare() ? "share" : Text(info.unit_text);
  std::string json = "`" + Text(info.report_key) + "`";
  if (info.report_key.empty()) json = info.IsShare() ? "in `share`" : "in `ipc`";
  return "| `" + Text(info.key) + "` | " + Text(info.label) + " | " + unit + " | " +
         Text(info.help) + " | " + json + " | " + (info.row_decimals > 0 ? "yes" : "") + " | " +
         (info.asked ? "yes" : "") + " |\n";
}

std::string CounterRow(const Counter& counter) {
  return "| `" + Text(counter.name) + "` | " + Text(counter.help) + " |\n";
}

// A halted vCPU's exits count as well, and what was not read has no rate.
TEST(MetricsOfReadings, AreRatesOfAnyBand) {
  StatisticsDelta read;
  read.progress[static_cast<size_t>(Statistic::kExits)] = {.count = 30, .time_ns = 2'000'000'000};
  read.progress[static_cast<size_t>(Statistic::kHaltPollNs)] = {.count = 500'000'000,
                                                                .time_ns = 2'000'000'000};
  Totals totals;
  IntervalMaker().With({.verdict = {.band = Band::kHalted}}, [&](Interval interval) {
    totals.Add(interval);
    EXPECT_EQ(ValueOf(Metric::kExits, interval), std::nullopt);
    EXPECT_EQ(InfoOf(Metric::kExits).counters[0].of(interval), std::nullopt);
    interval.statistics = &read;
    totals.Add(interval);
    EXPECT_EQ(InfoOf(Metric::kExits).counters[0].of(interval), 30);
    EXPECT_EQ(InfoOf(Metric::kMigrations).counters[0].of(interval), std::nullopt);
  });
  EXPECT_THAT(totals.Value(Metric::kExits), Optional(15.0));
  EXPECT_THAT(totals.Value(Metric::kHaltPoll), Optional(250.0));  // ms per second
  EXPECT_EQ(totals.Value(Metric::kMigrations), std::nullopt);
}

TEST(MetricDocs, HaveEachMetricAndEachCounterAndNoOther) {
  std::string wanted;
  for (const Info& info : Table()) wanted += MetricRow(info);
  for (const Info& info : Table()) {
    for (const Counter& counter : info.counters) {
      if (counter.of != nullptr) wanted += CounterRow(counter);
    }
  }
  std::ifstream docs(VCPULSE_METRICS_DOC);
  std::string rows;
  for (std::string line; std::getline(docs, line);) {
    if (line.starts_with("| `")) rows += line + "\n";
  }
  EXPECT_EQ(rows, wanted);
}

}  // namespace

}  // namespace vcpulse::metric
