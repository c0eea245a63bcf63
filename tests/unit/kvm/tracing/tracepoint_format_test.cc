#include "kvm/tracing/tracepoint_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/kvm/tracing/kvm_exit_formats.h"

namespace vcpulse::kvm {
namespace {

TEST(TracepointFormat, HasItsIdAndFields) {
  const auto format = ParseTracepointFormat(kX86ExitFormat);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->id, 103u);
  EXPECT_EQ(format->fields.size(), 7u);
  EXPECT_EQ(*format->Find("guest_rip"),
            (TracepointFormat::Field{.name = "guest_rip", .offset = 16, .size = 8}));
  EXPECT_EQ(format->Find("rip"), nullptr);
  const auto arm = ParseTracepointFormat(kArmExitFormat);
  ASSERT_TRUE(arm);
  EXPECT_EQ(*arm->Find("comm"),
            (TracepointFormat::Field{.name = "comm", .offset = 24, .size = 16}));
}

TEST(TracepointFormat, IsNothingWhereItIsNone) {
  for (const char* text :
       {"", "name: kvm_exit\n", "ID: x\n", "ID: 1\n\tfield:int a;\toffset:x;\tsize:4;\n",
        "ID: 1\n\tfield:int a;\toffset:0;\n", "ID: 1\n\tfield:int a\n"}) {
    EXPECT_FALSE(ParseTracepointFormat(text)) << text;
  }
}

TEST(ReadField, NeverReadsBeyondTheRecord) {
  const std::vector<uint8_t> record = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto read = [&record](size_t offset, size_t size) {
    const TracepointFormat::Field field{.name = "f", .offset = offset, .size = size};
    return ReadField(record, &field);
  };
  EXPECT_EQ(read(8, 1), 9u);
  EXPECT_EQ(read(7, 2), 0x0908u);
  EXPECT_EQ(read(5, 4), 0x09080706u);
  EXPECT_EQ(read(1, 8), 0x0908070605040302u);
  EXPECT_EQ(read(2, 8), std::nullopt);
  EXPECT_EQ(read(9, 1), std::nullopt);
  EXPECT_EQ(read(1000, 1), std::nullopt);
  EXPECT_EQ(read(0, 3), std::nullopt);
  EXPECT_EQ(ReadField(record, nullptr), std::nullopt);
}

TEST(ReadText, EndsAtANul) {
  const std::vector<uint8_t> record = {'a', 'b', 0, 'c', 'd'};
  const TracepointFormat::Field field{.name = "comm", .offset = 0, .size = 4};
  EXPECT_EQ(ReadText(record, &field), "ab");
  const TracepointFormat::Field full{.name = "comm", .offset = 3, .size = 2};
  EXPECT_EQ(ReadText(record, &full), "cd");
  const TracepointFormat::Field beyond{.name = "comm", .offset = 4, .size = 2};
  EXPECT_EQ(ReadText(record, &beyond), "");
  EXPECT_EQ(ReadText(record, nullptr), "");
}

}  // namespace
}  // namespace vcpulse::kvm
