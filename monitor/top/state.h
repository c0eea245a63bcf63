#pragma once

// What the keys have made of the view: pure. Update() is all that a key, a click or a new size can
// do.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "monitor/top/actions.h"
#include "monitor/top/cells.h"
#include "monitor/top/chunk_store.h"
#include "monitor/top/rows.h"

namespace vcpulse::top {

enum class Mode : uint8_t {
  kBrowse,
  kPrompt,       // a line is typed
  kText,         // help, or an explanation: scrolled, and left by escape
  kConfirmQuit,  // something would be lost
  kEnd,          // none: how many there are
};

enum class Prompt : uint8_t { kFilter, kJump, kJumpBack, kMark, kWrite, kPalette };

inline constexpr std::string_view kWrittenTo = "top.vpt";  // where no other name is typed

enum class Pace : uint8_t {
  kFollow,  // the end of what is there
  kPaused,
  kPlaying,  // from the cursor on, as fast as it was recorded
};

// What the numbers are of: the time before the cursor, its tick alone, or all of the strip.
enum class Numbers : uint8_t { kSeconds, kTick, kStrip };

// Of where the chunks come from; does not change but for is_over.
struct Source {
  std::string name;          // "web.vpt", "tcp:collector:4711", "live"
  bool is_live = false;      // recorded by this process
  bool is_followed = false;  // comes from a collector or its folder
  bool is_over = false;      // no more will come
  std::string output;        // where a live recording goes; empty: it is only held in memory
};

// What there is to be seen, while one event is handled.
struct Scene {
  std::span<const Row> rows;
  bool has_samples = false;      // there was one, now or before
  std::optional<TimeSpan> span;  // of all that is held
  Source source;
};

struct State {
  Size size;
  Mode mode = Mode::kBrowse;
  Pace pace = Pace::kFollow;
  // The instant that the numbers are of, and that of the strip's end; of the common axis. While
  // following, both are the end of what is held.
  int64_t cursor_ns = 0;
  int64_t page_end_ns = 0;
  size_t span_index = 2;  // of kSpans
  Numbers numbers = Numbers::kSeconds;
  Arrangement rows;
  std::optional<RowId> chosen;  // nothing: the first row
  size_t first_row = 0;         // of those on the screen
  std::set<size_t> hidden_columns;
  size_t chosen_column = 0;
  Prompt prompt = Prompt::kFilter;
  std::string typed;
  std::vector<std::string> text;  // of Mode::kText
  std::string text_title;
  size_t first_line = 0;
  std::string message;  // shown until the next key
  bool message_is_alarm = false;
  int64_t written_ns = 0;          // what is older was written to a file
  std::vector<std::string> notes;  // what was said of the recording, shown where there is no row
};

// Stretches of time that a strip can show; the last one is all that is held.
struct SpanChoice {
  int64_t ns = 0;  // 0: all
  std::string_view name;
};
std::span<const SpanChoice> Spans();

// "up", "t", "ctrl-c": see actions.h.
struct KeyEvent {
  std::string key;
};
struct ClickEvent {
  size_t row = 0;
  size_t column = 0;
};
struct WheelEvent {
  bool up = false;
};
struct ResizeEvent {
  Size size;
};
using Event = std::variant<KeyEvent, ClickEvent, WheelEvent, ResizeEvent>;

// What Update cannot do itself.
struct StepTicks {
  VmId vm;
  int64_t from_ns = 0;
  int steps = 0;
};
struct Explain {
  VcpuId vcpu;
  int64_t at_ns = 0;
};
struct AddMark {
  std::string name;
};
struct WriteTimeline {
  std::string path;
  size_t stream = 0;  // the recording to write, where there are several
};
struct Quit {};
using Effect = std::variant<StepTicks, Explain, AddMark, WriteTimeline, Quit>;

// Nothing where the event changes the state alone.
std::optional<Effect> Update(State& state, const Event& event, const Scene& scene,
                             const Keymap& keymap);

// Moves the cursor, and the page where it would not be on it. Pauses.
void MoveCursor(State& state, int64_t to_ns, const Scene& scene);
// Keeps cursor and page with the end of what is held, and the chosen row on the screen.
void Settle(State& state, const Scene& scene);
// The stretch that the strip shows, and one slot of it: as many as columns, on a grid.
int64_t SlotNs(const State& state, const std::optional<TimeSpan>& held, size_t columns);
int64_t SpanNs(const State& state, const std::optional<TimeSpan>& held);
// The row that is chosen; nothing without rows.
std::optional<size_t> ChosenIndex(const State& state, std::span<const Row> rows);

// The actions that a palette offers for what was typed.
std::vector<Action> PaletteFor(std::string_view typed);

// A time that a person typed, from `from_ns` (in direction -1 or 1): "30s", "1h5m"; "10:31" or
// "10:31:58.5" of the day of from_ns, UTC; "2026-11-27 10:31:58"; "@12s" after `begin_ns`. Nothing
// for anything else.
std::optional<int64_t> ParseJump(std::string_view typed, int64_t from_ns, int64_t begin_ns,
                                 int direction);

}  // namespace vcpulse::top
