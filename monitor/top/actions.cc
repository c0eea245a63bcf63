#include "monitor/top/actions.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"

namespace vcpulse::top {
namespace {

constexpr std::array<ActionInfo, kActions> kTable = {{
    {Action::kPause, "pause", "space", "stop time, or let it go on"},
    {Action::kNextTick, "next-tick", "t", "one tick on (of the chosen VM's host)"},
    {Action::kPreviousTick, "previous-tick", "T", "one tick back"},
    {Action::kJumpForward, "jump", "j", "on by a duration (30s, 5m), or to a time (10:31:58)"},
    {Action::kJumpBack, "jump-back", "J", "back by a duration, or to a time"},
    {Action::kFirst, "first", "home", "to the beginning of what is held"},
    {Action::kLatest, "latest", "end", "to its end; a live view goes on"},
    {Action::kUp, "up", "up k", "choose the row above"},
    {Action::kDown, "down", "down n", "choose the row below"},
    {Action::kPageUp, "page-up", "pageup", "a screen of rows up"},
    {Action::kPageDown, "page-down", "pagedown", "a screen of rows down"},
    {Action::kFold, "fold", "left", "hide the vCPUs of this VM"},
    {Action::kUnfold, "unfold", "right", "show them"},
    {Action::kFoldAll, "fold-all", "z", "hide or show the vCPUs of all VMs"},
    {Action::kFilter, "filter", "/", "show only some rows; escape shows all again"},
    {Action::kSort, "sort", "s", "sort by the chosen column; again: reversed, unsorted"},
    {Action::kColumnLeft, "column-left", ",", "choose the column to the left"},
    {Action::kColumnRight, "column-right", ".", "choose the column to the right"},
    {Action::kHideColumn, "hide-column", "x", "hide the chosen column; with none left, show all"},
    {Action::kShorter, "shorter", "+", "show a shorter stretch of time"},
    {Action::kLonger, "longer", "-", "show a longer one"},
    {Action::kNumbers, "numbers", "i", "numbers are of the last 2 s, one tick, or the whole strip"},
    {Action::kGroup, "group", "tab", "rows: VMs with their vCPUs, vCPUs alone, hosts"},
    {Action::kMark, "mark", "m", "add a marker to the recording: a phase begins"},
    {Action::kWrite, "write", "w", "write what is held as a timeline"},
    {Action::kExplain, "explain", "e enter", "why the chosen vCPU was judged so; of a VM: fold"},
    {Action::kHelp, "help", "? h", "this list"},
    {Action::kPalette, "palette", ":", "do one of these by its name"},
    {Action::kQuit, "quit", "q ctrl-c", "leave"},
}};
static_assert([] {
  for (size_t i = 0; i < kActions; ++i) {
    if (kTable[i].action != static_cast<Action>(i)) return false;
  }
  return true;
}());

constexpr auto kNamedKeys = std::to_array<std::string_view>(
    {"space", "tab", "enter", "escape", "backspace", "up", "down", "left", "right", "home", "end",
     "pageup", "pagedown", "delete"});

std::vector<std::string> WordsOf(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

std::span<const ActionInfo, kActions> ActionTable() { return kTable; }

const ActionInfo& InfoOf(Action action) { return kTable[static_cast<size_t>(action)]; }

std::optional<Action> FindAction(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &ActionInfo::name);
  if (found == kTable.end()) return std::nullopt;
  return found->action;
}

bool IsKeyName(std::string_view name) {
  if (std::ranges::find(kNamedKeys, name) != kNamedKeys.end()) return true;
  // Terminals send some of these for other keys, and ctrl-l and ctrl-z have their meaning already.
  if (name.size() == 6 && name.starts_with("ctrl-")) {
    return name[5] >= 'a' && name[5] <= 'z' &&
           std::string_view("hijlmz").find(name[5]) == std::string_view::npos;
  }
  return !name.empty() && static_cast<unsigned char>(name[0]) > ' ' && name[0] != 0x7f &&
         Utf8SequenceLength(name) == name.size();
}

Keymap::Keymap() {
  for (const ActionInfo& info : kTable) {
    for (std::string& key : WordsOf(info.keys)) {
      bindings_.push_back({.key = std::move(key), .action = info.action});
    }
  }
}

absl::StatusOr<Keymap> Keymap::Parse(std::string_view text) {
  Keymap keymap;
  std::istringstream in{std::string(text)};
  std::map<std::string, size_t> given;  // keys, and on which line
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    const auto wrong = [&](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", what));
    };
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty() || words.front().starts_with('#')) continue;
    if (words.size() < 3 || words[1] != "=") {
      return wrong("expected ACTION = KEY..., as in: pause = space p");
    }
    const auto action = FindAction(words.front());
    if (!action) {
      return wrong(absl::StrCat(Quoted(words.front()),
                                " is not an action; `vcpulse top --list-keys` lists them"));
    }
    std::erase_if(keymap.bindings_, [&](const Binding& binding) {
      return binding.action == *action && !given.contains(binding.key);
    });
    for (size_t i = 2; i < words.size(); ++i) {
      const std::string& key = words[i];
      if (key == "#" && i > 2) break;  // a comment
      if (!IsKeyName(key)) return wrong(absl::StrCat(Quoted(key), " is not the name of a key"));
      if (const auto [before, is_new] = given.emplace(key, number); !is_new) {
        return wrong(absl::StrCat(Quoted(key), " was given on line ", before->second, " too"));
      }
      std::erase_if(keymap.bindings_, [&](const Binding& b) { return b.key == key; });
      keymap.bindings_.push_back({.key = key, .action = *action});
    }
  }
  if (keymap.KeysOf(Action::kQuit).empty()) {
    return absl::InvalidArgumentError("no key is left for quit: give it one");
  }
  return keymap;
}

