#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/top/columns.h"
#include "monitor/top/filter.h"
#include "monitor/top/layout.h"
// What keys, clicks and sizes do to the state.
#include "monitor/top/state.h"

namespace vcpulse::top {
namespace {

constexpr size_t kMostTyped = 200;  // characters of a prompt
constexpr size_t kWheelRows = 3;

// One event on its way through: the state, and what is needed to change it.
class Updater {
 public:
  Updater(State& state, const Scene& scene, const Keymap& keymap)
      : state_(state), scene_(scene), keymap_(keymap) {}

  std::optional<Effect> Take(const KeyEvent& event);
  std::optional<Effect> Take(const ClickEvent& event);
  std::optional<Effect> Take(const WheelEvent& event);
  std::optional<Effect> Take(const ResizeEvent& event);

 private:
  std::optional<Effect> Do(Action action);
  std::optional<Effect> Browse(std::string_view key);
  std::optional<Effect> Type(std::string_view key);
  std::optional<Effect> Read(std::string_view key);
  std::optional<Effect> ConfirmQuit(std::string_view key);
  std::optional<Effect> Enter();
  std::optional<Effect> Step(int steps);
  std::optional<Effect> AskToQuit();
  std::optional<Effect> ExplainChosen();
  void Pause();
  void Jump(int direction);
  void ChooseRow(ptrdiff_t steps);
  void ScrollText(ptrdiff_t lines);
  void Fold(bool folded);
  void Sort();
  void ChooseColumn(int steps);
  void HideColumn();
  void StartPrompt(Prompt prompt, std::string typed = "");
  void StartWrite();
  void Say(std::string message, bool is_alarm = false) {
    state_.message = std::move(message);
    state_.message_is_alarm = is_alarm;
  }
  Layout layout() const {
    return LayoutOf(state_.size, state_.hidden_columns, state_.chosen_column);
  }
  const Row* chosen() const {
    const auto index = ChosenIndex(state_, scene_.rows);
    return index ? &scene_.rows[*index] : nullptr;
  }

