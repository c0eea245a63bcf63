// Every key in every mode, without a terminal.
#include "monitor/top/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/top/board_loader.h"
#include "monitor/top/columns.h"
#include "monitor/top/layout.h"
#include "tests/unit/monitor/top/top_fixture.h"

namespace vcpulse::top {
namespace {

using ::testing::HasSubstr;

class StateTest : public testing::Test {
 protected:
  StateTest() {
    AddAll(store_, ChunksOf({.vms = 3, .vcpus = 4}));
    loader_.Want(Window::EndingAt(store_.Span()->end_ns, 20, 100'000'000));
    EXPECT_TRUE(loader_.Step(NeverStop));
    scene_.span = store_.Span();
    scene_.source = {.name = "a.vpt"};
    scene_.has_samples = true;
    state_.size = {.columns = 100, .rows = 20};
    Arrange();
    Settle(state_, scene_);
  }

  void Arrange() {
    rows_ = MakeRows({loader_.board(), loader_.board(), loader_.board()}, store_.streams(),
                     state_.rows);
    scene_.rows = rows_;
  }
  std::optional<Effect> Press(const std::string& key) {
    auto effect = Update(state_, KeyEvent{key}, scene_, keymap_);
    Arrange();
    return effect;
  }
  std::optional<Effect> Type(const std::string& text) {
    for (const char c : text) Press(c == ' ' ? "space" : std::string(1, c));
    return Press("enter");
  }
  std::string Chosen() const {
    const auto index = ChosenIndex(state_, rows_);
    return index ? rows_[*index].full_name : "";
  }

