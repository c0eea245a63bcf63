#include "monitor/rollup/store/merged_rows.h"

#include <gtest/gtest.h>

#include <string>

namespace vcpulse::rollup {
namespace {

const std::string kHeader = "window_start_ns,vm_name,vm,vcpu,epoch,ticks,gap_ns\n";

TEST(MergedRows, TheReadingWithMoreTicksHasTheRow) {
  const std::string partial = kHeader + "10,a,1,0,1,100,0\n20,a,1,0,1,40,0\n";
  const std::string later = kHeader + "10,a,1,0,1,60,0\n20,a,1,0,1,100,0\n30,a,1,0,1,100,0\n";
  EXPECT_EQ(MergeRows(partial, later),
            kHeader + "10,a,1,0,1,100,0\n20,a,1,0,1,100,0\n30,a,1,0,1,100,0\n");
}

TEST(MergedRows, ARowThatOneReadingLacksStays) {
  EXPECT_EQ(MergeRows(kHeader + "20,a,1,0,1,5,0\n", kHeader + "10,a,1,0,2,5,0\n"),
            kHeader + "10,a,1,0,2,5,0\n20,a,1,0,1,5,0\n");
}

// After a step of the clock a window comes twice.
TEST(MergedRows, RowsOfOneWindowStayTogether) {
  const std::string twice = kHeader + "10,a,1,0,1,5,0\n10,a,1,0,1,6,0\n";
  EXPECT_EQ(MergeRows(twice, kHeader + "10,a,1,0,1,6,0\n"), twice);
  EXPECT_EQ(MergeRows(kHeader + "10,a,1,0,1,6,0\n", twice), twice);
}

TEST(MergedRows, AtAsManyTicksLessGapCounts) {
  const std::string gap = kHeader + "10,old,1,0,1,5,7\n";
  const std::string filled = kHeader + "10,new,1,0,1,5,0\n";
  EXPECT_EQ(MergeRows(gap, filled), filled);
  EXPECT_EQ(MergeRows(filled, gap), filled);
  EXPECT_EQ(MergeRows(kHeader + "10,old,1,0,1,5,7\n", kHeader + "10,new,1,0,1,5,7\n"), gap);
}

TEST(MergedRows, CellsInQuotesStayAsTheyAre) {
  const std::string rows = kHeader + "10,\"a,\"\"b\"\"\nc\",1,0,1,5,0\n";
  EXPECT_EQ(MergeRows(rows, kHeader), rows);
}

TEST(MergedRows, ColumnsOfALaterVersionAreEmptyInOlderRows) {
  EXPECT_EQ(MergeRows("window_start_ns,gone,vm,vcpu,epoch,ticks\n10,x,1,0,1,5\n", kHeader),
            kHeader + "10,,1,0,1,5,\n");
}

TEST(MergedRows, WhatIsNoTableIsEmpty) {
  const std::string row = kHeader + "10,a,1,0,1,5,0\n";
  EXPECT_EQ(MergeRows("", row), row);
  EXPECT_EQ(MergeRows("\"", row), row);
  EXPECT_EQ(MergeRows("a,b\n1,2\n", row), row);
  EXPECT_EQ(MergeRows(kHeader + "20,a,1,0,1,5,", row), row);
  EXPECT_EQ(MergeRows(kHeader + "x,a,1,0,1,5,0\n1,2\n", row), row);
}

}  // namespace
}  // namespace vcpulse::rollup
