// Keys: the table of actions, and files that change them.
#include "monitor/top/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace vcpulse::top {
namespace {

using ::testing::HasSubstr;

TEST(ActionsTest, EachActionHasANameAKeyAndHelp) {
  std::set<std::string_view> names;
  const Keymap keymap;
  for (const ActionInfo& info : ActionTable()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_FALSE(keymap.KeysOf(info.action).empty()) << info.name;
    EXPECT_EQ(FindAction(info.name), info.action);
    EXPECT_EQ(&InfoOf(info.action), &info);
  }
  EXPECT_FALSE(FindAction("nothing"));
}

TEST(ActionsTest, NoKeyIsGivenTwice) {
  size_t keys = 0;
  std::set<std::string> different;
  for (const ActionInfo& info : ActionTable()) {
    std::string text(info.keys);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      const std::string key = text.substr(begin, end - begin);
      EXPECT_TRUE(IsKeyName(key)) << key;
      EXPECT_EQ(Keymap().Find(key), info.action) << key;
      different.insert(key);
      ++keys;
      begin = end + 1;
    }
  }
  EXPECT_EQ(different.size(), keys);
}

TEST(ActionsTest, TheFirstKeyIsThatOfTheTable) {
  EXPECT_EQ(Keymap().KeysOf(Action::kQuit), "q, ctrl-c");
  EXPECT_EQ(Keymap().KeysOf(Action::kUp), "up, k");
}

TEST(KeymapTest, AFileReplacesTheKeysOfItsActions) {
  const auto good =
      Keymap::Parse("# mine\n\npause = p ctrl-p\n  next-tick = right # behind it\nsort = #\n");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->Find("p"), Action::kPause);
  EXPECT_EQ(good->Find("ctrl-p"), Action::kPause);
  EXPECT_FALSE(good->Find("space"));
  EXPECT_EQ(good->Find("right"), Action::kNextTick);  // taken from unfold
  EXPECT_TRUE(good->KeysOf(Action::kUnfold).empty());
  EXPECT_EQ(good->Find("T"), Action::kPreviousTick);
  EXPECT_EQ(good->Find("#"), Action::kSort);
}

TEST(KeymapTest, ListedKeysAreAFileThatChangesNothing) {
  std::string text;
  for (const ActionInfo& info : ActionTable()) {
    text += std::string(info.name) + " = " + std::string(info.keys) + "\n";
  }
  const auto keymap = Keymap::Parse(text);
  ASSERT_TRUE(keymap.ok()) << keymap.status();
  for (const ActionInfo& info : ActionTable()) {
    EXPECT_EQ(keymap->KeysOf(info.action), Keymap().KeysOf(info.action));
  }
}

TEST(KeymapTest, SaysWhatIsWrongAndWhere) {
  const auto error = [](std::string_view text) {
    return std::string(Keymap::Parse(text).status().message());
  };
  EXPECT_THAT(error("pause p"), HasSubstr("line 1: expected ACTION = KEY"));
  EXPECT_THAT(error("\npaws = p"), HasSubstr("line 2: 'paws' is not an action"));
  EXPECT_THAT(error("pause = pp"), HasSubstr("'pp' is not the name of a key"));
  EXPECT_THAT(error("pause = p\nsort = p"), HasSubstr("line 2: 'p' was given on line 1 too"));
  EXPECT_THAT(error("pause = q ctrl-c"), HasSubstr("no key is left for quit"));
}

TEST(KeymapTest, NamesOfKeys) {
  for (const char* name : {"a", "A", "/", "é", "space", "pageup", "ctrl-a", "ctrl-x"}) {
    EXPECT_TRUE(IsKeyName(name)) << name;
  }
  for (const char* name :
       {"", "ab", " ", "ctrl-", "ctrl-1", "ctrl-ab", "f1", "\x80", "ctrl-h", "ctrl-z"}) {
    EXPECT_FALSE(IsKeyName(name)) << name;
  }
}

TEST(HelpTest, EveryKeyIsListed) {
  const Keymap keymap;
  std::string all;
  for (const std::string& line : HelpLines(keymap)) all += line + "\n";
  for (const ActionInfo& info : ActionTable()) {
    EXPECT_THAT(all, HasSubstr(keymap.KeysOf(info.action)));
    EXPECT_THAT(all, HasSubstr(std::string(info.help)));
  }
}

}  // namespace
}  // namespace vcpulse::top
