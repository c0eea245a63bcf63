#include "monitor/report/text_format.h"

#include "gtest/gtest.h"
#include "kvm/base/text.h"

namespace vcpulse::report {
namespace {

// Three digits say enough, and a count must never lose its magnitude to rounding.
TEST(TextFormat, UnitsKeepThreeDigits) {
  EXPECT_EQ(Units(0), "0");
  EXPECT_EQ(Units(999), "999");
  EXPECT_EQ(Units(1000), "1.00k");
  EXPECT_EQ(Units(12'345), "12.3k");
  EXPECT_EQ(Units(999'499), "999k");
  EXPECT_EQ(Units(999'500), "1.00M");
  EXPECT_EQ(Units(9'996'000), "10.0M");
  EXPECT_EQ(Units(123.4e9), "123G");
  EXPECT_EQ(Units(1.5e12), "1.50T");
  EXPECT_EQ(Units(2e18), "2000P");
}

// Absent is "-", and 0 is 0: the whole report rests on the difference.
TEST(TextFormat, AbsentIsADash) {
  EXPECT_EQ(Percent(std::nullopt), "-");
  EXPECT_EQ(Percent(0.0), "0.0%");
  EXPECT_EQ(Percent(0.12345), "12.3%");
  EXPECT_EQ(Percent(1.0), "100.0%");
  const metric::Info& ipc = metric::InfoOf(metric::Metric::kIpc);
  EXPECT_EQ(MetricText(ipc, std::nullopt), "-");
  EXPECT_EQ(MetricText(ipc, 1.0), "1.00");
  EXPECT_EQ(MetricText(ipc, 0.034),
            "0.034");  // a pause loop against a slower one: two digits would not do
  EXPECT_EQ(MetricText(metric::InfoOf(metric::Metric::kResidency), 0.5), "50.0%");
}

TEST(TextFormat, Durations) {
  EXPECT_EQ(DurationText(237), "237 ns");
  EXPECT_EQ(DurationText(12'500), "12.5 us");
  EXPECT_EQ(DurationText(5'000'000), "5.0 ms");
  EXPECT_EQ(DurationText(999'949'000), "999.9 ms");
  EXPECT_EQ(DurationText(999'951'000), "1.0 s");
  EXPECT_EQ(DurationText(999'951), "1.0 ms");
  EXPECT_EQ(DurationText(999.6), "1.0 us");
  EXPECT_EQ(DurationText(10e9), "10.0 s");
  EXPECT_EQ(DurationText(3500.4e9), "58m20s");
}

// A VM's name comes from a command line that anybody may write: it must not reach the terminal as
// an escape sequence. Names in other scripts stay as they are.
TEST(TextFormat, PrintableStopsEscapeSequences) {
  EXPECT_EQ(Printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
  EXPECT_EQ(Printable("x\xc2\x9by"), "x?y");  // U+009B, CSI in one character
  EXPECT_EQ(Printable("g\xc3\xa4st\xe2\x82\xac"), "g\xc3\xa4st\xe2\x82\xac");
}

// 100 columns, continued under the first word; a word that is longer stands alone, uncut.
TEST(TextFormat, WrapsAtSpaces) {
  EXPECT_EQ(Wrapped("  gap: ", "a b"), "  gap: a b\n");
  const std::string word(40, 'w');
  EXPECT_EQ(Wrapped("n: ", word + " " + word + " " + word),
            "n: " + word + " " + word + "\n   " + word + "\n");
  const std::string fits = word + " " + std::string(100 - 3 - 41, 'v');
  EXPECT_EQ(Wrapped("n: ", fits), "n: " + fits + "\n");
  const std::string endless(150, 'e');
  EXPECT_EQ(Wrapped("n: ", "a " + endless + " b"), "n: a\n   " + endless + "\n   b\n");
}

TEST(TextFormat, ListsAreCut) {
  EXPECT_EQ(Listed({"a", "b"}, 2), "a, b");
  EXPECT_EQ(Listed({"a", "b", "c"}, 2), "a, b and 1 more");
}

// Right-aligned by what is seen: colours take no width, and a pipe gets none.
TEST(TextFormat, TableAlignsAndColours) {
  Table table({"vCPU", "IPC"});
  table.AddRow({{"0"}, {"1.00", Colour::kGreen}});
  table.AddRow({{"11"}, {"-"}});
  EXPECT_EQ(table.Render(false), "vCPU  IPC\n   0 1.00\n  11    -\n");
  EXPECT_EQ(table.Render(true), "vCPU  IPC\n   0 \x1b[32m1.00\x1b[0m\n  11    -\n");
}

}  // namespace
}  // namespace vcpulse::report