  State& state_;
  const Scene& scene_;
  const Keymap& keymap_;
};

std::optional<Effect> Updater::Take(const KeyEvent& event) {
  state_.message.clear();
  switch (state_.mode) {
    case Mode::kPrompt:
      return Type(event.key);
    case Mode::kText:
      return Read(event.key);
    case Mode::kConfirmQuit:
      return ConfirmQuit(event.key);
    default:
      return Browse(event.key);
  }
}

std::optional<Effect> Updater::Browse(std::string_view key) {
  if (const auto action = keymap_.Find(key)) return Do(*action);
  if (key == "escape") {
    state_.rows.filter = {};
    return std::nullopt;
  }
  Say(absl::StrCat(Quoted(key), " does nothing; ", keymap_.KeysOf(Action::kHelp),
                   " lists the keys"));
  return std::nullopt;
}

std::optional<Effect> Updater::Read(std::string_view key) {
  const auto action = keymap_.Find(key);
  const auto page = static_cast<ptrdiff_t>(state_.size.rows) - 2;
  if (key == "escape" || action == Action::kQuit || action == Action::kHelp ||
      action == Action::kExplain) {
    state_.mode = Mode::kBrowse;
  } else if (action == Action::kUp) {
    ScrollText(-1);
  } else if (action == Action::kDown) {
    ScrollText(1);
  } else if (action == Action::kPageUp) {
    ScrollText(-page);
  } else if (action == Action::kPageDown || key == "space") {
    ScrollText(page);
  } else if (action == Action::kFirst) {
    state_.first_line = 0;
  } else if (action == Action::kLatest) {
    ScrollText(static_cast<ptrdiff_t>(state_.text.size()));
  }
  return std::nullopt;
}

void Updater::ScrollText(ptrdiff_t lines) {
  const size_t shown = state_.size.rows > 2 ? state_.size.rows - 2 : 1;
  size_t rows = 0;  // of the screen, with those of long lines
  for (const std::string& line : state_.text) rows += Wrapped(line, state_.size.columns).size();
  const size_t most = state_.text.empty() ? 0 : state_.text.size() - 1;
  const auto last = static_cast<ptrdiff_t>(std::min(rows > shown ? rows - shown : 0, most));
  state_.first_line = static_cast<size_t>(
      std::clamp<ptrdiff_t>(static_cast<ptrdiff_t>(state_.first_line) + lines, 0, last));
}

std::optional<Effect> Updater::ConfirmQuit(std::string_view key) {
  if (key == "y" || key == "Y" || keymap_.Find(key) == Action::kQuit) return Quit();
  state_.mode = Mode::kBrowse;
  if (keymap_.Find(key) == Action::kWrite) StartWrite();
  return std::nullopt;
}

std::optional<Effect> Updater::Type(std::string_view key) {
  std::string& typed = state_.typed;
  if (key == "escape" || key == "ctrl-c") {
    state_.mode = Mode::kBrowse;
  } else if (key == "enter") {
    return Enter();
  } else if (key == "backspace") {
    while (!typed.empty() && (typed.back() & 0xc0) == 0x80) typed.pop_back();
    if (!typed.empty()) typed.pop_back();
  } else if (key == "ctrl-u") {
    typed.clear();
  } else if (key == "tab" && state_.prompt == Prompt::kPalette) {
    const auto found = PaletteFor(typed);
    if (!found.empty()) typed = InfoOf(found.front()).name;
  } else if (typed.size() < kMostTyped &&
             (key == "space" || Utf8SequenceLength(key) == key.size())) {
    typed += key == "space" ? " " : key;
  }
  return std::nullopt;
}

std::optional<Effect> Updater::Enter() {
  const std::string typed = state_.typed;
  state_.mode = Mode::kBrowse;
  switch (state_.prompt) {
    case Prompt::kFilter: {
      auto filter = Filter::Parse(typed);
      if (filter.ok()) {
        state_.rows.filter = *std::move(filter);
      } else {
        state_.mode = Mode::kPrompt;  // to be corrected
        Say(std::string(ToStd(filter.status().message())), true);
      }
      return std::nullopt;
    }
    case Prompt::kJump:
      Jump(1);
      return std::nullopt;
    case Prompt::kJumpBack:
      Jump(-1);
      return std::nullopt;
    case Prompt::kMark:
      if (typed.empty()) return std::nullopt;
      return AddMark{.name = typed};
    case Prompt::kWrite: {
      const Row* row = chosen();
      return WriteTimeline{.path = typed.empty() ? std::string(kWrittenTo) : typed,
                           .stream = row == nullptr ? 0 : row->id.vcpu.vm.stream};
    }
    case Prompt::kPalette: {
      const auto found = PaletteFor(typed);
      if (!found.empty()) return Do(found.front());
      Say(absl::StrCat(Quoted(typed), " is none of the actions that help lists"), true);
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void Updater::Jump(int direction) {
  if (!scene_.span || state_.typed.empty()) return;
  const auto to = ParseJump(state_.typed, state_.cursor_ns, scene_.span->begin_ns, direction);
  if (to) {
    MoveCursor(state_, *to, scene_);
    if (state_.cursor_ns != *to) Say("that is outside of what is held: this is its end there");
    return;
  }
  state_.mode = Mode::kPrompt;
  Say("a duration (30s, 5m), a time (10:31:58, UTC), or @12s after the start", true);
}

void Updater::Pause() {
  if (state_.pace != Pace::kPaused) {
    state_.pace = Pace::kPaused;
  } else if (scene_.source.is_live || scene_.source.is_followed ||
             (scene_.span && state_.cursor_ns >= scene_.span->end_ns)) {
    state_.pace = Pace::kFollow;
  } else {
    state_.pace = Pace::kPlaying;
  }
}

std::optional<Effect> Updater::Step(int steps) {
  const Row* row = chosen();
  if (row == nullptr) return std::nullopt;
  return StepTicks{.vm = row->id.vcpu.vm, .from_ns = state_.cursor_ns, .steps = steps};
}

void Updater::ChooseRow(ptrdiff_t steps) {
  const auto index = ChosenIndex(state_, scene_.rows);
  if (!index) return;
  const auto last = static_cast<ptrdiff_t>(scene_.rows.size()) - 1;
  const auto to = std::clamp<ptrdiff_t>(static_cast<ptrdiff_t>(*index) + steps, 0, last);
  state_.chosen = scene_.rows[static_cast<size_t>(to)].id;
}

void Updater::Fold(bool folded) {
  const Row* row = chosen();
  if (row == nullptr || state_.rows.grouping != Grouping::kVms) return;
  const VmId vm = row->id.vcpu.vm;
  if (folded == state_.rows.folds_by_default) {
    state_.rows.folded_otherwise.erase(vm);
  } else {
    state_.rows.folded_otherwise.insert(vm);
  }
  if (folded) state_.chosen = RowId{.kind = RowId::Kind::kVm, .vcpu = {.vm = vm}};
}

void Updater::Sort() {
  Arrangement& rows = state_.rows;
  if (rows.sort_column != state_.chosen_column) {
    rows.sort_column = state_.chosen_column;
    rows.reversed = false;
  } else if (!rows.reversed) {
    rows.reversed = true;
  } else {
    rows.sort_column.reset();
    rows.reversed = false;
  }
  Say(rows.sort_column ? absl::StrCat("sorted by ", std::string(Columns()[*rows.sort_column].name),
                                      rows.reversed ? ", the least first" : ", the most first")
                       : "not sorted");
}

void Updater::ChooseColumn(int steps) {
  const auto all = static_cast<int>(Columns().size());
  auto column = static_cast<int>(state_.chosen_column);
  for (int i = 0; i < all; ++i) {
    column = (column + steps + all) % all;
    if (!state_.hidden_columns.contains(static_cast<size_t>(column))) break;
  }
  state_.chosen_column = static_cast<size_t>(column);
  const Column& chosen = Columns()[state_.chosen_column];
  Say(absl::StrCat("column ", std::string(chosen.name), ": ", std::string(HelpOf(chosen))));
}

void Updater::HideColumn() {
  if (state_.hidden_columns.size() + 1 >= Columns().size() ||
      state_.hidden_columns.contains(state_.chosen_column)) {
    state_.hidden_columns.clear();
    return Say("all columns are shown, as far as they fit");
  }
  state_.hidden_columns.insert(state_.chosen_column);
  ChooseColumn(1);
}

void Updater::StartPrompt(Prompt prompt, std::string typed) {
  state_.mode = Mode::kPrompt;
  state_.prompt = prompt;
  state_.typed = std::move(typed);
}

void Updater::StartWrite() {
  const Source& source = scene_.source;
  if (!source.is_live && !source.is_followed) {
    return Say(absl::StrCat("all of it is in ", source.name, " already"));
  }
  StartPrompt(Prompt::kWrite);
}

std::optional<Effect> Updater::AskToQuit() {
  const Source& source = scene_.source;
  constexpr int64_t kNew_ns = 10'000'000'000;
  const bool is_written = scene_.span && scene_.span->end_ns < state_.written_ns + kNew_ns;
  const bool would_be_lost =
      source.is_live && source.output.empty() && scene_.has_samples && !is_written;
  if (!would_be_lost) return Quit();
  state_.mode = Mode::kConfirmQuit;
  return std::nullopt;
}

std::optional<Effect> Updater::ExplainChosen() {
  const Row* row = chosen();
  if (row == nullptr) return std::nullopt;
  if (row->id.kind == RowId::Kind::kVm) {
    Fold(!row->is_folded);
    return std::nullopt;
  }
  if (row->id.kind == RowId::Kind::kHost) {
    Say("choose a vCPU: tab shows other rows");
    return std::nullopt;
  }
  return Explain{.vcpu = row->id.vcpu, .at_ns = state_.cursor_ns};
}

std::optional<Effect> Updater::Do(Action action) {
  const auto page = static_cast<ptrdiff_t>(std::max<size_t>(layout().body_rows, 1));
  switch (action) {
    case Action::kPause:
      Pause();
      break;
    case Action::kNextTick:
      return Step(1);
    case Action::kPreviousTick:
      return Step(-1);
    case Action::kJumpForward:
      StartPrompt(Prompt::kJump);
      break;
    case Action::kJumpBack:
      StartPrompt(Prompt::kJumpBack);
      break;
    case Action::kFirst:
      if (scene_.span) MoveCursor(state_, scene_.span->begin_ns, scene_);
      break;
    case Action::kLatest:
      state_.pace = Pace::kFollow;
      break;
    case Action::kUp:
      ChooseRow(-1);
      break;
    case Action::kDown:
      ChooseRow(1);
      break;
    case Action::kPageUp:
      ChooseRow(-page);
      break;
    case Action::kPageDown:
      ChooseRow(page);
      break;
    case Action::kFold:
      Fold(true);
      break;
    case Action::kUnfold:
      Fold(false);
      break;
    case Action::kFoldAll:
      state_.rows.folds_by_default = !state_.rows.folds_by_default;
      state_.rows.folded_otherwise.clear();
      break;
    case Action::kFilter:
      StartPrompt(Prompt::kFilter, state_.rows.filter.text());
      break;
    case Action::kSort:
      Sort();
      break;
    case Action::kColumnLeft:
      ChooseColumn(-1);
      break;
    case Action::kColumnRight:
      ChooseColumn(1);
      break;
    case Action::kHideColumn:
      HideColumn();
      break;
    case Action::kShorter:
      // Longer ones than all that is held show no more than that.
      if (state_.span_index > 0) --state_.span_index;
      while (state_.span_index > 0 && scene_.span &&
             Spans()[state_.span_index].ns > scene_.span->end_ns - scene_.span->begin_ns) {
        --state_.span_index;
      }
      break;
    case Action::kLonger:
      if (state_.span_index + 1 < Spans().size()) ++state_.span_index;
      break;
    case Action::kNumbers:
      state_.numbers = static_cast<Numbers>((static_cast<int>(state_.numbers) + 1) % 3);
      break;
    case Action::kGroup:
      state_.rows.grouping =
          static_cast<Grouping>((static_cast<int>(state_.rows.grouping) + 1) % 3);
      state_.first_row = 0;
      break;
    case Action::kMark:
      if (scene_.source.is_live && !scene_.source.is_over) {
        StartPrompt(Prompt::kMark);
      } else {
        Say("markers are for a recording of this process that runs");
      }
      break;
    case Action::kWrite:
      StartWrite();
      break;
    case Action::kExplain:
      return ExplainChosen();
    case Action::kHelp:
      state_.mode = Mode::kText;
      state_.text_title = "Keys";
      state_.text = HelpLines(keymap_);
      state_.first_line = 0;
      break;
    case Action::kPalette:
      StartPrompt(Prompt::kPalette);
      break;
    case Action::kQuit:
      return AskToQuit();
    case Action::kEnd:
      break;
  }
  return std::nullopt;
}

std::optional<Effect> Updater::Take(const ClickEvent& event) {
  if (state_.mode != Mode::kBrowse) return std::nullopt;
  const Layout layout = this->layout();
  const bool on_strip =
      event.column >= layout.strip && event.column < layout.strip + layout.strip_columns;
  if (event.row == layout.axis && !on_strip) {
    size_t right = layout.strip + layout.strip_columns;
    for (const size_t column : layout.columns) {
      right += Columns()[column].width + 1;
      if (event.column >= right) continue;
      if (event.column < layout.strip) break;
      state_.chosen_column = column;
      Sort();
      break;
    }
    return std::nullopt;
  }
  if (event.row >= layout.body && event.row < layout.body + layout.body_rows) {
    const size_t index = state_.first_row + event.row - layout.body;
    if (index >= scene_.rows.size()) return std::nullopt;
    const Row& row = scene_.rows[index];
    const bool was_chosen = state_.chosen == row.id;
    state_.chosen = row.id;
    if (!on_strip && row.can_fold && was_chosen) Fold(!row.is_folded);
  }
  const bool below_head = event.row >= layout.axis && event.row < layout.details;
  if (on_strip && below_head && scene_.span) {
    const int64_t slot_ns = SlotNs(state_, scene_.span, layout.strip_columns);
    const auto from_end =
        static_cast<int64_t>(layout.strip + layout.strip_columns - 1 - event.column);
    MoveCursor(state_, state_.page_end_ns - from_end * slot_ns, scene_);
  }
  return std::nullopt;
}

std::optional<Effect> Updater::Take(const WheelEvent& event) {
  const auto rows = static_cast<ptrdiff_t>(kWheelRows) * (event.up ? -1 : 1);
  if (state_.mode == Mode::kBrowse) ChooseRow(rows);
  if (state_.mode == Mode::kText) ScrollText(rows);
  return std::nullopt;
}

std::optional<Effect> Updater::Take(const ResizeEvent& event) {
  state_.size = event.size;
  if (state_.mode == Mode::kText) ScrollText(0);
  return std::nullopt;
}

}  // namespace

std::optional<Effect> Update(State& state, const Event& event, const Scene& scene,
                             const Keymap& keymap) {
  Updater updater(state, scene, keymap);
  auto effect = std::visit([&](const auto& one) { return updater.Take(one); }, event);
  Settle(state, scene);
  return effect;
}

}  // namespace vcpulse::top
