#pragma once

// The one table of what a person can do in `vcpulse top`: names, keys and help. The keys, the help
// screen, the palette, the file of keys and the documentation are made of it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::top {

enum class Action : uint8_t {
  kPause,
  kNextTick,
  kPreviousTick,
  kJumpForward,
  kJumpBack,
  kFirst,
  kLatest,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kFold,
  kUnfold,
  kFoldAll,
  kFilter,
  kSort,
  kColumnLeft,
  kColumnRight,
  kHideColumn,
  kShorter,
  kLonger,
  kNumbers,
  kGroup,
  kMark,
  kWrite,
  kExplain,
  kHelp,
  kPalette,
  kQuit,
  kEnd,  // none: how many there are
};
inline constexpr size_t kActions = static_cast<size_t>(Action::kEnd);

struct ActionInfo {
  Action action = Action::kEnd;
  std::string_view name;  // "next-tick"
  std::string_view keys;  // by default, with spaces between
  std::string_view help;  // one line
};

// In the order of the enumerators.
std::span<const ActionInfo, kActions> ActionTable();
const ActionInfo& InfoOf(Action action);
std::optional<Action> FindAction(std::string_view name);

// Keys have names: what they print ("t", "/", "é"), or space, tab, enter, escape, backspace, up,
// down, left, right, home, end, pageup, pagedown, delete, ctrl-a to ctrl-z.
class Keymap {
 public:
  Keymap();  // the table's

  // Takes the text of a file of keys: lines "ACTION = KEY..." that replace the keys of that action,
  // '#' begins a comment, before them or behind a key. Errors: InvalidArgument, "line N: ..." in
  // one line.
  static absl::StatusOr<Keymap> Parse(std::string_view text);

  std::optional<Action> Find(std::string_view key) const;
  // "t" or "q, ctrl-c": those of an action, for people.
  std::string KeysOf(Action action) const;

 private:
  struct Binding {
    std::string key;
    Action action = Action::kEnd;
  };
  std::vector<Binding> bindings_;  // each key once
};

// The keys, the characters of strips and what a filter takes: a line each.
std::vector<std::string> HelpLines(const Keymap& keymap);

// Whether a key can have that name.
bool IsKeyName(std::string_view name);

}  // namespace vcpulse::top