std::optional<Action> Keymap::Find(std::string_view key) const {
  const auto found = std::ranges::find(bindings_, key, &Binding::key);
  if (found == bindings_.end()) return std::nullopt;
  return found->action;
}

std::string Keymap::KeysOf(Action action) const {
  std::vector<std::string> keys;
  for (const Binding& binding : bindings_) {
    if (binding.action == action) keys.push_back(binding.key);
  }
  return absl::StrJoin(keys, ", ");
}

std::vector<std::string> HelpLines(const Keymap& keymap) {
  constexpr size_t kKeyColumns = 14;
  const auto line = [kKeyColumns](std::string_view term, std::string_view text) {
    std::string padded(term);
    padded.resize(std::max(padded.size() + 1, kKeyColumns), ' ');
    return absl::StrCat(padded, std::string(text));
  };
  std::vector<std::string> lines;
  lines.reserve(2 * kActions);
  for (const ActionInfo& info : kTable) {
    lines.push_back(line(keymap.KeysOf(info.action), info.help));
  }
  for (const auto& [term, text] : std::to_array<std::pair<std::string_view, std::string_view>>({
           {"", ""},
           {"mouse", "click: choose a row, an instant, a column to sort by; wheel: rows"},
           {"", ""},
           {"Strips", "one character for each stretch of time"},
           {". S # ?", "HALTED, SPINNING, PRODUCTIVE, UNKNOWN"},
           {": $ % !", "the same, starved: it wanted to run and another had the CPU"},
           {"s", "another band, and SPINNING for at least 5 % of it"},
           {"- _", "no verdict; not sampled"},
           {"", ""},
           {"Filters", ""},
           {"spinning", "a band, or starved: in the latest tick"},
           {"web", "part of the name of a VM or host"},
           {"ipc < 0.5", "a metric, as in `vcpulse check`, of the numbers shown"},
           {"vm=web vcpu=0-3: run_delay > 5%", " with a selector"},
       })) {
    lines.push_back(term.empty() ? std::string() : line(term, text));
  }
  return lines;
}

}  // namespace vcpulse::top
