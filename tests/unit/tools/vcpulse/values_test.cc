#include "tools/vcpulse/values.h"

#include <string>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/part_options.h"

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

TEST(TimeOption, RefusesNothingByItsName) {
  for (const std::string text : {"0", "0s", "0ms"}) {
    EXPECT_EQ(ParseTimeOption("--each", text).status().message(), "--each: must be more than 0");
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

TEST(SizeOption, TakesWhatAPersonWrites) {
  EXPECT_EQ(*ParseSizeOption("--s", "64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(*ParseSizeOption("--s", "1G"), uint64_t{1} << 30);
  EXPECT_EQ(*ParseSizeOption("--s", "1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(*ParseSizeOption("--s", "500MB"), 500'000'000u);
  EXPECT_EQ(*ParseSizeOption("--s", "2K"), 2048u);
  EXPECT_EQ(*ParseSizeOption("--s", "1TiB"), uint64_t{1} << 40);
  EXPECT_EQ(*ParseSizeOption("--s", "17B"), 17u);
  EXPECT_EQ(*ParseSizeOption("--s", "0M"), 0u);
}

TEST(SizeOption, RefusesAPlainNumberAndSaysWhatToWrite) {
  EXPECT_EQ(ParseSizeOption("--spool-size", "64").status().message(),
            "--spool-size: '64' has no unit: write 64M or 64G");
}

TEST(SizeOption, RefusesWhatIsNoSize) {
  for (const std::string text : {"", "M", "x", "1X", "1Mi", "1 M", "M1", "1MM", "1m", "+1M", ".5M",
                                 "inf", "nan", "0x10M", "1e3M"}) {
    const auto size = ParseSizeOption("--s", text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(std::string(size.status().message()),
                ::testing::AllOf(StartsWith("--s: '" + text), HasSubstr("is not a size")));
  }
  EXPECT_THAT(std::string(ParseSizeOption("--s", "-1M").status().message()),
              HasSubstr("is negative"));
  EXPECT_TRUE(ParseSizeOption("--s", "1048576T").ok());
  for (const std::string text : {"1048577T", "99999999999999999999999999G"}) {
    EXPECT_THAT(std::string(ParseSizeOption("--s", text).status().message()),
                HasSubstr("is too large"));
  }
}

TEST(WithThousands, PutsACommaBeforeEachThree) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(123456), "123,456");
  EXPECT_EQ(WithThousands(1234567890), "1,234,567,890");
}

TEST(SizeText, OneDecimalAtMost) {
  EXPECT_EQ(SizeText(0), "0 bytes");
  EXPECT_EQ(SizeText(1), "1 byte");
  EXPECT_EQ(SizeText(1023), "1023 bytes");
  EXPECT_EQ(SizeText(1024), "1 KiB");
  EXPECT_EQ(SizeText(1536), "1.5 KiB");
  EXPECT_EQ(SizeText((uint64_t{1} << 20) - 1), "1 MiB");
  EXPECT_EQ(SizeText(uint64_t{256} << 20), "256 MiB");
  EXPECT_EQ(SizeText(uint64_t{1} << 60), "1048576 TiB");
}

TEST(SpeedOption, IsANumberOrMax) {
  EXPECT_EQ(ParseSpeed("1").value().value(), 1);
  EXPECT_EQ(ParseSpeed("0.5").value().value(), 0.5);
  EXPECT_EQ(ParseSpeed("max").value(), std::nullopt);
  for (const char* bad : {"", "0", "-1", "fast", "2x", "nan", "inf", "1e3", "0.0001", "10000000"}) {
    EXPECT_THAT(std::string(ParseSpeed(bad).status().message()), ::testing::StartsWith("--speed: "))
        << bad;
  }
}

TEST(PartOptions, AreOffsetsInNanoseconds) {
  const auto part = ParsePart({.from = "1.5s", .until = "2s"});
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->from_ns, 1'500'000'000);
  EXPECT_EQ(part->to_ns, 2'000'000'000);
  EXPECT_EQ(part->phase, std::nullopt);
  const auto all = ParsePart({});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->from_ns, std::nullopt);
  EXPECT_EQ(all->to_ns, std::nullopt);
}

TEST(PartOptions, AnEndComesAfterItsBeginning) {
  const auto empty = ParsePart({.from = "2s", .until = "2s"});
  EXPECT_THAT(std::string(empty.status().message()),
              HasSubstr("--until 2s is not after --from 2s"));
  const auto none = ParsePart({.until = "0s"});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("--from 0s (the start)"));
  EXPECT_THAT(std::string(ParsePart({.from = "2"}).status().message()),
              HasSubstr("--from: '2' has no unit"));
}

TEST(PartOptions, APhaseExcludesTimes) {
  CLI::App app;
  PartOptions options;
  AddPartOptions(app, options);
  EXPECT_THROW(app.parse("--phase boot --from 1s"), CLI::ParseError);
  EXPECT_THROW(app.parse("--phase boot --until 1s"), CLI::ParseError);
  app.parse("--phase boot");
  EXPECT_EQ(options.phase, "boot");
}

TEST(PartOptions, ANamelessNothingIsNoTerminalSequence) {
  EXPECT_EQ(NothingInPart({.phase = "a\x1b[31m"}), "no tick in phase 'a?[31m'");
  EXPECT_EQ(NothingInPart({.from = "2s"}), "no tick in the part asked for (from 2s to the end)");
}

TEST(SpellOutEmptyValues, OnlyThoseOfLongOptions) {
  std::vector<std::string> arguments = {
      "record", "--vm=", "--all", "--vm=web", "a=", "--", "--expect=a=", "-o=", "--="};
  SpellOutEmptyValues(arguments);
  EXPECT_EQ(arguments, (std::vector<std::string>{"record", "--vm", "", "--all", "--vm=web",
                                                 "a=", "--", "--expect=a=", "-o=", "--="}));
}

}  // namespace

}  // namespace vcpulse::tools
