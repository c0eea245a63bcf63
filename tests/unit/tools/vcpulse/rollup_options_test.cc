#include "tools/vcpulse/rollup_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::tools {
namespace {

using testing::ElementsAre;

constexpr int64_t kOneSecond_ns = 1'000'000'000;

std::string WindowRefusal(const std::string& text) {
  const auto windows = ParseWindows("--window", text);
  EXPECT_FALSE(windows.ok()) << text;
  return std::string(windows.status().message());
}

TEST(WindowOption, TakesLengthsWithCommasBetween) {
  const auto windows = ParseWindows("--window", "10s,60s,1.5s,24h");
  ASSERT_TRUE(windows.ok()) << windows.status();
  EXPECT_THAT(*windows,
              ElementsAre(Window{10 * kOneSecond_ns, "10s"}, Window{60 * kOneSecond_ns, "1m"},
                          Window{1'500'000'000, "1.5s"}, Window{86'400 * kOneSecond_ns, "24h"}));
  EXPECT_EQ(ParseWindow("--window", "1d")->length_ns, 86'400 * kOneSecond_ns);
}

TEST(WindowOption, RefusesInOneLine) {
  EXPECT_EQ(WindowRefusal("7"), "--window: '7' has no unit: write 7s or 7ms");
  EXPECT_EQ(WindowRefusal("0s"), "--window: '0s' is shorter than 1ms, the shortest window");
  EXPECT_EQ(WindowRefusal("10s,10s"), "--window: '10s' is given twice");
  EXPECT_EQ(WindowRefusal("60s,1m"), "--window: '1m' is given twice");
  EXPECT_EQ(WindowRefusal("25h"), "--window: '25h' is longer than 24h, the longest window");
  EXPECT_EQ(WindowRefusal("2d"), "--window: '2d' is longer than 24h, the longest window");
  EXPECT_EQ(WindowRefusal("10s,"),
            "--window: '' is not a duration: write for example 100ms, 1.5s, 2m or 1h");
  EXPECT_EQ(WindowRefusal("ten"),
            "--window: 'ten' is not a duration: write for example 100ms, 1.5s, 2m or 1h");
}

// Files of a date hold whole windows of it.
TEST(RollupOption, TakesWindowsThatMakeUpADay) {
  const auto levels = ParseLevels({.rollup = "10s,27s,20m,24h"});
  ASSERT_TRUE(levels.ok()) << levels.status();
  EXPECT_EQ(levels->rollups.size(), 4u);
  for (const std::string window : {"7s", "7m", "25m", "5h"}) {
    EXPECT_EQ(
        ParseLevels({.rollup = "10s," + window}).status().message(),
        "--rollup: '" + window + "' does not divide 24h: write for example 10s, 1m, 15m or 1h");
  }
}

TEST(KeepOption, NamesTheLevels) {
  for (const std::string name : {"foo", "", "5s", "1h"}) {
    EXPECT_EQ(ParseLevels({.rollup = "10s,1m", .keep = name + "=2d"}).status().message(),
              "--keep: no level '" + name + "'; levels are: raw, parquet, 10s, 1m");
  }
  EXPECT_EQ(ParseLevels({.keep = "10s=2d"}).status().message(),
            "--keep: no level '10s'; levels are: raw, parquet (--rollup adds others)");
  EXPECT_TRUE(ParseLevels({.rollup = "60s", .keep = "1m=2d,raw=1d"}).ok());
}

}  // namespace
}  // namespace vcpulse::tools
