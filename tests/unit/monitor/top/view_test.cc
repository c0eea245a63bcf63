// Store, boards, state and cells together, as a terminal has them.
#include "monitor/top/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fakes/temporary_folder.h"
#include "tests/unit/monitor/top/top_fixture.h"

namespace vcpulse::top {
namespace {

using core::Band;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ViewTest : public testing::Test {
 protected:
  ~ViewTest() override { std::filesystem::remove_all(folder_); }

  View Open(const Recording& recording, const Source& source = {.name = "a.vpt"},
            const Size& size = {.columns = 100, .rows = 30}) {
    AddAll(store_, ChunksOf(recording));
    return View(store_, {.source = source, .keymap = {}, .size = size});
  }
  static std::string Text(View& view) {
    EXPECT_TRUE(view.Load(NeverStop));
    return view.Draw().Text();
  }
  static void Press(View& view, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) view.Take(KeyEvent{key});
  }

  ChunkStore store_{ChunkStore::Limits()};
  const std::string folder_ = fakes::MakeTemporaryFolder();
};

TEST_F(ViewTest, BandsReadWithoutColour) {
  View view = Open({.vms = 1, .vcpus = 4, .band = [](uint32_t, uint32_t vcpu, uint64_t) {
                      return static_cast<Band>(vcpu + 1);
                    }});
  const std::string text = Text(view);
  EXPECT_THAT(text, ContainsRegex("vCPU 0 +[.]{5}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 1 +S{5}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 2 +#{5}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 3 +[?]{5}"));
}

TEST_F(ViewTest, StarvedBandsHaveTheirOwnCharacters) {
  View view =
      Open({.vms = 1,
            .vcpus = 4,
            .band = [](uint32_t, uint32_t vcpu, uint64_t) { return static_cast<Band>(vcpu + 1); },
            .starved = true});
  const std::string text = Text(view);
  EXPECT_THAT(text, ContainsRegex("vCPU 0 +:{5}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 1 +[$]{5}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 2 +%{5}"));
  EXPECT_THAT(text, ContainsRegex("vCPU 3 +!{5}"));
}

// Of several vCPUs the row shows what most did; no HALTED one among them is called starved.
TEST_F(ViewTest, TheRowOfAVmAddsItsVcpusUp) {
  View view = Open({.vms = 1,
                    .vcpus = 3,
                    .band = [](uint32_t, uint32_t vcpu,
                               uint64_t) { return vcpu == 0 ? Band::kUnknown : Band::kHalted; },
                    .starved = true});
  EXPECT_THAT(Text(view), ContainsRegex("-guest-1 +[.]{5}"));
  ChunkStore two{ChunkStore::Limits()};
  AddAll(two, ChunksOf({.vms = 1, .vcpus = 2, .band = [](uint32_t, uint32_t vcpu, uint64_t) {
                          return vcpu == 0 ? Band::kHalted : Band::kProductive;
                        }}));
  View tie(two, {.source = {.name = "a.vpt"}, .keymap = {}, .size = {.columns = 100, .rows = 30}});
  EXPECT_THAT(Text(tie), ContainsRegex("-guest-1 +#{5}"));
}

TEST_F(ViewTest, AShortSpinShowsInALongStretch) {
  View view = Open({.vms = 1,
                    .vcpus = 1,
                    .ticks = 3000,
                    .ticks_per_chunk = 100,
                    .band = [](uint32_t, uint32_t, uint64_t tick) {
                      return tick >= 1000 && tick < 1005 ? Band::kSpinning : Band::kProductive;
                    }});
  Press(view, {"-", "-", "-", "-", "-"});
  EXPECT_THAT(Text(view), ContainsRegex("vCPU 0 +#+s#+"));
}

TEST_F(ViewTest, HeadAxisAndMarkers) {
  View view = Open({.markers = {{50, "boot"}, {80, "body"}}});
  EXPECT_THAT(Text(view), HasSubstr("2 VMs  4 vCPUs  100 ticks  0 gaps  reading"));
  Press(view, {"+", "+"});  // 10 s
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("vcpulse top  a.vpt  host1"));
  EXPECT_THAT(text, HasSubstr("^boot"));
  EXPECT_THAT(text, HasSubstr("^body"));
  EXPECT_THAT(text, HasSubstr("of 2 s"));
  EXPECT_THAT(text, Not(HasSubstr("DEGRADED")));
  EXPECT_THAT(text, HasSubstr("00:00:10.000"));  // a day and ten seconds after 2026-01-01
}

