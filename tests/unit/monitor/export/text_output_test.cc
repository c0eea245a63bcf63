#include "monitor/export/text_output.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::exporting {
namespace {

template <typename Write>
std::string Written(const Write& write) {
  std::string text;
  TextOutput out([&text](std::string_view more) {
    text += more;
    return absl::OkStatus();
  });
  write(out);
  EXPECT_TRUE(out.Flush().ok());
  return text;
}

std::string Decimal(double value, int decimals) {
  return Written([&](TextOutput& out) { out.AddDecimal(value, decimals); });
}

TEST(TextOutput, DecimalsAreRoundedAndCut) {
  EXPECT_EQ(Decimal(0, 9), "0");
  EXPECT_EQ(Decimal(1, 9), "1");
  EXPECT_EQ(Decimal(0.4, 9), "0.4");
  EXPECT_EQ(Decimal(1.0 / 3, 9), "0.333333333");
  EXPECT_EQ(Decimal(2.0 / 3, 2), "0.67");
  EXPECT_EQ(Decimal(0.9999999999, 9), "1");
  EXPECT_EQ(Decimal(0.000000001, 9), "0.000000001");
  EXPECT_EQ(Decimal(4.9e-10, 9), "0");
  EXPECT_EQ(Decimal(-0.25, 9), "-0.25");
  EXPECT_EQ(Decimal(-1e-12, 9), "0");
  EXPECT_EQ(Decimal(1e-12, 12), "0.000000000001");
}

TEST(TextOutput, NumbersTooLargeForDecimalsAreWholeStill) {
  EXPECT_EQ(Decimal(8'999'999.5, 9), "8999999.5");
  EXPECT_EQ(Decimal(1e7 + 0.5, 9), "10000000.5");
  EXPECT_EQ(Decimal(1e300, 9), "1e+300");
}

// The double of a rounded number is that of the text, to the last bit.
TEST(Rounded, IsTheNumberThatIsWritten) {
  for (const double value : {0.0, 1.0 / 3, -0.25, -1e-12, 2.0 / 3, 0.1 + 0.2, 123.456789, 1e300,
                             8'999'999.123456789, 4.9e-10, 1e-12, 0.9999999999}) {
    for (const int decimals : {2, 3, 9, 12}) {
      const double rounded = Rounded(value, decimals);
      EXPECT_EQ(rounded, std::stod(Decimal(value, decimals))) << value << ", " << decimals;
      EXPECT_FALSE(rounded == 0 && std::signbit(rounded)) << value << ", " << decimals;
    }
  }
}

TEST(TextOutput, SecondsAreExact) {
  const auto seconds = [](int64_t ns) {
    return Written([&](TextOutput& out) { out.AddSeconds(ns); });
  };
  EXPECT_EQ(seconds(0), "0");
  EXPECT_EQ(seconds(100'000'000), "0.1");
  EXPECT_EQ(seconds(10'000'000'001), "10.000000001");
  EXPECT_EQ(seconds(-1'500'000'000), "-1.5");
  EXPECT_EQ(seconds(std::numeric_limits<int64_t>::min()), "-9223372036.854775808");
}

TEST(TextOutput, HandsOverLargePiecesAndLosesNothing) {
  std::string all;
  size_t pieces = 0;
  TextOutput out([&](std::string_view more) {
    all += more;
    ++pieces;
    return absl::OkStatus();
  });
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    out.AddNumber(i);
    out.Add("\n");
    expected += std::to_string(i) + "\n";
    ASSERT_TRUE(out.EndRow().ok());
  }
  out.Add(std::string(1 << 20, 'x'));  // longer than what is handed over at once
  expected.append(1 << 20, 'x');
  ASSERT_TRUE(out.Flush().ok());
  EXPECT_EQ(all, expected);
  EXPECT_LT(pieces, 12U);
}

TEST(TextOutput, NothingIsHandedOverTwice) {
  int pieces = 0;
  TextOutput out([&](std::string_view) {
    ++pieces;
    return absl::UnavailableError("full");
  });
  out.Add("row");
  EXPECT_FALSE(out.Flush().ok());
  EXPECT_TRUE(out.Flush().ok());
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace vcpulse::exporting
