#include "monitor/parquet/thrift_compact.h"

#include <stdexcept>
#include <string>

#include "gtest/gtest.h"

namespace vcpulse::parquet {
namespace {

std::string Varint(uint64_t value) {
  std::string out;
  AppendVarint(out, value);
  return out;
}

TEST(Varint, HasSevenBitsPerByte) {
  EXPECT_EQ(Varint(0), std::string(1, '\0'));
  EXPECT_EQ(Varint(127), "\x7F");
  EXPECT_EQ(Varint(128), std::string("\x80\x01"));
  EXPECT_EQ(Varint(50399), std::string("\xDF\x89\x03"));  // the example of thrift-compact-protocol
  EXPECT_EQ(Varint(~uint64_t{0}), std::string(9, '\xFF') + "\x01");
}

TEST(ZigZag, SmallOfEitherSignIsSmall) {
  EXPECT_EQ(ZigZagOf(0), 0U);
  EXPECT_EQ(ZigZagOf(-1), 1U);
  EXPECT_EQ(ZigZagOf(1), 2U);
  EXPECT_EQ(ZigZagOf(INT64_MAX), ~uint64_t{0} - 1);
  EXPECT_EQ(ZigZagOf(INT64_MIN), ~uint64_t{0});
}

// The bytes by hand, as thrift-compact-protocol.md says.
TEST(ThriftCompact, FieldsHaveTheStepOfTheirIdAndTheirType) {
  ThriftCompact out;
  out.BeginStruct();
  out.I32(1, -1);
  out.I64(3, 64);
  out.Bool(4, true);
  out.Bool(5, false);
  out.Binary(20, "ab");  // 15 further on
  out.Byte(36, -2);      // 16: the id stands by itself
  out.I16(37, 1);
  out.EndStruct();
  EXPECT_EQ(out.bytes(), std::string("\x15\x01"
                                     "\x26\x80\x01"
                                     "\x11"
                                     "\x12"
                                     "\xF8\x02"
                                     "ab"
                                     "\x03\x48\xFE"
                                     "\x14\x02"
                                     "\x00",
                                     17));
}

TEST(ThriftCompact, StructsAndListsNest) {
  ThriftCompact out;
  out.BeginStruct();
  out.BeginStructs(2, 2);
  for (const int value : {1, 2}) {
    out.BeginStruct();
    out.I32(7, value);
    out.EndStruct();
  }
  out.BeginStruct(3);
  out.I32(1, 3);
  out.EndStruct();
  out.BeginI32s(4, 15);  // the first size with a varint
  for (int i = 0; i < 15; ++i) out.I32Element(0);
  out.BeginBinaries(5, 1);
  out.BinaryElement("x");
  out.EndStruct();
  EXPECT_EQ(out.bytes(), std::string("\x29\x2C"
                                     "\x75\x02\x00"
                                     "\x75\x04\x00"
                                     "\x1C\x15\x06\x00"
                                     "\x19\xF5\x0F",
                                     15) +
                             std::string(15, '\0') + std::string("\x19\x18\x01x\x00", 5));
}

TEST(ThriftCompact, IdsAscend) {
  ThriftCompact out;
  out.BeginStruct();
  out.I32(2, 0);
  EXPECT_THROW(out.I32(2, 0), std::logic_error);
}

}  // namespace
}  // namespace vcpulse::parquet
