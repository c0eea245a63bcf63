#include "tools/vcpulse/duration_option.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DurationOption, TakesWhatAPersonWrites) {
  EXPECT_EQ(*ParseDurationOption("-i", "100ms"), absl::Milliseconds(100));
  EXPECT_EQ(*ParseDurationOption("-i", "1.5s"), absl::Milliseconds(1500));
  EXPECT_EQ(*ParseDurationOption("-i", ".5s"), absl::Milliseconds(500));
  EXPECT_EQ(*ParseDurationOption("-i", "2m"), absl::Minutes(2));
  EXPECT_EQ(*ParseDurationOption("-i", "1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDurationOption("-i", "0s"), absl::ZeroDuration());
}

// Seconds or milliseconds? Guessing wrong costs a thousandfold, so the unit is asked for.
TEST(DurationOption, RefusesAPlainNumberAndSaysWhatToWrite) {
  for (const std::string text : {"10", "0", "1.5"}) {
    const auto duration = ParseDurationOption("--duration", text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_EQ(duration.status().message(),
              "--duration: '" + text + "' has no unit: write " + text + "s or " + text + "ms");
  }
}

// abseil's parser takes signs and "inf"; neither is a time that anything here can last.
TEST(DurationOption, RefusesNegativeInfiniteAndEndless) {
  for (const std::string text : {"-1s", "-1", "-.5s"}) {
    const auto duration = ParseDurationOption("-i", text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_THAT(std::string(duration.status().message()), HasSubstr("negative")) << text;
  }
  for (const std::string text : {"inf", "-inf", "+1s"}) {
    EXPECT_FALSE(ParseDurationOption("-i", text).ok()) << text;
  }
  const auto duration = ParseDurationOption("-i", "99999999h");
  ASSERT_FALSE(duration.ok());
  EXPECT_EQ(duration.status().message(), "-i: '99999999h' is too long");
  EXPECT_FALSE(ParseDurationOption("-i", "99999999999999999999999999h").ok());
}

TEST(DurationOption, RefusesEverythingElseInOneLineThatNamesTheFlag) {
  for (const std::string text : {"", " ", "s", "10 s", " 10s", "10s ", "1e9s", "10x", "=-1", ".",
                                 "..", ".s", "1.5.5s", "0x10s", "-", "--", "10s\n", "fast"}) {
    const auto duration = ParseDurationOption("--interval", text);
    ASSERT_FALSE(duration.ok()) << "'" << text << "'";
    EXPECT_THAT(std::string(duration.status().message()), StartsWith("--interval: "));
    EXPECT_THAT(std::string(duration.status().message()), HasSubstr("100ms")) << text;
  }
}

TEST(DurationOption, DaysWhereItMayTakeLong) {
  EXPECT_EQ(*ParseLongDurationOption("--keep-for", "30d"), absl::Hours(720));
  EXPECT_EQ(*ParseLongDurationOption("--keep-for", "1.5d"), absl::Hours(36));
  EXPECT_EQ(*ParseLongDurationOption("--keep-for", "12h"), absl::Hours(12));
  EXPECT_EQ(ParseLongDurationOption("--keep-for", "30").status().message(),
            "--keep-for: '30' has no unit: write 30h or 30d");
  for (const std::string text : {"d", "-1d", "infd", "1dd", "x", "36501d", "1e9d"}) {
    EXPECT_FALSE(ParseLongDurationOption("--keep-for", text).ok()) << text;
  }
  EXPECT_FALSE(ParseDurationOption("--duration", "30d").ok());
}

}  // namespace
}  // namespace vcpulse::tools