TEST_F(ViewTest, WithoutAClockOfDayTimesAreFromTheStart) {
  View view = Open({.has_realtime = false});
  EXPECT_THAT(Text(view), HasSubstr("+10.000 s"));
}

TEST_F(ViewTest, WaitsForTheFirstSamples) {
  View view(store_, {.source = {.name = "live", .is_live = true},
                     .keymap = {},
                     .size = {.columns = 80, .rows = 24}});
  EXPECT_THAT(Text(view), HasSubstr("waiting for the first samples"));
  view.Note("VM web (PID 7) is not recorded so far: no rights");
  EXPECT_THAT(Text(view), HasSubstr("\nVM web (PID 7) is not recorded so far"));
  view.SourceIsOver();
  EXPECT_THAT(Text(view), HasSubstr("no VM was recorded here"));
  AddAll(store_, ChunksOf({}));
  view.StoreChanged();
  EXPECT_THAT(Text(view), HasSubstr("guest-1"));
}

// Bands that no counter told apart are not known: neither shown as 0 nor taken for it.
TEST_F(ViewTest, DegradedIsSaidAndNothingIsMadeUp) {
  View view =
      Open({.vms = 1, .vcpus = 1, .degraded = true, .band = [](uint32_t, uint32_t, uint64_t) {
              return Band::kUnknown;
            }});
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("DEGRADED: no hardware counters"));
  EXPECT_THAT(text, ContainsRegex("vCPU 0 +[?]+ +- +- +0[.]0"));
  Press(view, {"/", "s", "p", "i", "n", "n", "i", "n", "g", "<", "5", "%", "enter"});
  EXPECT_THAT(Text(view), HasSubstr("no vCPU fits the filter"));
  Press(view, {"escape", "down"});
  EXPECT_THAT(Text(view), HasSubstr("no hardware counters: no PMU"));
}

// A host that says nothing any more is still there, without numbers.
TEST_F(ViewTest, ASilentHostStaysInSight) {
  AddAll(store_, ChunksOf({.vms = 1, .ticks = 100, .stream = 1}), "rack1");
  AddAll(store_, ChunksOf({.vms = 1, .ticks = 400, .stream = 2}), "rack2");
  View view(store_, {.source = {.name = "collector", .is_followed = true},
                     .keymap = {},
                     .size = {.columns = 100, .rows = 30}});
  EXPECT_THAT(Text(view), HasSubstr("2 VMs  4 vCPUs"));
  EXPECT_THAT(Text(view), HasSubstr("-rack1 guest-1"));
  Press(view, {"tab", "tab"});
  EXPECT_THAT(Text(view), ContainsRegex("rack1 .* - +- +- +-"));
  Press(view, {"+", "+"});  // 10 s, in which it said nothing
  EXPECT_THAT(Text(view), ContainsRegex("rack1 .* - +- +- +-"));
  view.SetSilence(7 * kSecond_ns);
  EXPECT_THAT(Text(view), HasSubstr("LIVE, no data for 7 s"));
}

// One whose clock is ahead hides nobody.
TEST_F(ViewTest, AHostWithAWrongClockHidesNobody) {
  const int64_t now_ns = kRealtimeAhead_ns + 86'410 * kSecond_ns;
  for (const Chunk& chunk : ChunksOf({.vms = 1, .stream = 1})) {
    ASSERT_TRUE(store_.Add("rack1", chunk, now_ns).ok());
  }
  for (const Chunk& chunk : ChunksOf({.vms = 1, .stream = 2})) {
    ASSERT_TRUE(store_.Add("ahead", chunk, now_ns - 7200 * kSecond_ns).ok());
  }
  EXPECT_LT(store_.streams()[1].ahead_ns, kRealtimeAhead_ns - 7000 * kSecond_ns);
  EXPECT_EQ(store_.streams()[0].ahead_ns, kRealtimeAhead_ns);
}

