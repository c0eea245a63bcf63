// The lines of the control socket: cut out of what arrives, and understood.
#include "monitor/control/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vcpulse::control {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(std::string_view line) {
  const absl::StatusOr<Request> request = ParseRequest(line);
  if (request.ok()) return "no error";
  EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(request.status().message());
}

std::string NameError(std::string_view name) {
  const absl::StatusOr<std::string> checked = CheckMarkerName(name);
  return checked.ok() ? "no error" : std::string(checked.status().message());
}

TEST(ControlRequest, KnowsItsWords) {
  for (const Verb verb : {Verb::kPause, Verb::kResume, Verb::kStop, Verb::kStatus}) {
    const auto request = ParseRequest(std::string("  ") + std::string(ToString(verb)) + " ");
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(*request, Request{.verb = verb});
  }
  const auto mark = ParseRequest(" mark   load phase 2  ");
  ASSERT_TRUE(mark.ok()) << mark.status();
  EXPECT_EQ(*mark, (Request{.verb = Verb::kMark, .name = "load phase 2"}));
}

TEST(ControlRequest, IsWrittenAsItIsRead) {
  EXPECT_EQ(RequestLine({.verb = Verb::kMark, .name = "a b"}), "mark a b\n");
  EXPECT_EQ(RequestLine({.verb = Verb::kResume}), "resume\n");
}

TEST(ControlRequest, AMistakeIsSaidWithItsPlace) {
  EXPECT_THAT(ErrorOf(""), StartsWith("column 1: no request"));
  EXPECT_THAT(ErrorOf("   "), StartsWith("column 1: no request"));
  EXPECT_THAT(ErrorOf("  halt now"),
              StartsWith("column 3: 'halt' is not a request; known are mark"));
  EXPECT_THAT(ErrorOf("Mark x"), StartsWith("column 1: 'Mark'"));
  EXPECT_EQ(ErrorOf("pause  now"), "column 8: nothing follows pause");
  EXPECT_EQ(ErrorOf("mark"), "column 5: a marker needs a name");
  EXPECT_EQ(ErrorOf("mark   "), "column 8: a marker needs a name");
  EXPECT_EQ(ErrorOf("mark a\tb"), "column 7: the name of a marker has no control characters");
  EXPECT_EQ(ErrorOf("mark ä\xff"), "column 7: byte 0xff is not UTF-8");
  EXPECT_THAT(ErrorOf("mark\tx"), StartsWith("column 1: 'mark\\tx' is not a request"));
  EXPECT_THAT(ErrorOf(std::string(300, 'x')), HasSubstr(std::string(32, 'x') + "...'"));
}

TEST(MarkerName, IsUtf8WithoutControlCharacters) {
  for (const std::string_view name : {"x", "größe ☃ 𝄞", "a  b", "-", "\xC2\xA0"}) {
    const auto checked = CheckMarkerName(name);
    ASSERT_TRUE(checked.ok()) << name << checked.status();
    EXPECT_EQ(*checked, name);
  }
  EXPECT_THAT(NameError(" x\x7f"), StartsWith("column 3: the name"));
  EXPECT_THAT(NameError("\x1b[2J"), StartsWith("column 1: the name"));
  EXPECT_THAT(NameError("x\xC2\x9B"), StartsWith("column 2: the name"));       // C1
  EXPECT_THAT(NameError("☃\xED\xA0\x80"), StartsWith("column 2: byte 0xed"));  // a surrogate
  EXPECT_THAT(NameError("\xE2\x98"), StartsWith("column 1: byte 0xe2"));       // cut short
}

TEST(MarkerName, HasAtMost256Bytes) {
  EXPECT_TRUE(CheckMarkerName("  " + std::string(256, 'x') + " ").ok());
  EXPECT_EQ(NameError(std::string(257, 'x')),
            "column 257: the name of a marker has at most 256 bytes");
  EXPECT_THAT(NameError(std::string(255, 'x') + "ä"), StartsWith("column 256: "));
}

// What comes of `text` when it arrives in pieces of this size: "!" stands for a line too long.
std::vector<std::string> Lines(std::string_view text, size_t piece) {
  LineSplitter splitter(8);
  std::vector<std::string> lines;
  const auto take = [&](const LineSplitter::Line& line) {
    lines.push_back(line.too_long ? "!" + line.text : line.text);
  };
  for (size_t i = 0; i < text.size(); i += piece) {
    splitter.Receive(text.substr(i, piece));
    while (const auto line = splitter.Next()) take(*line);
  }
  if (const auto line = splitter.Rest()) take(*line);
  return lines;
}

TEST(LineSplitter, GivesTheSameLinesHoweverTheyArrive) {
  struct Case {
    std::string text;
    std::vector<std::string> lines;
  };
  const std::vector<Case> cases = {
      {"a\nbc\r\n\nd\n", {"a", "bc", "", "d"}},
      {"no end", {"no end"}},
      {"a\rb\n", {"a\rb"}},
      {"12345678\n12345678\r\n", {"12345678", "12345678"}},
      {"12345678\r", {"12345678"}},
      {"123456789\nx\n", {"!", "x"}},
      {"123456789\r\nx\n", {"!", "x"}},
      {"123456789abcdefghi\nx\n", {"!", "x"}},
      {"123456789abcdefghi", {"!"}},
      {"123456789", {"!"}},
      {"", {}},
  };
  for (const Case& c : cases) {
    for (size_t piece = 1; piece <= c.text.size() + 1; ++piece) {
      EXPECT_EQ(Lines(c.text, piece), c.lines) << c.text << " in pieces of " << piece;
    }
  }
}

// An endless line is said at once, and does not pile up.
TEST(LineSplitter, SaysThatALineIsTooLongBeforeItsEnd) {
  LineSplitter splitter(8);
  splitter.Receive("0123456789");
  const auto line = splitter.Next();
  ASSERT_TRUE(line.has_value());
  EXPECT_TRUE(line->too_long);
  splitter.Receive("0123456789");
  EXPECT_FALSE(splitter.Next().has_value());
}

}  // namespace
}  // namespace vcpulse::control
