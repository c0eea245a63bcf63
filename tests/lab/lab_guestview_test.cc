// What a recording at 1 kHz costs a Linux guest, by its own measure. The figures are printed, for
// docs/cost.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

constexpr char kRun[] = "guestview-none";
constexpr int kTurns = 3;
constexpr int kTimersDue = 3000;

struct Seen {
  double turns_per_s = 0;
  double late_p50_us = 0;
  double late_p99_us = 0;
};

// The median of each figure over the turns.
Seen MedianOf(const std::vector<Seen>& turns) {
  const auto of = [&](double Seen::* figure) {
    std::vector<double> values;
    for (const Seen& seen : turns) values.push_back(seen.*figure);
    std::ranges::sort(values);
    return values.at(values.size() / 2);
  };
  return {of(&Seen::turns_per_s), of(&Seen::late_p50_us), of(&Seen::late_p99_us)};
}

TEST(GuestView, TurnsAndTimersBesideEitherReader) {
  std::map<std::string, std::vector<Seen>> by_reader;
  std::istringstream text(ReadText(OutputPath(kRun, "turns")));
  for (std::string line; std::getline(text, line);) {
    std::array<char, 8> reader{};
    Seen seen;
    int timers = 0;
    ASSERT_EQ(std::sscanf(
                  line.c_str(), "%7s turns-per-s %lf timers %d late-p50-us %lf late-p99-us %lf",
                  reader.data(), &seen.turns_per_s, &timers, &seen.late_p50_us, &seen.late_p99_us),
              5)
        << line;
    EXPECT_GT(timers, kTimersDue * 9 / 10) << line;
    EXPECT_GT(seen.turns_per_s, 0) << line;
    by_reader[reader.data()].push_back(seen);
  }
  ASSERT_EQ(by_reader.size(), 3u);
  std::map<std::string, Seen> medians;
  for (const auto& [reader, turns] : by_reader) {
    ASSERT_EQ(turns.size(), size_t{kTurns}) << reader;
    const Seen& seen = medians[reader] = MedianOf(turns);
    std::printf("%-4s %8.0f turns/s, timers late p50 %5.0f us, p99 %6.0f us\n", reader.c_str(),
                seen.turns_per_s, seen.late_p50_us, seen.late_p99_us);
  }
  // The emulated host's speed varies: only what is grossly wrong shows.
  EXPECT_GT(medians["bpf"].turns_per_s, 0.5 * medians["none"].turns_per_s);
}

TEST(GuestView, RecordingsAreByTheirReaders) {
  for (const std::string reader : {"bpf", "read"}) {
    for (int turn = 1; turn <= kTurns; ++turn) {
      const RecordedTimeline recorded =
          Load(OutputPath(kRun, absl::StrCat(reader, "-", turn, ".vpt")));
      EXPECT_EQ(recorded.session.reader(), reader);
      EXPECT_GT(recorded.vms.at(1).intervals.at(0).size(), 100u) << reader << turn;
    }
  }
}

}  // namespace
}  // namespace vcpulse::lab
