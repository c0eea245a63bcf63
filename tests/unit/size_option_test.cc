#include "tools/vcpulse/size_option.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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

}  // namespace
}  // namespace vcpulse::tools
