#include "tools/vcpulse/part_options.h"

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::tools {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace vcpulse::tools
