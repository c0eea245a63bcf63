#include "monitor/timeline/entry.h"

#include <gtest/gtest.h>

#include <string>

#include "kvm/base/text.h"

namespace vcpulse::timeline {
namespace {

TEST(Utf8Texts, KeepsWhatIsWellFormedAndNothingElse) {
  const auto fixed = [](std::string text) {
    MakeUtf8(&text);
    return text;
  };
  const std::string good =
      "a\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80"
      "\xf4\x8f\xbf\xbf";
  EXPECT_EQ(fixed(good), good);
  EXPECT_EQ(fixed("\xc0\x80"), "??");            // overlong
  EXPECT_EQ(fixed("\xe0\x9f\xbf"), "???");       // overlong
  EXPECT_EQ(fixed("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(fixed("\xf0\x8f\xbf\xbf"), "????");  // overlong
  EXPECT_EQ(fixed("\xf4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(fixed("\xf5\x80\x80\x80x"), "????x");
  EXPECT_EQ(fixed("\xc3"), "?");  // cut off
  EXPECT_EQ(fixed("\xe2\x82"
                  "a"),
            "??a");
}

}  // namespace
}  // namespace vcpulse::timeline
