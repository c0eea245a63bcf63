// How intervals become bins, bins wider ones, and both bytes.

#include "monitor/page/bins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "boost/json.hpp"
#include "monitor/page/contents.h"
#include "monitor/page/packing.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/made_interval.h"

namespace vcpulse::page {
namespace {

using metric::Metric;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kHalted = static_cast<size_t>(core::Band::kHalted);
constexpr auto kSpinning = static_cast<size_t>(core::Band::kSpinning);
constexpr auto kProductive = static_cast<size_t>(core::Band::kProductive);
constexpr size_t kPlenty = size_t{1} << 30;
constexpr int64_t kMs = 1'000'000;

// Of one vCPU with cycles and instructions.
class Bins : public ::testing::Test {
 protected:
  static core::Verdict Of(core::Band band, bool starved = false) {
    return {.band = band, .rule = core::Rule::kIpcHigh, .starved = starved};
  }

  void Add(Binner& bins, int64_t begin_ns, int64_t end_ns, core::Verdict verdict,
           uint64_t cycles = 0, uint64_t instructions = 0, size_t column = 0,
           double running = 1.0) {
    maker_.With({.begin_ns = begin_ns,
                 .end_ns = end_ns,
                 .verdict = verdict,
                 .counts = {cycles, instructions},
                 .running = running,
                 .column = column},
                [&bins](const metric::Interval& interval) { bins.Add(interval); });
  }

  // How many numbers a bin of a busy vCPU has.
  size_t NumbersOf() {
    Binner bins({.width_ns = 100, .most_bytes = kPlenty});
    Add(bins, 0, 100, Of(core::Band::kSpinning), 100, 50);
    return Row(bins).numbers.size();
  }

  static const VcpuBins& Row(const Binner& bins, uint32_t vcpu = 0) {
    return bins.rows().at({1, vcpu});
  }

