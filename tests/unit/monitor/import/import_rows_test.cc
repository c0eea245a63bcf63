// Rows that are read in small pieces and batches become the same timeline as a whole table.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "monitor/import/csv_table.h"
#include "monitor/import/importer.h"
#include "monitor/import/interval_window.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rows = std::unique_ptr<RowReader> (*)(TextSource&, const std::string&);

ReadAt Of(const std::string& text) {
  return [&text](uint64_t offset, std::span<char> into) -> absl::StatusOr<size_t> {
    if (offset >= text.size()) return size_t{0};
    return text.copy(into.data(), into.size(), offset);
  };
}

// The timeline, and what came of it.
struct Result {
  absl::Status status;
  std::string bytes;
};

template <typename Run>
Result Timeline(const Run& run) {
  Result result;
  const auto writer = timeline::NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
    result.bytes.append(chunk.begin(), chunk.end());
    return absl::OkStatus();
  });
  const auto generic = profile::Load("generic");
  result.status = run(ImportOptions{.profile = *generic}, *writer).status();
  return result;
}

Result Streamed(const std::string& text, Rows rows, size_t window, size_t block) {
  PiecedText source(Of(text), rows == &CsvRows, block);
  const auto reader = rows(source, "x");
  return Timeline([&](const ImportOptions& options, timeline::RecordWriter& writer) {
    return ImportRows(*reader, options, writer, window);
  });
}

Result Whole(const absl::StatusOr<Table>& table) {
  return Timeline([&](const ImportOptions& options, timeline::RecordWriter& writer) {
    return ImportTable(*table, options, writer);
  });
}

// 40 ticks of two VMs with two vCPUs each; `cells` gives the counts of row i.
template <typename Cells>
std::string Csv(const std::string& columns, const Cells& cells) {
  std::string text = "t_ns,vm,vcpu," + columns + "\n";
  for (int i = 0; i < 160; ++i) {
    text += std::to_string(100'000'000LL * (i / 4 + 1)) + ",\"a\n" + std::to_string(i / 2 % 2) +
            "\"," + std::to_string(i % 2) + "," + cells(i) + "\n";
  }
  return text;
}

void ExpectSameAsWhole(const std::string& text) {
  const Result whole = Whole(ParseCsv(text, "x"));
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  for (const size_t window : {1, 3, 8, 50, 1000}) {
    for (const size_t block : {1, 7, 4096}) {
      const Result streamed = Streamed(text, &CsvRows, window, block);
      EXPECT_TRUE(streamed.status.ok()) << streamed.status;
      EXPECT_TRUE(streamed.bytes == whole.bytes) << "window " << window << ", block " << block;
    }
  }
}

TEST(ImportRows, BatchesAreTheSameAsTheWhole) {
  ExpectSameAsWhole(Csv("cycles,instructions", [](int i) {
    return std::to_string(i * 7919 % 1000) + "," + (i % 31 == 0 ? "" : std::to_string(i));
  }));
}

TEST(ImportRows, TicksAndTheWallClockAreTheSame) {
  ExpectSameAsWhole(Csv("tick,t_wall_ns,cycles", [](int i) {
    return std::to_string(i / 8 + 1) + "," + std::to_string(1'767'000'000'000'000'000 + i) + ",5";
  }));
}

// Each tick lasts two instants here: it may not be cut in two.
TEST(ImportRows, ATickIsNeverCut) {
  std::string text = "t_ns,dt_ns,tick,vcpu,cycles\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(1000 * (i + 1)) + ",500," + std::to_string(i / 2 + 1) + "," +
            std::to_string(i % 2) + ",7\n";
  }
  ExpectSameAsWhole(text);
}

// A main group that was off the PMU takes the events of the rows beside it, in other batches too.
TEST(ImportRows, RowsWithoutCountsAreFilledAcrossBatches) {
  ExpectSameAsWhole(Csv("time_enabled_ns,time_running_ns,cycles", [](int i) {
    return i < 30 || (i > 60 && i < 120) ? std::string("1000,0,") : std::string("1000,1000,900");
  }));
}

