// Strips of drawn timelines: the letters, what does not fit, how they end.

#include "monitor/report/strip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "monitor/report/report.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::report {
namespace {

using check::DrawnRecording;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> StripsOf(DrawnRecording& recording, size_t width = 100,
                                  const reading::Part& part = {}, bool colour = false) {
  Summary summary;
  Strips strips;
  const auto report =
      ReadPart(recording.Finish(), part, summary, [&strips](const timeline::Entry& entry) {
        strips.Add(entry);
        return absl::OkStatus();
      });
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  strips.Finish();
  return Lines(RenderStrips(*report, strips, 1, {.width = width, .colour = colour}));
}

TEST(Strip, ALetterPerTick) {
  DrawnRecording recording;
  recording.Draw("HHSSPPUUP?hspNH");
  EXPECT_THAT(StripsOf(recording), ElementsAre("   0 |..SS##??#-:$%?.|", StartsWith("      |0s")));
}

TEST(Strip, MissingTicksAndOtherEpochs) {
  DrawnRecording recording;
  recording.Draw("PPP^...PPP");
  EXPECT_EQ(StripsOf(recording).front(), "   0 |###___###|");
}

// 12 ticks to a character: what has most of it names it, but a spin does not vanish.
TEST(Strip, SlotsOfSeveralTicks) {
  DrawnRecording recording;
  std::string letters;
  for (int i = 0; i < 34; ++i) letters += i % 2 == 0 ? "PPPPPPPPPPPS" : "HHHHHHHHHHHH";
  recording.Draw(letters);
  const std::vector<std::string> lines = StripsOf(recording, 41);
  std::string wanted;
  for (int i = 0; i < 17; ++i) wanted += "s.";
  EXPECT_EQ(lines.front(), "   0 |" + wanted + "|");
  EXPECT_THAT(lines.front(), SizeIs(41));
}

TEST(Strip, ALongRecordingFitsAndEachTickCounts) {
  DrawnRecording recording;
  for (int i = 0; i < 10; ++i) recording.Draw(std::string(1000, i < 5 ? 'P' : 'S'));
  for (const size_t width : {40, 72, 100, 300}) {
    const std::vector<std::string> lines = StripsOf(recording, width);
    ASSERT_FALSE(lines.empty());
    const std::string& strip = lines.front();
    EXPECT_EQ(strip.size(), width);
    const auto count = [&strip](char c) { return std::ranges::count(strip, c); };
    EXPECT_NEAR(static_cast<double>(count('#')), static_cast<double>(count('S')), 1) << width;
    EXPECT_EQ(count('_'), 0);
    for (const std::string& line : lines) EXPECT_LE(line.size(), width);
  }
}

TEST(Strip, MarkersAndTimeBelow) {
  DrawnRecording recording;
  recording.Draw("[boot]PPPPPPPPPP[b]P[bodylong]PPPPPPPPP[x][y]PPP[end]PPPPPPPPPPPPPPPPPPPP");
  const std::vector<std::string> lines = StripsOf(recording);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "      ^boot     ^^bodylong*  ^end");
  EXPECT_EQ(lines[2], "      |0s                 |2s                 |4s");
}

TEST(Strip, ManyVcpusAndLongNumbers) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0, 12345}});
  recording.Draw(std::vector<std::string>{"PP", "HH"});
  const std::vector<std::string> lines = StripsOf(recording);
  EXPECT_THAT(lines, ElementsAre("    0 |##|", "12345 |..|", Not(HasSubstr("#"))));
}

TEST(Strip, ColoursEndOnTheirLine) {
  DrawnRecording recording;
  recording.Draw("HHSS");
  EXPECT_EQ(StripsOf(recording, 100, {}, true).front(), "   0 |\x1b[2m..\x1b[0m\x1b[33mSS\x1b[0m|");
}

TEST(Strip, PartsBeginAtTheirFirstSample) {
  DrawnRecording recording;
  recording.Draw("PPPPPPPPPP[b]SSSSSSSSSS[c]HHHHHHHHHH[b]SSSSS[c]H");
  const auto from = StripsOf(recording, 100, {.from_ns = 1'050'000'000, .to_ns = 2'050'000'000});
  EXPECT_EQ(from.front(), "   0 |SSSSSSSSSS|");
  const auto phase = StripsOf(recording, 100, {.phase = "b"});
  EXPECT_EQ(phase.front(), "   0 |SSSSSSSSSS__________SSSSS|");
}

TEST(Strip, NothingSampledIsNoStrip) {
  DrawnRecording recording;
  recording.Draw("..");
  EXPECT_THAT(StripsOf(recording), testing::IsEmpty());
}

}  // namespace
}  // namespace vcpulse::report