  metric::IntervalMaker maker_;
};

TEST_F(Bins, EachIntervalIsInTheBinsThatItLiesIn) {
  Binner bins({.origin_ns = 1000 * kMs, .width_ns = 100 * kMs, .most_bytes = kPlenty});
  Add(bins, 1000 * kMs, 1100 * kMs, Of(core::Band::kSpinning), 400, 100);
  // A quarter of it in the second bin.
  Add(bins, 1175 * kMs, 1275 * kMs, Of(core::Band::kProductive, true), 400, 800);
  const VcpuBins& row = Row(bins);
  EXPECT_EQ(row.first, 0);
  ASSERT_THAT(row.bins, SizeIs(3));
  EXPECT_DOUBLE_EQ(row.bins[0].Of(Metric::kSpinning).part, 100 * kMs);
  EXPECT_DOUBLE_EQ(row.bins[0].Of(Metric::kIpc).whole, 400);
  EXPECT_DOUBLE_EQ(row.bins[0].Of(Metric::kStarved).part, 0);
  EXPECT_DOUBLE_EQ(row.bins[0].Of(Metric::kStarved).whole, 100 * kMs);
  EXPECT_DOUBLE_EQ(row.bins[1].Of(Metric::kProductive).part, 25 * kMs);
  EXPECT_DOUBLE_EQ(row.bins[1].MeasuredNs(), 25 * kMs) << "the rest is missing, not zero";
  EXPECT_DOUBLE_EQ(row.bins[1].Of(Metric::kIpc).part, 200);
  EXPECT_DOUBLE_EQ(row.bins[2].Of(Metric::kProductive).part, 75 * kMs);
  EXPECT_DOUBLE_EQ(row.bins[2].Of(Metric::kStarved).part, 75 * kMs);
  EXPECT_DOUBLE_EQ(row.bins[2].Of(Metric::kResidency).part, 37.5 * kMs);
  EXPECT_DOUBLE_EQ(row.bins[2].Of(Metric::kResidency).whole, 75 * kMs);
  ASSERT_THAT(row.events, SizeIs(2));
  EXPECT_EQ(row.events[1].name, "instructions");
  EXPECT_EQ(row.events[1].counts[1].count, 200);
  EXPECT_EQ(row.events[1].counts[1].known_ns, 25 * kMs);
  EXPECT_FALSE(row.events[1].estimated);
}

TEST_F(Bins, ABinWithoutASampleIsMissing) {
  Binner bins({.width_ns = 100, .most_bytes = kPlenty});
  Add(bins, 0, 100, Of(core::Band::kHalted));
  Add(bins, 300, 400, Of(core::Band::kHalted));
  const VcpuBins& row = Row(bins);
  ASSERT_THAT(row.bins, SizeIs(4));
  EXPECT_DOUBLE_EQ(row.bins[1].MeasuredNs(), 0);
  EXPECT_EQ(row.events[0].counts[1].known_ns, 0);
  EXPECT_DOUBLE_EQ(row.bins[3].Of(Metric::kHalted).part, 100);
}

TEST_F(Bins, IpcIsOfTheTimeThatWasNotHalted) {
  Binner bins({.width_ns = 100, .most_bytes = kPlenty});
  Add(bins, 0, 50, Of(core::Band::kHalted), 10, 1);
  Add(bins, 50, 100, Of(core::Band::kSpinning), 40, 10);
  const VcpuBins& row = Row(bins);
  EXPECT_DOUBLE_EQ(row.bins[0].Of(Metric::kIpc).whole, 40);
  EXPECT_EQ(row.events[0].counts[0].count, 50) << "the event itself counts always";
}

TEST_F(Bins, NoVerdictIsNotUnknown) {
  Binner bins({.width_ns = 100, .most_bytes = kPlenty});
  Add(bins, 0, 100, {}, 5, 5);
  EXPECT_EQ(Row(bins).bins[0].UnjudgedNs(), 100);
  EXPECT_EQ(Row(bins).bins[0].Of(Metric::kStarved).whole, 0);
  EXPECT_EQ(Row(bins).bins[0].Of(Metric::kIpc).whole, 0);
}

TEST_F(Bins, CountsOfAPartOfTheTimeAreScaledAndSaySo) {
  Binner bins({.width_ns = 100, .most_bytes = kPlenty});
  Add(bins, 0, 100, Of(core::Band::kProductive), 10, 20, 0, 0.5);
  EXPECT_EQ(Row(bins).events[0].counts[0].count, 20);
  EXPECT_TRUE(Row(bins).events[0].estimated);
  Add(bins, 0, 100, Of(core::Band::kProductive), 10, 20, 1, 0.0);
  EXPECT_EQ(Row(bins, 1).events[0].counts[0].known_ns, 0) << "never on the PMU: not counted";
}

TEST_F(Bins, FoldingKeepsEverySum) {
  // Room for 9 bins with all the numbers that cycles and instructions give: 64 intervals of 10 ns,
  // three of them before the origin, need bins of 80 ns.
  Binner bins(
      {.origin_ns = 30, .width_ns = 10, .most_bytes = 9 * PackedBytesPerBin(NumbersOf(), 2)});
  for (int64_t i = 0; i < 64; ++i) {
    Add(bins, i * 10, i * 10 + 10, Of(i % 2 == 0 ? core::Band::kSpinning : core::Band::kHalted),
        100, 50);
  }
  EXPECT_EQ(bins.width_ns(), 80);
  EXPECT_EQ(bins.smallest_width_ns(), 10);
  const VcpuBins& row = Row(bins);
  EXPECT_EQ(row.first, -1) << "bin -1 is from -80 to 0 after the origin, wherever folding began";
  ASSERT_THAT(row.bins, SizeIs(9));
  // Times -30 to 0 after the origin, and 560 to 610.
  EXPECT_DOUBLE_EQ(row.bins.front().MeasuredNs(), 30);
  EXPECT_DOUBLE_EQ(row.bins[1].MeasuredNs(), 80);
  EXPECT_DOUBLE_EQ(row.bins.back().MeasuredNs(), 50);
  metric::Totals sum;
  double instructions = 0;
  for (size_t i = 0; i < row.bins.size(); ++i) {
    sum.Add(row.bins[i]);
    instructions += row.events[1].counts[i].count;
  }
  EXPECT_DOUBLE_EQ(sum.Of(Metric::kSpinning).part, 320);
  EXPECT_DOUBLE_EQ(sum.Of(Metric::kHalted).part, 320);
  EXPECT_DOUBLE_EQ(sum.Of(Metric::kIpc).whole, 3200);
  EXPECT_DOUBLE_EQ(sum.Of(Metric::kStarved).whole, 640);
  EXPECT_DOUBLE_EQ(sum.Of(Metric::kResidency).part, 320);
  EXPECT_EQ(instructions, 3200);
}

TEST_F(Bins, TheBytesHoldForAllVcpusTogether) {
  Binner bins({.width_ns = 10, .most_bytes = 100 * PackedBytesPerBin(0, 2)});
  for (int64_t i = 0; i < 1000; ++i) {
    for (size_t vcpu = 0; vcpu < 2; ++vcpu) {
      Add(bins, i * 10, i * 10 + 10, Of(core::Band::kHalted), 1, 1, vcpu);
    }
    EXPECT_LE(Row(bins).bins.size() + (i == 0 ? 0 : Row(bins, 1).bins.size()), 100U);
  }
  EXPECT_EQ(bins.width_ns(), 320);
}

TEST_F(Bins, OneLongIntervalDoesNotTakeAllMemory) {
  Binner bins({.width_ns = 1, .most_bytes = 10 * PackedBytesPerBin(0, 2)});
  Add(bins, 0, int64_t{1} << 60, Of(core::Band::kHalted));
  EXPECT_LE(Row(bins).bins.size(), 10U);
  // Instants of no clock are counted and left.
  Add(bins, INT64_MAX - 10, INT64_MAX, Of(core::Band::kHalted));
  EXPECT_EQ(bins.unusable(), 1U);
}

// A reader may forget an epoch: the next one, of another VM, is in its place in memory.
TEST_F(Bins, AnEpochThatIsForgottenIsNoOther) {
  Binner bins({.width_ns = 100, .most_bytes = kPlenty});
  auto maker = std::make_unique<metric::IntervalMaker>();
  const auto add = [&](int64_t begin_ns) {
    maker->With({.begin_ns = begin_ns, .end_ns = begin_ns + 100, .counts = {7, 9}},
                [&bins](const metric::Interval& interval) { bins.Add(interval); });
  };
  add(0);
  *maker = metric::IntervalMaker({"instructions"}, 2);
  add(100);
  ASSERT_THAT(bins.rows(), SizeIs(2));
  EXPECT_THAT(Row(bins).bins, SizeIs(1));
  const VcpuBins& other = bins.rows().at({2, 0});
  ASSERT_THAT(other.events, SizeIs(1));
  EXPECT_EQ(other.events[0].name, "instructions");
  EXPECT_EQ(other.events[0].counts[0].count, 7);
}

TEST_F(Bins, WhatLiesOutsideIsLeftOut) {
  Binner bins({.width_ns = 100, .most_bytes = kPlenty, .from_ns = 150, .to_ns = 250});
  Add(bins, 0, 100, Of(core::Band::kHalted));
  Add(bins, 100, 200, Of(core::Band::kHalted), 100, 0);
  Add(bins, 200, 300, Of(core::Band::kSpinning), 100, 0);
  Add(bins, 300, 400, Of(core::Band::kSpinning), 100, 0);
  const VcpuBins& row = Row(bins);
  EXPECT_EQ(row.first, 1);
  ASSERT_THAT(row.bins, SizeIs(2));
  EXPECT_DOUBLE_EQ(row.bins[0].Of(Metric::kHalted).part, 50);
  EXPECT_DOUBLE_EQ(row.bins[1].Of(Metric::kSpinning).part, 50);
  EXPECT_EQ(row.events[0].counts[0].count, 50);
}

// What the page's unpack.js does.
struct Unpacked {
  boost::json::object head;
  std::vector<std::vector<uint16_t>> shares{};  // of the first row: nine columns
  std::vector<float> cycles{};
  std::vector<float> event{};  // the first
  std::vector<uint16_t> event_known{};
};

template <typename T>
std::vector<T> Take(const std::string& packed, size_t bins, size_t& at) {
  std::vector<T> column(bins);
  std::memcpy(column.data(), packed.data() + at, bins * sizeof(T));
  at += (bins * sizeof(T) + 3) / 4 * 4;
  return column;
}

Unpacked Unpack(const std::string& packed) {
  uint32_t length = 0;
  std::memcpy(&length, packed.data(), 4);
  EXPECT_EQ(length % 4, 0U);
  Unpacked out{.head = boost::json::parse(packed.substr(4, length)).as_object()};
  if (out.head["bins"].is_null()) return out;
  const auto& row = out.head["bins"].at("rows").at(0);
  const auto bins = static_cast<size_t>(row.at("bins").as_int64());
  size_t at = 4 + length;
  for (int i = 0; i < 9; ++i) out.shares.push_back(Take<uint16_t>(packed, bins, at));
  for (const boost::json::value& key : row.at("numbers").as_array()) {
    const std::vector<float> whole = Take<float>(packed, bins, at);
    Take<float>(packed, bins, at);
    if (key == "ipc") out.cycles = whole;
  }
  out.event = Take<float>(packed, bins, at);
  out.event_known = Take<uint16_t>(packed, bins, at);
  return out;
}

TEST(PagePacking, ColumnsOfADrawnTimeline) {
  check::DrawnRecording drawn;
  drawn.Draw("[a]SSh");
  drawn.Gap(1, 4, 5, v1::Gap::REASON_QUEUE_FULL);
  drawn.Gap(1, 6, 6, v1::Gap::REASON_QUEUE_FULL);
  drawn.Gap(0, 6, 6, v1::Gap::REASON_TICK_MISSED);
  const auto contents = Contents::Read(drawn.Finish(), {});
  ASSERT_TRUE(contents.ok()) << contents.status();
  const Unpacked page =
      Unpack(Pack((*contents)->collected(), check::kDrawnStart_ns, "{\"x\": 1}", true));
  const auto& bins = page.head.at("bins");
  EXPECT_EQ(bins.at("width_ns").as_int64(), check::kDrawnTick_ns / 4);
  EXPECT_EQ(bins.at("origin_ns").to_number<double>(), 0);
  EXPECT_EQ(bins.at("rows").at(0).at("bins").as_int64(), 12);
  EXPECT_EQ(page.head.at("report").at("x").as_int64(), 1);
  EXPECT_TRUE(page.head.at("served").as_bool());
  EXPECT_THAT(std::vector(page.shares[kSpinning].begin() + 6, page.shares[kSpinning].begin() + 10),
              ElementsAre(65535, 65535, 0, 0));
  EXPECT_EQ(page.shares[kHalted][8], 65535);
  EXPECT_EQ(page.shares[5][8], 65535) << "starved";
  EXPECT_EQ(page.shares[7][0], 65535) << "residency";
  EXPECT_EQ(page.shares[7][8], 0);
  EXPECT_EQ(page.shares[8][8], 65535) << "a residency of 0 is known";
  EXPECT_EQ(bins.at("rows").at(0).at("numbers").at(0), "ipc");
  EXPECT_EQ(page.head.at("metrics").at(0).at("key"), "ipc");
  EXPECT_EQ(page.cycles[0], 25e6);
  EXPECT_EQ(page.cycles[8], 0);
  EXPECT_EQ(page.event[0], 25e6);
  EXPECT_EQ(page.event_known[8], 65535) << "a count of 0 is a count";

  // Gaps of a kind that follow each other are one, and lie where their ticks were due.
  const auto& gaps = page.head.at("gaps").as_array();
  ASSERT_EQ(gaps.size(), 2U);
  EXPECT_EQ(gaps[0].at("ticks").as_int64(), 3);
  EXPECT_EQ(gaps[0].at("reason").as_string(), "queue-full");
  EXPECT_EQ(gaps[0].at("from_ns").to_number<double>(), 300e6);
  EXPECT_EQ(gaps[0].at("to_ns").to_number<double>(), 600e6);
  EXPECT_EQ(gaps[1].at("vm").as_int64(), 0);
}

TEST(PagePacking, ATimelineWithoutAnInterval) {
  check::DrawnRecording drawn;
  drawn.Begin(1, {});
  const auto contents = Contents::Read(drawn.Finish(), {});
  ASSERT_TRUE(contents.ok()) << contents.status();
  const Unpacked page = Unpack(Pack((*contents)->collected(), 0, "", false));
  EXPECT_TRUE(page.head.at("bins").is_null());
  EXPECT_TRUE(page.head.at("report").is_null());
  EXPECT_THAT(page.head.at("gaps").as_array(), IsEmpty());
}

TEST(PagePacking, WhatHappenedAtAllIsNotRoundedToNothing) {
  check::DrawnRecording drawn;
  drawn.Draw("S");
  const auto contents = Contents::Read(drawn.Finish(), {});
  ASSERT_TRUE(contents.ok());
  Collector collector(
      {.origin_ns = check::kDrawnStart_ns, .width_ns = int64_t{1'000'000} * 1'000'000'000});
  metric::IntervalReader intervals;
  ASSERT_TRUE(reading::ReadPart(drawn.Finish(), {}, [&](const timeline::Entry& entry) {
                collector.Take(entry);
                return intervals.Add(entry, [&](const metric::Interval& interval) {
                  collector.Add(interval);
                  return absl::OkStatus();
                });
              }).ok());
  EXPECT_THAT(Unpack(Pack(collector, 0, "", false)).shares[kSpinning], ElementsAre(1));
}

TEST(PageCompress, IsAZlibStream) {
  const std::string packed = Deflate(std::string(100'000, 'a'));
  EXPECT_LT(packed.size(), 1000U);
  EXPECT_EQ(packed[0], '\x78');
}

}  // namespace
}  // namespace vcpulse::page