TEST(ImportRows, JsonLines) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "{\"t_mono_ns\":" + std::to_string(1'000'000 * (i / 2 + 1)) +
            ",\"interval_s\":0.001,\"vcpu\":" + std::to_string(i % 2) +
            ",\"cycles\":" + std::to_string(i) + "}\n";
  }
  text += "{\"t_mono_ns\":5";  // cut off
  const Result whole = Whole(ParseJsonl(text, "x"));
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  for (const size_t block : {1, 50, 4096}) {
    EXPECT_TRUE(Streamed(text, &JsonlRows, 4, block).bytes == whole.bytes) << block;
  }
}

TEST(ImportRows, OutOfOrderTheWindowGrows) {
  std::string text = "dt_ns,vcpu,cycles\n";  // one vCPU behind the other
  for (int i = 0; i < 400; ++i) text += "1000," + std::to_string(i / 200) + ",9\n";
  const Result whole = Whole(ParseCsv(text, "x"));
  const Result streamed = Streamed(text, &CsvRows, 2, 100);
  EXPECT_TRUE(streamed.status.ok()) << streamed.status;
  EXPECT_TRUE(streamed.bytes == whole.bytes);
}

TEST(IntervalFinder, ARowBeyondTheWindowIsNamed) {
  const auto table = ParseCsv("t_ns,cycles\n10,1\n20,1\n30,1\n40,1\n5,1\n", "x.csv");
  ASSERT_TRUE(table.ok());
  Table first = *table;
  first.rows.pop_back();
  IntervalFinder finder(2);
  ASSERT_TRUE(finder.Take(first, 0).ok());
  ASSERT_TRUE(finder.Release(first, false, false).ok());
  const absl::Status late = finder.Take(*table, 4);
  EXPECT_TRUE(absl::IsOutOfRange(late)) << late;
  EXPECT_EQ(late.message(),
            "x.csv: row 6: ends at 5 ns, before rows more than 2 above it: sort the file by time");
}

TEST(ImportRows, WritesNothingOfAFileWithABadRow) {
  std::string text = Csv("cycles", [](int i) { return i == 150 ? "x" : "1"; });
  const Result streamed = Streamed(text, &CsvRows, 2, 64);
  EXPECT_THAT(std::string(streamed.status.message()), HasSubstr("x: row 152, column cycles: 'x'"));
  EXPECT_EQ(streamed.bytes, "");
}

std::vector<std::string> Pieces(TextSource& source) {
  std::vector<std::string> pieces;
  while (true) {
    const auto piece = source.Next();
    if (!piece.ok() || piece->empty()) return pieces;
    pieces.emplace_back(*piece);
  }
}

TEST(PiecedText, EndsPiecesWithRows) {
  const std::string text = "a,\"b\nc\"\nd\ne";
  PiecedText csv(Of(text), true, 1);
  EXPECT_THAT(Pieces(csv), ElementsAre("a,\"b\nc\"\n", "d\n", "e"));
  csv.Rewind();
  EXPECT_THAT(Pieces(csv), ElementsAre("a,\"b\nc\"\n", "d\n", "e"));
  PiecedText lines(Of(text), false, 1);
  EXPECT_THAT(Pieces(lines), ElementsAre("a,\"b\n", "c\"\n", "d\n", "e"));
}

TEST(PiecedText, WhatIsAppendedLaterIsNotRead) {
  std::string text = "a\nb\n";
  PiecedText source(Of(text), true, 64);
  EXPECT_THAT(Pieces(source), ElementsAre("a\nb\n"));
  text += "c\n";
  source.Rewind();
  EXPECT_THAT(Pieces(source), ElementsAre("a\nb\n"));
}

}  // namespace
}  // namespace vcpulse::importing
