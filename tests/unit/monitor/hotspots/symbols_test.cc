#include "monitor/hotspots/symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::hotspots {
namespace {

using ::testing::HasSubstr;

constexpr char kKallsyms[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000100 t spin\n"
    "ffffffff81000200 D some_data\n"
    "ffffffff81000300 W weak_one\n"
    "ffffffff81000400 t $x\n"
    "ffffffff81000500 T _etext\n"
    "ffffffffc0000000 t in_module\t[kvm]\n"
    "ffffffffc0000100 t last_of_module\t[kvm]\n";

std::string NameAt(const Symbols& symbols, uint64_t address) {
  const auto symbol = symbols.Find(address);
  return symbol ? symbol->name + "+" + std::to_string(symbol->offset) : "none";
}

TEST(Symbols, NameTheFunctionThatHoldsAnAddress) {
  const auto symbols = Symbols::Parse(kKallsyms);
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  EXPECT_EQ(NameAt(*symbols, 0xffffffff80ffffff), "none");
  EXPECT_EQ(NameAt(*symbols, 0xffffffff81000000), "_stext+0");
  EXPECT_EQ(NameAt(*symbols, 0xffffffff810000ff), "_stext+255");
  EXPECT_EQ(NameAt(*symbols, 0xffffffff81000100), "spin+0");
  EXPECT_EQ(NameAt(*symbols, 0xffffffff81000200), "none");          // data
  EXPECT_EQ(NameAt(*symbols, 0xffffffff81000410), "weak_one+272");  // arm64's $x is no symbol
  EXPECT_EQ(NameAt(*symbols, 0xffffffffc0000001), "in_module [kvm]+1");
  EXPECT_EQ(NameAt(*symbols, 0xffffffffc0000100), "none");  // where it ends nobody says
  EXPECT_EQ(NameAt(Symbols(), 0xffffffff81000000), "none");
}

// A module that was loaded since lies beyond the last function of another one.
TEST(Symbols, ReachNoFartherThanAFunction) {
  const auto symbols = Symbols::Parse("1000 t a\n90000 t b\n");
  ASSERT_TRUE(symbols.ok());
  EXPECT_EQ(NameAt(*symbols, 0x1000 + 0xffff), "a+65535");
  EXPECT_EQ(NameAt(*symbols, 0x1000 + 0x10000), "none");
}

// One address of code and data, as at a section's begin, in either order.
TEST(Symbols, CodeGoesBeforeData) {
  for (const char* text : {"10 D a\n10 T b\n20 T c\n", "10 T b\n10 D a\n20 T c\n"}) {
    EXPECT_EQ(NameAt(*Symbols::Parse(text), 0x11), "b+1") << text;
  }
}

TEST(Symbols, MoveWithTheKernel) {
  auto symbols = Symbols::Parse(kKallsyms);
  ASSERT_TRUE(symbols.ok());
  symbols->Move(0x1000000);
  EXPECT_EQ(NameAt(*symbols, 0xffffffff82000100), "spin+0");
  EXPECT_EQ(NameAt(*symbols, 0xffffffff81000100), "none");
}

TEST(Symbols, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(Symbols::Parse("0000000000000000 T _stext\n0 t b\n").status().message(),
              HasSubstr("as root"));
  EXPECT_THAT(Symbols::Parse("").status().message(), HasSubstr("no symbol"));
  for (const char* text : {"root:x:0:0\n", "10 T\n", "10 TT a\n", "xx T a\n", "10\n"}) {
    EXPECT_THAT(Symbols::Parse(text).status().message(),
                HasSubstr("not a kallsyms or System.map: line 1 "))
        << text;
  }
}

TEST(LoadOffset, IsWhatMostFunctionsSay) {
  const auto linked = *Symbols::Parse(
      "1000 T start\n1100 T one\n1200 T two\n1300 t twice\n1400 t twice\n1500 T three\n1600 T "
      "four\n1700 T five\n1800 T six\n1900 T seven\n1a00 T eight\n1b00 T nine\n1c00 D data\n");
  const std::string loaded =
      "5000 T start\n5100 T one\n5200 T two\n5300 t twice\n5500 T three\n5600 T four\n5700 T "
      "five\n5800 T six\n5900 T seven\n5b00 T nine\n5c00 D data\nf0000000 t module [m]\n";
  EXPECT_EQ(*LoadOffset(*Symbols::Parse(loaded + "5a00 T eight\n"), linked), 0x4000u);
  // One in ten may have been patched in: of the ten, one lies elsewhere.
  EXPECT_EQ(*LoadOffset(*Symbols::Parse(loaded + "6a00 T eight\n"), linked), 0x4000u);
}

TEST(LoadOffset, OfTwoKernelsIsNone) {
  const auto linked = *Symbols::Parse("1000 T start\n1100 T one\n1200 T two\n");
  EXPECT_FALSE(LoadOffset(*Symbols::Parse("5000 T start\n5180 T one\n5290 T two\n"), linked).ok());
  EXPECT_FALSE(LoadOffset(*Symbols::Parse("5000 T other\n"), linked).ok());
  // One name in common is no proof, and modules are none against it.
  EXPECT_FALSE(LoadOffset(*Symbols::Parse("5000 T start\n5080 T x\n5090 T y\n"), linked).ok());
  EXPECT_EQ(*LoadOffset(*Symbols::Parse("5000 T start\n5080 t x [m]\n5090 t y [m]\n"), linked),
            0x4000u);
}

}  // namespace
}  // namespace vcpulse::hotspots