TEST_F(ViewTest, DamageIsSaid) {
  auto chunks = ChunksOf({.vms = 1});
  for (size_t i = 1; i < chunks.size(); i += 2) chunks[i].back() ^= 1;
  AddAll(store_, chunks);
  View view(store_,
            {.source = {.name = "a.vpt"}, .keymap = {}, .size = {.columns = 100, .rows = 30}});
  EXPECT_THAT(Text(view), HasSubstr("5 chunks DAMAGED"));
}

// Of an interval of an hour as of one of a millisecond: the numbers take the same memory.
TEST_F(ViewTest, SlowTicksHaveNumbersToo) {
  View view = Open({.vms = 1, .ticks = 5, .interval_ns = 3600 * kSecond_ns, .ticks_per_chunk = 1});
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("of 3.6e+03 s"));
  EXPECT_THAT(text, ContainsRegex("vCPU 0 .* 0[.]0 100[.]0"));
}

TEST_F(ViewTest, StepsFromTickToTick) {
  View view = Open({.vms = 1});
  Text(view);
  const int64_t end_ns = view.state().cursor_ns;
  Press(view, {"T"});
  EXPECT_EQ(view.state().pace, Pace::kPaused);
  const int64_t one_ns = view.state().cursor_ns;
  EXPECT_LT(one_ns, end_ns + 1);
  Press(view, {"T"});
  EXPECT_NEAR(static_cast<double>(one_ns - view.state().cursor_ns), 1e8, 1e6);
  EXPECT_THAT(Text(view), HasSubstr("of one tick"));
  Press(view, {"t"});
  EXPECT_EQ(view.state().cursor_ns, one_ns);
  Press(view, {"t", "t", "t"});
  EXPECT_THAT(view.state().message, HasSubstr("the last tick"));
}

TEST_F(ViewTest, PlaysAtThePaceOfTheRecording) {
  View view = Open({.vms = 1});
  Press(view, {"home", "space"});
  const int64_t begin_ns = view.state().cursor_ns;
  view.Advance(3 * kSecond_ns);
  EXPECT_EQ(view.state().cursor_ns, begin_ns + 3 * kSecond_ns);
  EXPECT_EQ(view.state().pace, Pace::kPlaying);
  EXPECT_THAT(Text(view), HasSubstr("PLAYING"));
  view.Advance(30 * kSecond_ns);
  EXPECT_EQ(view.state().pace, Pace::kFollow);
  view.Advance(kSecond_ns);  // of no effect
  EXPECT_EQ(view.state().cursor_ns, store_.Span()->end_ns);
}

TEST_F(ViewTest, ExplainsTheVerdictAtTheCursor) {
  View view = Open({.vms = 2});
  Text(view);
  Press(view, {"down", "J", "3", "s", "enter", "e"});
  ASSERT_EQ(view.state().mode, Mode::kText) << view.state().message;
  std::string text;
  for (const std::string& line : view.state().text) text += line + "\n";
  EXPECT_THAT(text, HasSubstr("vCPU 0 of VM guest-1"));
  EXPECT_THAT(text, ContainsRegex("at (6[.]9|7[.]0)"));  // of ten seconds
  EXPECT_THAT(text, HasSubstr("PRODUCTIVE"));
  EXPECT_THAT(Text(view), HasSubstr("Why, at"));
}

// What is written is read again, and is the same chunks.
TEST_F(ViewTest, WritesWhatIsHeld) {
  const auto chunks = ChunksOf({});
  View view = Open({}, {.name = "live", .is_live = true});
  const auto written = view.Write({.path = folder_ + "/a.vpt"});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, chunks.size());
  std::ifstream file(folder_ + "/a.vpt", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<char> expected;
  for (const Chunk& chunk : chunks) expected.insert(expected.end(), chunk.begin(), chunk.end());
  EXPECT_EQ(bytes, expected);
  EXPECT_TRUE(ChunkStore::OpenFile(folder_ + "/a.vpt").ok());
  EXPECT_FALSE(view.Write({.path = folder_ + "/missing/a.vpt"}).ok());
  EXPECT_FALSE(view.Write({.path = folder_ + "/b.vpt", .stream = 9}).ok());
}

