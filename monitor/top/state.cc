#include "monitor/top/state.h"

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

namespace vcpulse::top {
namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr auto kSpanChoices = std::to_array<SpanChoice>({{10 * kSecond_ns, "10 s"},
                                                         {30 * kSecond_ns, "30 s"},
                                                         {60 * kSecond_ns, "60 s"},
                                                         {300 * kSecond_ns, "5 min"},
                                                         {600 * kSecond_ns, "10 min"},
                                                         {3600 * kSecond_ns, "1 h"},
                                                         {21600 * kSecond_ns, "6 h"},
                                                         {0, "all"}});
// The clock time "H:MM[:SS[.F]]" of the day of `from_ns`.
std::optional<absl::Time> ParseClock(const std::string& typed, int64_t from_ns) {
  const absl::CivilDay day = absl::ToCivilDay(absl::FromUnixNanos(from_ns), absl::UTCTimeZone());
  const std::string dated = absl::StrCat(absl::FormatCivilTime(day), " ", typed);
  absl::Time time;
  std::string error;
  for (const char* format : {"%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d %H:%M"}) {
    if (absl::ParseTime(format, dated, &time, &error) ||
        absl::ParseTime(format, typed, &time, &error)) {
      return time;
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const SpanChoice> Spans() { return kSpanChoices; }

int64_t SpanNs(const State& state, const std::optional<TimeSpan>& held) {
  const int64_t ns = kSpanChoices[state.span_index].ns;
  if (ns > 0) return ns;
  return held ? std::max(held->end_ns - held->begin_ns + 1, kSecond_ns) : kSecond_ns;
}

int64_t SlotNs(const State& state, const std::optional<TimeSpan>& held, size_t columns) {
  constexpr int64_t kShortest_ns = 1'000'000;
  // Slots lie on a grid, so the last one may reach beyond the end; all of a recording has one more.
  const bool is_all = kSpanChoices[state.span_index].ns == 0;
  const auto divisor = std::max<int64_t>(static_cast<int64_t>(columns) - (is_all ? 1 : 0), 1);
  return std::max((SpanNs(state, held) + divisor - 1) / divisor, kShortest_ns);
}

void MoveCursor(State& state, int64_t to_ns, const Scene& scene) {
  if (!scene.span) return;
  state.pace = Pace::kPaused;
  state.cursor_ns = std::clamp(to_ns, scene.span->begin_ns, scene.span->end_ns);
  Settle(state, scene);
}

void Settle(State& state, const Scene& scene) {
  if (scene.span) {
    if (state.pace == Pace::kFollow) {
      state.cursor_ns = state.page_end_ns = scene.span->end_ns;
    } else {
      // What was forgotten meanwhile cannot be shown.
      state.cursor_ns = std::clamp(state.cursor_ns, scene.span->begin_ns, scene.span->end_ns);
      const int64_t length = SpanNs(state, scene.span);
      if (Spans()[state.span_index].ns == 0) {
        state.page_end_ns = scene.span->end_ns;
      } else if (state.cursor_ns > state.page_end_ns) {
        state.page_end_ns = state.cursor_ns;
      } else if (state.cursor_ns < state.page_end_ns - length) {
        state.page_end_ns = state.cursor_ns + length / 2;
      }
    }
  }
  const auto index = ChosenIndex(state, scene.rows);
  const size_t shown = std::max<size_t>(
      LayoutOf(state.size, state.hidden_columns, state.chosen_column).body_rows, 1);
  if (!index) {
    state.first_row = 0;
    return;
  }
  const size_t last = scene.rows.size() > shown ? scene.rows.size() - shown : 0;
  if (*index < state.first_row) state.first_row = *index;
  if (*index >= state.first_row + shown) state.first_row = *index - shown + 1;
  state.first_row = std::min(state.first_row, last);
}

std::optional<size_t> ChosenIndex(const State& state, std::span<const Row> rows) {
  if (rows.empty()) return std::nullopt;
  if (!state.chosen) return 0;
  const auto found = std::ranges::find(rows, *state.chosen, &Row::id);
  return found == rows.end() ? 0 : static_cast<size_t>(found - rows.begin());
}

std::vector<Action> PaletteFor(std::string_view typed) {
  std::vector<Action> found;
  // Those that begin so come first; an exact name is the first of all.
  if (const auto exact = FindAction(typed)) found.push_back(*exact);
  for (const bool at_start : {true, false}) {
    for (const ActionInfo& info : ActionTable()) {
      const size_t at = info.name.find(typed);
      const bool fits = at_start ? at == 0 : at != 0 && at != std::string_view::npos;
      if (fits && info.action != Action::kPalette &&
          std::ranges::find(found, info.action) == found.end()) {
        found.push_back(info.action);
      }
    }
  }
  return found;
}

std::optional<int64_t> ParseJump(std::string_view typed, int64_t from_ns, int64_t begin_ns,
                                 int direction) {
  std::string text(ToStd(absl::StripAsciiWhitespace(ToAbsl(typed))));
  const bool from_start = text.starts_with('@');
  if (from_start) text.erase(0, 1);
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration)) {
    const absl::Duration most = absl::Hours(24) * 365 * 100;
    const int64_t ns = absl::ToInt64Nanoseconds(std::clamp(duration, -most, most));
    return from_start ? begin_ns + ns : from_ns + direction * ns;
  }
  const auto time = from_start ? std::nullopt : ParseClock(text, from_ns);
  if (!time) return std::nullopt;
  return absl::ToUnixNanos(*time);
}

}  // namespace vcpulse::top
