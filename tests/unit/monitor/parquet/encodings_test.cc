#include "monitor/parquet/encodings.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::parquet {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using Numbers = std::vector<uint64_t>;

// Decoders as Encodings.md describes them, bit by bit, so that they share nothing with the
// encoders.

struct Bytes {
  std::string_view left;

  uint8_t Byte() {
    EXPECT_FALSE(left.empty());
    const auto byte = static_cast<uint8_t>(left.empty() ? 0 : left[0]);
    left.remove_prefix(left.empty() ? 0 : 1);
    return byte;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint8_t byte = Byte();
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  int64_t ZigZag() {
    const uint64_t value = Varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  Numbers Packed(size_t count, int width) {
    Numbers numbers;
    int bit = 0;
    uint8_t byte = 0;
    for (size_t i = 0; i < count; ++i) {
      uint64_t number = 0;
      for (int b = 0; b < width; ++b) {
        if (bit == 0) byte = Byte();
        number |= static_cast<uint64_t>(byte >> bit & 1) << b;
        bit = (bit + 1) % 8;
      }
      numbers.push_back(number);
    }
    EXPECT_EQ(bit, 0);
    return numbers;
  }
};

Numbers DecodeHybrid(std::string_view encoded, size_t count, int width) {
  Bytes bytes{encoded};
  Numbers numbers;
  while (numbers.size() < count && !bytes.left.empty()) {
    const uint64_t header = bytes.Varint();
    if (header % 2 == 1) {
      for (const uint64_t number : bytes.Packed(header / 2 * 8, width)) numbers.push_back(number);
    } else {
      uint64_t number = 0;
      for (int i = 0; i < (width + 7) / 8; ++i) {
        number |= static_cast<uint64_t>(bytes.Byte()) << (8 * i);
      }
      numbers.insert(numbers.end(), header / 2, number);
    }
  }
  EXPECT_TRUE(bytes.left.empty());
  EXPECT_LT(numbers.size(), count + 8);
  while (numbers.size() > count) {
    EXPECT_EQ(numbers.back(), 0U);  // what fills up the last group
    numbers.pop_back();
  }
  return numbers;
}

template <typename Word>
Numbers DecodeDelta(std::string_view encoded) {
  Bytes bytes{encoded};
  const uint64_t block = bytes.Varint();
  const uint64_t miniblocks = bytes.Varint();
  const uint64_t count = bytes.Varint();
  EXPECT_EQ(block % 128, 0U);
  EXPECT_EQ(block / miniblocks % 32, 0U);
  Word value = static_cast<Word>(bytes.ZigZag());
  Numbers numbers;
  if (count > 0) numbers.push_back(value);
  while (numbers.size() < count) {
    const Word least = static_cast<Word>(bytes.ZigZag());
    std::vector<int> widths(miniblocks);
    for (int& width : widths) width = bytes.Byte();
    for (const int width : widths) {
      EXPECT_LE(width, static_cast<int>(sizeof(Word) * 8));
      if (numbers.size() == count) {
        EXPECT_EQ(width, 0);  // an unused one has no body
        continue;
      }
      for (const uint64_t delta : bytes.Packed(block / miniblocks, width)) {
        if (numbers.size() == count) break;
        value += least + static_cast<Word>(delta);
        numbers.push_back(value);
      }
    }
  }
  EXPECT_TRUE(bytes.left.empty());
  return numbers;
}

std::string Hybrid(const std::vector<uint32_t>& numbers, int width) {
  std::string out;
  AppendRleBitPacked(out, std::span<const uint32_t>(numbers), width);
  return out;
}

std::string Delta64(const Numbers& numbers) {
  std::string out;
  AppendDelta64(out, numbers);
  return out;
}

TEST(Plain, TheLowestByteComesFirst) {
  const Numbers numbers = {0x0102030405060708, ~uint64_t{0}};
  std::string out = "before";
  AppendPlain(out, numbers, 8);
  EXPECT_EQ(out, "before\x08\x07\x06\x05\x04\x03\x02\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  out.clear();
  AppendPlain(out, numbers, 4);
  EXPECT_EQ(out, "\x08\x07\x06\x05\xFF\xFF\xFF\xFF");
  out.clear();
  AppendPlain(out, std::string_view("abc"));
  EXPECT_EQ(out, std::string("\x03\0\0\0abc", 7));
  out.clear();
  AppendPlainBits(out, Numbers{1, 0, 1, 1, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(out, std::string("\x0D\x02"));
}

TEST(ByteStreamSplit, HasTheBytesOfOnePlaceTogether) {
  std::string out;
  AppendByteStreamSplit(out, Numbers{0x0807060504030201, 0x1817161514131211});
  EXPECT_EQ(out, "\x01\x11\x02\x12\x03\x13\x04\x14\x05\x15\x06\x16\x07\x17\x08\x18");
}

// The example of Encodings.md: 0 to 7 in 3 bits are 10001000 11000110 11111010.
TEST(RleBitPacked, IsThatOfTheSpecification) {
  EXPECT_EQ(Hybrid({0, 1, 2, 3, 4, 5, 6, 7}, 3), std::string("\x03\x88\xC6\xFA"));
  EXPECT_EQ(Hybrid(std::vector<uint32_t>(100, 300), 9), std::string("\xC8\x01\x2C\x01"));
  EXPECT_EQ(Hybrid({}, 3), "");
}

TEST(RleBitPacked, IsReadAgain) {
  std::mt19937 random(1);
  for (const int width : {1, 2, 3, 7, 8, 9, 13, 16, 17, 31, 32}) {
    for (int round = 0; round < 100; ++round) {
      std::vector<uint32_t> numbers;
      const size_t pieces = random() % 6;
      for (size_t piece = 0; piece < pieces; ++piece) {
        const bool run = random() % 2 == 0;
        uint32_t number = 0;
        const size_t length = random() % 50;
        for (size_t i = 0; i < length; ++i) {
          if (i == 0 || !run) number = static_cast<uint32_t>(random()) >> (32 - width);
          numbers.push_back(number);
        }
      }
      ASSERT_THAT(DecodeHybrid(Hybrid(numbers, width), numbers.size(), width),
                  ElementsAreArray(numbers))
          << "width " << width;
    }
  }
}

TEST(RleBitPacked, ARunIsShort) {
  std::vector<uint32_t> numbers = {1, 2, 3};
  numbers.insert(numbers.end(), 100'000, 5);
  EXPECT_LT(Hybrid(numbers, 17).size(), 40U);
  // Levels: half of a million rows null, in two runs.
  std::vector<uint8_t> levels(1'000'000, 1);
  std::fill_n(levels.begin(), 500'000, uint8_t{0});
  std::string out;
  AppendRleBitPacked(out, std::span<const uint8_t>(levels), 1);
  EXPECT_EQ(out.size(), 8U);
}

// The first example of Encodings.md: deltas of 1 need no bits.
TEST(Delta, IsThatOfTheSpecification) {
  EXPECT_EQ(Delta64({1, 2, 3, 4, 5}), std::string("\x80\x01\x04\x05\x02"
                                                  "\x02\x00\x00\x00\x00",
                                                  10));
  // The second one, 7, 5, 3, 1, 2, 3, 4, 5: the least delta is -2, the others above it are 0, 0, 0,
  // 3, 3, 3, 3 in 2 bits: 192, 63.
  EXPECT_EQ(Delta64({7, 5, 3, 1, 2, 3, 4, 5}), std::string("\x80\x01\x04\x08\x0E"
                                                           "\x03\x02\x00\x00\x00\xC0\x3F",
                                                           12) +
                                                   std::string(6, '\0'));
  EXPECT_THAT(DecodeDelta<uint64_t>(Delta64({})), ElementsAre());
  EXPECT_THAT(DecodeDelta<uint64_t>(Delta64({9})), ElementsAre(9));
}

TEST(Delta, IsReadAgain) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    Numbers numbers;
    const int shift = static_cast<int>(random() % 64);
    uint64_t walk = random();
    const size_t count = random() % 400;
    for (size_t i = 0; i < count; ++i) {
      numbers.push_back(round % 3 == 0 ? random() : walk += random() >> shift);
    }
    ASSERT_THAT(DecodeDelta<uint64_t>(Delta64(numbers)), ElementsAreArray(numbers));
    std::string out;
    AppendDelta32(out, numbers);
    Numbers narrow;
    for (const uint64_t number : numbers) narrow.push_back(static_cast<uint32_t>(number));
    ASSERT_THAT(DecodeDelta<uint32_t>(out), ElementsAreArray(narrow));
  }
}

TEST(Delta, WrapsAroundAtTheEnds) {
  const auto least = static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const Numbers numbers = {most, least, 0, most, most, least, least, ~uint64_t{0}};
  EXPECT_THAT(DecodeDelta<uint64_t>(Delta64(numbers)), ElementsAreArray(numbers));
}

TEST(Delta, AStampPerMillisecondTakesAByteAndAHalf) {
  std::mt19937_64 random(3);
  Numbers numbers;
  for (uint64_t i = 0; i < 10'000; ++i) numbers.push_back(i * 1'000'000 + random() % 1000);
  EXPECT_LT(Delta64(numbers).size(), 10'000U * 3 / 2);
}

}  // namespace
}  // namespace vcpulse::parquet
