#include "tools/vcpulse/label_options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;

std::string LabelRefusal(const std::vector<std::string>& texts) {
  const auto labels = ParseLabels(texts);
  return labels.ok() ? "" : std::string(labels.status().message());
}

TEST(Labels, AreOrderedByKey) {
  const auto labels = ParseLabels({"zone=eu-1", "rack=12=b"});
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(FieldsAre("rack", "12=b"), FieldsAre("zone", "eu-1")));
}

TEST(Labels, WhatIsNoLabel) {
  EXPECT_THAT(LabelRefusal({"rack"}), HasSubstr("--label 'rack': write KEY=VALUE"));
  for (const char* key : {"", "1a", "a-b", "__name", "a b"}) {
    EXPECT_THAT(LabelRefusal({std::string(key) + "=x"}), HasSubstr("a key is of letters")) << key;
  }
  EXPECT_THAT(LabelRefusal({std::string(64, 'a') + "=x"}), HasSubstr("63 bytes"));
  EXPECT_EQ(LabelRefusal({std::string(63, 'a') + "=x"}), "");
  for (const char* value : {"", "a,b", "a\nb", "\xff"}) {
    EXPECT_THAT(LabelRefusal({std::string("k=") + value}), HasSubstr("a value is text")) << value;
  }
  EXPECT_THAT(LabelRefusal({"k=" + std::string(254, 'a')}), HasSubstr("a value is text"));
  EXPECT_LE(LabelRefusal({"k=" + std::string(5000, 'a')}).size(), 200u);
  EXPECT_LE(LabelRefusal({std::string(5000, 'a')}).size(), 200u);
  EXPECT_THAT(LabelRefusal({"k=1", "k=2"}), HasSubstr("'k=2': this key is given twice"));
}

TEST(Labels, ThirtyTwoAreTheMost) {
  std::vector<std::string> texts;
  for (int i = 0; i < 33; ++i) texts.push_back("k" + std::to_string(i) + "=v");
  EXPECT_THAT(LabelRefusal(texts), HasSubstr("33 labels are given, and 32 is the most"));
  texts.pop_back();
  EXPECT_EQ(LabelRefusal(texts), "");
}

}  // namespace
}  // namespace vcpulse::tools