  ChunkStore store_{ChunkStore::Limits()};
  BoardLoader loader_{store_};
  std::vector<Row> rows_;
  Scene scene_;
  State state_;
  Keymap keymap_;
};

TEST_F(StateTest, FollowsTheEndUntilItIsPaused) {
  EXPECT_EQ(state_.cursor_ns, scene_.span->end_ns);
  Press("space");
  EXPECT_EQ(state_.pace, Pace::kPaused);
  const int64_t paused_ns = state_.cursor_ns;
  scene_.span->end_ns += 5 * kSecond_ns;
  Settle(state_, scene_);
  EXPECT_EQ(state_.cursor_ns, paused_ns);
  EXPECT_EQ(state_.page_end_ns, paused_ns);
  Press("end");
  EXPECT_EQ(state_.pace, Pace::kFollow);
  EXPECT_EQ(state_.cursor_ns, scene_.span->end_ns);
}

TEST_F(StateTest, AFilePlaysFromWhereItWasPaused) {
  Press("home");
  EXPECT_EQ(state_.pace, Pace::kPaused);
  EXPECT_EQ(state_.cursor_ns, scene_.span->begin_ns);
  Press("space");
  EXPECT_EQ(state_.pace, Pace::kPlaying);
  Press("space");
  EXPECT_EQ(state_.pace, Pace::kPaused);
  scene_.source.is_live = true;
  Press("space");
  EXPECT_EQ(state_.pace, Pace::kFollow);
}

TEST_F(StateTest, StepsAreForWhoHasTheChunks) {
  const auto next = Press("t");
  ASSERT_TRUE(next && std::holds_alternative<StepTicks>(*next));
  EXPECT_EQ(std::get<StepTicks>(*next).steps, 1);
  EXPECT_EQ(std::get<StepTicks>(*next).from_ns, state_.cursor_ns);
  const auto previous = Press("T");
  ASSERT_TRUE(previous);
  EXPECT_EQ(std::get<StepTicks>(*previous).steps, -1);
}

TEST_F(StateTest, JumpsByADurationAndToATime) {
  const int64_t end_ns = scene_.span->end_ns;
  Press("J");
  EXPECT_EQ(state_.mode, Mode::kPrompt);
  EXPECT_FALSE(Type("2s"));
  EXPECT_EQ(state_.mode, Mode::kBrowse);
  EXPECT_EQ(state_.cursor_ns, end_ns - 2 * kSecond_ns);
  Press("j");
  Type("1s");
  EXPECT_EQ(state_.cursor_ns, end_ns - kSecond_ns);
  Press("j");
  Type("@3s");
  EXPECT_EQ(state_.cursor_ns, scene_.span->begin_ns + 3 * kSecond_ns);
  Press("j");
  Type("10h");
  EXPECT_EQ(state_.cursor_ns, end_ns);  // no further than there is something
  Press("j");
  Type("nonsense");
  EXPECT_EQ(state_.mode, Mode::kPrompt);  // to be mended
  EXPECT_THAT(state_.message, HasSubstr("10:31:58"));
  Press("escape");
  EXPECT_EQ(state_.mode, Mode::kBrowse);
}

TEST(ParseJumpTest, TakesDurationsAndTimes) {
  const int64_t day_ns = 86'400 * kSecond_ns;
  const int64_t from_ns = 20'000 * day_ns + 12 * 3600 * kSecond_ns;
  EXPECT_EQ(ParseJump("90s", from_ns, 0, 1), from_ns + 90 * kSecond_ns);
  EXPECT_EQ(ParseJump(" 1m30s ", from_ns, 0, -1), from_ns - 90 * kSecond_ns);
  EXPECT_EQ(ParseJump("@2s", from_ns, 7, -1), 7 + 2 * kSecond_ns);
  EXPECT_EQ(ParseJump("00:00:01", from_ns, 0, 1), 20'000 * day_ns + kSecond_ns);
  EXPECT_EQ(ParseJump("10:30", from_ns, 0, -1), 20'000 * day_ns + 37'800 * kSecond_ns);
  EXPECT_EQ(ParseJump("00:00:00.5", from_ns, 0, 1), 20'000 * day_ns + kSecond_ns / 2);
  EXPECT_EQ(ParseJump("1970-01-02 00:00:00", from_ns, 0, 1), day_ns);
  for (const char* wrong : {"", "5", "soon", "25:00", "@10:30", "10:61"}) {
    EXPECT_FALSE(ParseJump(wrong, from_ns, 0, 1)) << wrong;
  }
  EXPECT_TRUE(ParseJump("inf", from_ns, 0, 1));  // to the end of what there is
}

TEST_F(StateTest, RowsAreChosenAndStayInSight) {
  EXPECT_EQ(Chosen(), "guest-1");
  Press("down");
  EXPECT_EQ(Chosen(), "guest-1 vCPU 0");
  Press("n");
  Press("k");
  EXPECT_EQ(Chosen(), "guest-1 vCPU 0");
  Press("up");
  Press("up");
  EXPECT_EQ(Chosen(), "guest-1");
  for (int i = 0; i < 30; ++i) Press("down");
  EXPECT_EQ(Chosen(), "guest-3 vCPU 3");
  const size_t shown = LayoutOf(state_.size, {}, 0).body_rows;
  EXPECT_EQ(state_.first_row, rows_.size() - shown);
  Press("pageup");
  Press("pageup");
  Press("pageup");
  EXPECT_EQ(Chosen(), "guest-1");
  EXPECT_EQ(state_.first_row, 0u);
  Press("pagedown");
  EXPECT_NE(Chosen(), "guest-1");
}

TEST_F(StateTest, Folds) {
  Press("down");
  Press("left");
  EXPECT_EQ(Chosen(), "guest-1");
  EXPECT_EQ(rows_.size(), 11u);
  Press("right");
  EXPECT_EQ(rows_.size(), 15u);
  Press("z");
  EXPECT_EQ(rows_.size(), 3u);
  Press("enter");  // of a VM
  EXPECT_EQ(rows_.size(), 7u);
  Press("z");
  EXPECT_EQ(rows_.size(), 15u);
}

TEST_F(StateTest, FiltersAndSaysWhatIsWrong) {
  Press("/");
  Type("guest-2");
  EXPECT_EQ(rows_.size(), 5u);
  EXPECT_EQ(Chosen(), "guest-2");
  Press("/");
  EXPECT_EQ(state_.typed, "guest-2");  // to be changed
  Press("ctrl-u");
  Type("ipc <");
  EXPECT_EQ(state_.mode, Mode::kPrompt);
  EXPECT_TRUE(state_.message_is_alarm);
  Press("backspace");
  Type("> 5");
  EXPECT_EQ(rows_.size(), 0u);
  EXPECT_FALSE(Press("e"));
  EXPECT_FALSE(Press("t"));
  Press("down");
  Press("escape");
  EXPECT_EQ(rows_.size(), 15u);
}

TEST_F(StateTest, SortsByTheChosenColumn) {
  const size_t first = state_.chosen_column;
  Press(".");
  EXPECT_EQ(state_.chosen_column, first + 1);
  Press(",");
  Press(",");
  EXPECT_EQ(state_.chosen_column, Columns().size() - 1);
  Press(".");
  Press("s");
  EXPECT_EQ(state_.rows.sort_column, first);
  EXPECT_FALSE(state_.rows.reversed);
  Press("s");
  EXPECT_TRUE(state_.rows.reversed);
  Press("s");
  EXPECT_FALSE(state_.rows.sort_column);
}

TEST_F(StateTest, HidesColumnsAndShowsThemAgain) {
  Press("x");
  EXPECT_TRUE(state_.hidden_columns.contains(0));
  EXPECT_EQ(state_.chosen_column, 1u);
  for (size_t i = 2; i < Columns().size(); ++i) Press("x");
  EXPECT_EQ(state_.hidden_columns.size(), Columns().size() - 1);
  Press("x");
  EXPECT_TRUE(state_.hidden_columns.empty());
}

TEST_F(StateTest, LongerAndShorterStretches) {
  const size_t before = state_.span_index;
  Press("-");
  EXPECT_EQ(state_.span_index, before + 1);
  for (int i = 0; i < 20; ++i) Press("-");
  EXPECT_EQ(state_.span_index, Spans().size() - 1);
  EXPECT_EQ(SpanNs(state_, scene_.span), scene_.span->end_ns - scene_.span->begin_ns + 1);
  for (int i = 0; i < 20; ++i) Press("+");
  EXPECT_EQ(SpanNs(state_, scene_.span), 10 * kSecond_ns);
}

TEST_F(StateTest, NumbersAndGroupingGoRound) {
  for (const Numbers numbers : {Numbers::kTick, Numbers::kStrip, Numbers::kSeconds}) {
    Press("i");
    EXPECT_EQ(state_.numbers, numbers);
  }
  for (const size_t rows : {12u, 1u, 15u}) {
    Press("tab");
    EXPECT_EQ(rows_.size(), rows);
  }
}

TEST_F(StateTest, ExplainsAVcpu) {
  EXPECT_FALSE(Press("e"));  // a VM folds
  EXPECT_EQ(rows_.size(), 11u);
  Press("e");
  Press("down");
  const auto effect = Press("e");
  ASSERT_TRUE(effect && std::holds_alternative<Explain>(*effect));
  EXPECT_EQ(std::get<Explain>(*effect).vcpu, rows_[1].id.vcpu);
  Press("tab");
  Press("tab");
  EXPECT_FALSE(Press("enter"));
  EXPECT_THAT(state_.message, HasSubstr("choose a vCPU"));
}

TEST_F(StateTest, MarksOnlyWhatItRecords) {
  EXPECT_FALSE(Press("m"));
  EXPECT_THAT(state_.message, HasSubstr("markers are for"));
  scene_.source.is_live = true;
  Press("m");
  const auto effect = Type("load begins");
  ASSERT_TRUE(effect && std::holds_alternative<AddMark>(*effect));
  EXPECT_EQ(std::get<AddMark>(*effect).name, "load begins");
  Press("m");
  EXPECT_FALSE(Type(""));
  scene_.source.is_over = true;
  Press("m");
  EXPECT_EQ(state_.mode, Mode::kBrowse);
}

TEST_F(StateTest, WritesWhatIsNowhereElse) {
  Press("w");
  EXPECT_THAT(state_.message, HasSubstr("is in a.vpt already"));
  scene_.source.is_live = true;
  Press("w");
  auto effect = Type("");
  ASSERT_TRUE(effect && std::holds_alternative<WriteTimeline>(*effect));
  EXPECT_EQ(std::get<WriteTimeline>(*effect).path, kWrittenTo);
  Press("w");
  effect = Type("/tmp/x.vpt");
  EXPECT_EQ(std::get<WriteTimeline>(*effect).path, "/tmp/x.vpt");
}

TEST_F(StateTest, AsksOnlyWhereSomethingWouldBeLost) {
  const auto quits = [&](const std::optional<Effect>& effect) {
    return effect && std::holds_alternative<Quit>(*effect);
  };
  EXPECT_TRUE(quits(Press("q")));
  scene_.source.is_live = true;
  scene_.source.output = "kept.vpt";
  EXPECT_TRUE(quits(Press("q")));
  scene_.source.output.clear();
  scene_.has_samples = false;
  EXPECT_TRUE(quits(Press("q")));
  scene_.has_samples = true;
  EXPECT_FALSE(quits(Press("q")));
  EXPECT_EQ(state_.mode, Mode::kConfirmQuit);
  EXPECT_FALSE(quits(Press("n")));
  EXPECT_EQ(state_.mode, Mode::kBrowse);
  Press("q");
  EXPECT_TRUE(quits(Press("y")));
  state_.mode = Mode::kBrowse;
  Press("q");
  EXPECT_FALSE(Press("w"));
  EXPECT_EQ(state_.mode, Mode::kPrompt);
  EXPECT_EQ(state_.prompt, Prompt::kWrite);
  Press("escape");
  state_.written_ns = scene_.span->end_ns;
  EXPECT_TRUE(quits(Press("ctrl-c")));
}

TEST_F(StateTest, HelpIsScrolledAndLeft) {
  Press("?");
  ASSERT_EQ(state_.mode, Mode::kText);
  Press("down");
  EXPECT_EQ(state_.first_line, 1u);
  Press("end");
  EXPECT_EQ(state_.first_line, state_.text.size() - (state_.size.rows - 2));
  Press("down");
  EXPECT_EQ(state_.first_line, state_.text.size() - (state_.size.rows - 2));
  Press("pageup");
  Press("up");
  Press("home");
  EXPECT_EQ(state_.first_line, 0u);
  Press("space");
  EXPECT_GT(state_.first_line, 0u);
  Press("x");  // nothing here
  EXPECT_EQ(state_.mode, Mode::kText);
  for (const char* key : {"escape", "q", "?"}) {
    Press("?");
    state_.mode = Mode::kText;
    EXPECT_FALSE(Press(key));
    EXPECT_EQ(state_.mode, Mode::kBrowse) << key;
  }
}

TEST_F(StateTest, ThePaletteDoesWhatTheKeysDo) {
  Press(":");
  Type("group");
  EXPECT_EQ(state_.rows.grouping, Grouping::kVcpus);
  Press(":");
  for (const char c : std::string("pau")) Press(std::string(1, c));
  Press("tab");
  EXPECT_EQ(state_.typed, "pause");
  Press("enter");
  EXPECT_EQ(state_.pace, Pace::kPaused);
  Press(":");
  Type("nothing such");
  EXPECT_THAT(state_.message, HasSubstr("none of the actions"));
  EXPECT_EQ(PaletteFor("jump").front(), Action::kJumpForward);
  EXPECT_EQ(PaletteFor("column").size(), 3u);
  EXPECT_EQ(PaletteFor("").size(), kActions - 1);
}

TEST_F(StateTest, TypingTakesWholeCharacters) {
  Press("/");
  Press("é");
  Press("a");
  EXPECT_EQ(state_.typed, "éa");
  Press("backspace");
  Press("backspace");
  EXPECT_EQ(state_.typed, "");
  Press("backspace");
  Press("up");
  Press("f1");
  EXPECT_EQ(state_.typed, "");
  for (int i = 0; i < 1000; ++i) Press("x");
  EXPECT_LE(state_.typed.size(), 200u);
  Press("ctrl-c");
  EXPECT_EQ(state_.mode, Mode::kBrowse);
}

TEST_F(StateTest, AKeyWithoutAMeaningSaysWhereTheKeysAre) {
  Press("Y");
  EXPECT_THAT(state_.message, HasSubstr("?, h lists the keys"));
  Press("down");
  EXPECT_TRUE(state_.message.empty());
}

TEST_F(StateTest, ClicksChooseRowsInstantsAndColumns) {
  const Layout layout = LayoutOf(state_.size, {}, 0);
  const auto click = [&](size_t row, size_t column) {
    Update(state_, ClickEvent{.row = row, .column = column}, scene_, keymap_);
    Arrange();
  };
  click(layout.body + 2, 1);
  EXPECT_EQ(Chosen(), "guest-1 vCPU 1");
  EXPECT_EQ(state_.pace, Pace::kFollow);
  const int64_t end_ns = state_.page_end_ns;
  click(layout.body, layout.strip + layout.strip_columns - 1);
  EXPECT_EQ(state_.pace, Pace::kPaused);
  EXPECT_EQ(state_.cursor_ns, end_ns);
  click(layout.body, layout.strip + layout.strip_columns - 5);
  EXPECT_LT(state_.cursor_ns, end_ns);
  click(layout.axis, layout.strip + layout.strip_columns + 2);
  EXPECT_EQ(state_.rows.sort_column, layout.columns.front());
  click(layout.body, 1);  // the chosen VM once more
  EXPECT_EQ(rows_.size(), 11u);
  click(500, 500);
  click(0, 0);
}

TEST_F(StateTest, TheWheelMovesRows) {
  Update(state_, WheelEvent{.up = false}, scene_, keymap_);
  EXPECT_EQ(Chosen(), "guest-1 vCPU 2");
  Update(state_, WheelEvent{.up = true}, scene_, keymap_);
  EXPECT_EQ(Chosen(), "guest-1");
  Press("?");
  Update(state_, WheelEvent{.up = false}, scene_, keymap_);
  EXPECT_EQ(state_.first_line, 3u);
}

TEST_F(StateTest, WhatWasForgottenIsLeft) {
  Press("home");
  scene_.span->begin_ns += 4 * kSecond_ns;
  Settle(state_, scene_);
  EXPECT_EQ(state_.cursor_ns, scene_.span->begin_ns);
}

}  // namespace
}  // namespace vcpulse::top
