#include "monitor/hotspots/orc.h"

#include <gtest/gtest.h>

#include "tests/unit/monitor/hotspots/orc_bytes.h"

namespace vcpulse::hotspots {
namespace {

using Base = OrcFrame::Base;
using Kept = OrcFrame::Kept;

constexpr uint64_t kOrcText = 0xffffffff81000000;

OrcTable Parse(const OrcBytes& bytes) {
  return OrcTable::Parse(bytes.places, kOrcPlaces, bytes.entries);
}

// Of Linux 6.4 and newer: 2 is a call, 3 an interrupt.
OrcBytes NewBytes() {
  OrcBytes bytes;
  bytes.Add(kOrcText, 8, 0, 0x05, 2);
  bytes.Add(kOrcText + 1, 16, -16, 0x15, 2);
  bytes.Add(kOrcText + 4, 16, -16, 0x14, 2);
  bytes.Add(kOrcText + 0x40, 0, 0, 0x05, 3);
  bytes.Add(kOrcText + 0x50, 0, 0, 0x00, 0);
  return bytes;
}

TEST(OrcTable, SaysWhereAFrameBegins) {
  const OrcTable table = Parse(NewBytes());
  EXPECT_EQ(table.Find(kOrcText - 1), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText), (OrcFrame{.offset = 8}));
  EXPECT_EQ(table.Find(kOrcText + 3),
            (OrcFrame{.offset = 16, .kept = Kept::kBelowCaller, .kept_offset = -16}));
  EXPECT_EQ(
      table.Find(kOrcText + 0x3f),
      (OrcFrame{
          .base = Base::kFrame, .offset = 16, .kept = Kept::kBelowCaller, .kept_offset = -16}));
}

TEST(OrcTable, AnInterruptAndTheEndHaveNoCaller) {
  const OrcTable table = Parse(NewBytes());
  EXPECT_EQ(table.Find(kOrcText + 0x40), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText + 0x50), std::nullopt);
}

// 0 is a call, 1 an interrupt; bit 2 marks the end of a stack, bit 3 nothing.
TEST(OrcTable, TheOldNumbersOfTypesAreTold) {
  OrcBytes bytes;
  bytes.Add(kOrcText, 8, 0, 0x05, 0);
  bytes.Add(kOrcText + 8, 24, 0, 0x05, 0);
  bytes.Add(kOrcText + 16, 0, 0, 0x05, 1);
  bytes.Add(kOrcText + 24, 0, 0, 0x00, 4);
  bytes.Add(kOrcText + 32, 16, 0, 0x09, 0);  // other kernels meant another place by it
  const OrcTable table = Parse(bytes);
  EXPECT_EQ(table.Find(kOrcText + 32), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText + 9), (OrcFrame{.offset = 24}));
  EXPECT_EQ(table.Find(kOrcText + 16), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText + 24), std::nullopt);
}

TEST(OrcTable, RegistersThatAreNotFollowedAreNone) {
  OrcBytes bytes;
  bytes.Add(kOrcText, 8, 0, 0x05, 2);
  bytes.Add(kOrcText + 8, 8, 0, 0x06, 2);   // R10
  bytes.Add(kOrcText + 16, 8, 0, 0x75, 2);  // frame register kept at R13
  bytes.Add(kOrcText + 24, 16, 0, 0x09, 2);
  bytes.Add(kOrcText + 32, 16, -8, 0x48, 2);
  const OrcTable table = Parse(bytes);
  EXPECT_EQ(table.Find(kOrcText + 8), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText + 16), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText + 24), (OrcFrame{.base = Base::kAtStack, .offset = 16}));
  EXPECT_EQ(
      table.Find(kOrcText + 32),
      (OrcFrame{.base = Base::kAtFrame, .offset = 16, .kept = Kept::kAtFrame, .kept_offset = -8}));
}

TEST(OrcTable, IsSortedAndOfTwoTakesTheOneThatSaysSomething) {
  OrcBytes bytes;
  bytes.Add(kOrcText + 8, 16, 0, 0x05, 2);
  bytes.Add(kOrcText + 8, 0, 0, 0x00, 0);
  bytes.Add(kOrcText, 8, 0, 0x05, 2);
  const OrcTable table = Parse(bytes);
  EXPECT_EQ(table.Find(kOrcText), (OrcFrame{.offset = 8}));
  EXPECT_EQ(table.Find(kOrcText + 8), (OrcFrame{.offset = 16}));
}

TEST(OrcTable, MovesWithItsKernel) {
  OrcTable table = Parse(NewBytes());
  table.Move(0x1000000);
  EXPECT_EQ(table.Find(kOrcText), std::nullopt);
  EXPECT_EQ(table.Find(kOrcText + 0x1000000), (OrcFrame{.offset = 8}));
}

TEST(OrcTable, HalfAnEntryIsNone) {
  OrcBytes bytes = NewBytes();
  bytes.entries.resize(6 + 5);
  bytes.places.resize(4 + 3);
  const OrcTable table = Parse(bytes);
  EXPECT_EQ(table.Find(kOrcText + 0x3f), (OrcFrame{.offset = 8}));
  EXPECT_TRUE(OrcTable::Parse({}, 0, {}).empty());
}

}  // namespace
}  // namespace vcpulse::hotspots