TEST_F(ViewTest, LostChunksAreSaid) {
  View view = Open({});
  EXPECT_THAT(Text(view), Not(HasSubstr("NOT SHOWN")));
  view.SetLostChunks(3);
  EXPECT_TRUE(view.TakeChanged());
  EXPECT_THAT(Text(view), HasSubstr("3 chunks NOT SHOWN"));
}

TEST_F(ViewTest, IsDrawnAnewOnlyWhereSomethingChanged) {
  View view = Open({});
  Text(view);
  EXPECT_TRUE(view.TakeChanged());
  EXPECT_FALSE(view.TakeChanged());
  view.Take(KeyEvent{"down"});
  EXPECT_TRUE(view.TakeChanged());
  view.Advance(kSecond_ns);  // it is not playing
  view.SetLostChunks(0);
  EXPECT_TRUE(view.Load(NeverStop));
  view.TakeChanged();
  EXPECT_TRUE(view.Load(NeverStop));
  EXPECT_FALSE(view.TakeChanged());
}

TEST_F(ViewTest, SeveralHostsShareOneAxis) {
  AddAll(store_, ChunksOf({.vms = 1, .stream = 1}), "rack1");
  AddAll(store_, ChunksOf({.vms = 1, .stream = 2}), "rack2");
  View view(store_, {.source = {.name = "collector", .is_followed = true},
                     .keymap = {},
                     .size = {.columns = 100, .rows = 30}});
  EXPECT_THAT(Text(view), HasSubstr("2 hosts"));
  Press(view, {"tab", "tab"});
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("\nrack1 "));
  EXPECT_THAT(text, HasSubstr("\nrack2 "));
}

// Whatever is pressed, wherever, at any size: nothing fails, and all that is drawn is on the
// screen, each cell one character of one column.
class AnyKeys : public ViewTest, public testing::WithParamInterface<uint32_t> {};

TEST_P(AnyKeys, InAnyOrder) {
  View view = Open({.vms = 6, .vcpus = 3, .ticks = 60, .markers = {{10, "a"}, {20, "b"}}},
                   {.name = "live", .is_live = true});
  std::vector<std::string> keys = {"enter", "escape", "backspace", "up",     "down",     "left",
                                   "right", "home",   "end",       "pageup", "pagedown", "tab",
                                   "space", "ctrl-u", "ctrl-c",    "delete", "é"};
  for (char c = '!'; c <= '~'; ++c) keys.emplace_back(1, c);
  std::minstd_rand random(GetParam());
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  size_t explained = 0;
  for (int i = 0; i < 25'000; ++i) {
    const size_t kind = below(100);
    std::optional<Effect> effect;
    if (kind < 90) {
      effect = view.Take(KeyEvent{keys[below(keys.size())]});
    } else if (kind < 94) {
      effect = view.Take(ClickEvent{.row = below(70), .column = below(220)});
    } else if (kind < 97) {
      effect = view.Take(WheelEvent{.up = below(2) == 0});
    } else {
      effect = view.Take(ResizeEvent{{.columns = below(200), .rows = below(60)}});
    }
    if (effect) {
      EXPECT_FALSE(std::holds_alternative<StepTicks>(*effect));
      EXPECT_FALSE(std::holds_alternative<Explain>(*effect));
    }
    if (view.state().mode == Mode::kText && view.state().text_title != "Keys") ++explained;
    if (i % 10 != 0) continue;
    ASSERT_TRUE(view.Load(NeverStop));
    const Cells cells = view.Draw();
    ASSERT_EQ(cells.size(), view.state().size);
    for (size_t row = 0; row < cells.size().rows; ++row) {
      for (size_t column = 0; column < cells.size().columns; ++column) {
        ASSERT_EQ(WidthOf(cells.At(row, column).glyph), 1u);
      }
    }
    const auto span = store_.Span();
    ASSERT_GE(view.state().cursor_ns, span->begin_ns);
    ASSERT_LE(view.state().cursor_ns, span->end_ns);
  }
  EXPECT_GT(explained, 0u);
}

// A hundred thousand events together: a part each, as sanitizers take their time.
INSTANTIATE_TEST_SUITE_P(Seeds, AnyKeys, testing::Values(23, 24, 25, 26));

}  // namespace
}  // namespace vcpulse::top
