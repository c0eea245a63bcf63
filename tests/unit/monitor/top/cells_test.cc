// A grid that nothing is drawn beyond.
#include "monitor/top/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::top {
namespace {

TEST(CellsTest, WhatDoesNotFitIsCut) {
  Cells cells({.columns = 10, .rows = 2});
  EXPECT_EQ(cells.Put({.row = 0, .column = 7}, "abcdef"), 10u);
  EXPECT_EQ(cells.Line(0), "       abc");
  EXPECT_EQ(cells.Put({.row = 1}, "abcdef", {}, 3), 3u);
  EXPECT_EQ(cells.Line(1), "abc");
  cells.Put({.row = 5, .column = 1}, "nowhere");
  cells.Put({.row = 0, .column = 50}, "nowhere");
  EXPECT_EQ(cells.Text(), "       abc\nabc\n");
}

TEST(CellsTest, RightAligned) {
  Cells cells({.columns = 10, .rows = 1});
  cells.PutRight(0, 6, "ab");
  EXPECT_EQ(cells.Line(0), "    ab");
  cells.PutRight(0, 3, "abcdefgh");
  EXPECT_EQ(cells.Line(0), "abc ab");
  cells.PutRight(0, 40, "end");
  EXPECT_EQ(cells.Text(), "abc ab\n");
}

TEST(CellsTest, OnlyWhatTakesOneColumnIsShown) {
  Cells cells({.columns = 12, .rows = 1});
  // An escape sequence, a wide character, one that combines, and half of one.
  cells.Put({}, "a\x1b[2J\xe4\xb8\xad\xcc\x81\xc3");
  EXPECT_EQ(cells.Line(0), "a?[2J???");
  Cells latin({.columns = 12, .rows = 1});
  latin.Put({}, "äé▁█▼");
  EXPECT_EQ(latin.Line(0), "äé▁█▼");
  EXPECT_EQ(WidthOf("äé▁█▼"), 5u);
}

TEST(CellsTest, StylesStayWithTheirCells) {
  Cells cells({.columns = 4, .rows = 1});
  cells.Put({.column = 1}, "xy", {.ink = Ink::kSpinning, .reversed = true});
  EXPECT_EQ(cells.At(0, 0), Cell());
  EXPECT_EQ(cells.At(0, 1).ink, Ink::kSpinning);
  EXPECT_TRUE(cells.At(0, 2).reversed);
  EXPECT_FALSE(cells.At(0, 3).reversed);
}

}  // namespace
}  // namespace vcpulse::top
