#include "monitor/top/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/strip.h"
#include "monitor/report/text_format.h"
#include "monitor/top/columns.h"
#include "monitor/top/layout.h"

namespace vcpulse::top {
namespace {

using metric::Metric;

constexpr std::string_view kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kAsciiBlocks[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
constexpr float kHaltedWeight = 0.99F;  // against bands of the same length
constexpr size_t kSteps = std::size(kBlocks) - 1;

Ink InkOf(core::Band band) {
  switch (band) {
    case core::Band::kHalted:
      return Ink::kHalted;
    case core::Band::kSpinning:
      return Ink::kSpinning;
    case core::Band::kProductive:
      return Ink::kProductive;
    case core::Band::kUnknown:
      return Ink::kUnknown;
    case core::Band::kNone:
      break;
  }
  return Ink::kDim;
}

Style StyleOfLetter(char letter) {
  switch (letter) {
    case '.':
      return {.ink = Ink::kHalted};
    case 'S':
    case 's':
      return {.ink = Ink::kSpinning, .reversed = letter == 'S', .bold = letter == 's'};
    case '#':
      return {.ink = Ink::kProductive, .reversed = true};
    case '?':
      return {.ink = Ink::kUnknown};
    case ':':
    case '$':
    case '%':
    case '!':
      return {.ink = Ink::kStarved, .reversed = true, .bold = true};
    default:
      return {.ink = Ink::kDim};
  }
}

class Drawing {
 public:
  explicit Drawing(const Picture& picture)
      : of_(picture),
        layout_(LayoutOf(picture.state.size, picture.state.hidden_columns,
                         picture.state.chosen_column)),
        cells_(picture.state.size) {}

  Cells Finish() {
    if (of_.state.size.rows == 0 || of_.state.size.columns == 0) return std::move(cells_);
    DrawHead();
    if (of_.state.mode == Mode::kText) {
      DrawText();
    } else {
      DrawAxis();
      DrawMarks();
      DrawRows();
      DrawDetails();
      DrawPalette();
    }
    DrawFooter();
    return std::move(cells_);
  }

 private:
  size_t width() const { return of_.state.size.columns; }
  std::string Time(int64_t ns, int digits) const {
    return TimeText(ns, of_.streams, of_.scene.span, digits);
  }
  Boards boards() const { return {of_.now, of_.numbers, of_.strip}; }
  // The column of the strip where an instant is, from its left.
  std::optional<size_t> StripColumnOf(int64_t ns) const {
    const Window& window = of_.strip.window();
    const int64_t slot = SlotOf(ns, window.slot_ns) - window.first_slot;
    if (slot < 0 || slot >= static_cast<int64_t>(std::min(window.slots, layout_.strip_columns))) {
      return std::nullopt;
    }
    return static_cast<size_t>(slot);
  }

  void DrawHead();
  std::string PaceText() const;
  std::string CountsText() const;
  std::string DegradedText() const;
  void DrawAxis();
  void DrawMarks();
  void DrawRows();
  void DrawStrip(size_t at_row, const std::vector<VcpuId>& vcpus, bool is_chosen);
  void DrawDetails();
  std::vector<std::pair<std::string, Style>> DetailLines(const Row& row) const;
  void DrawChart(size_t at_row, const std::vector<VcpuId>& vcpus, Metric metric);
  void DrawPalette();
  void DrawText();
  void DrawFooter();
  std::string PromptName() const;

  const Picture& of_;
  const Layout layout_;
  Cells cells_;
};

std::string Drawing::PaceText() const {
  const State& state = of_.state;
  const Source& source = of_.scene.source;
  switch (state.pace) {
    case Pace::kFollow:
      if (source.is_over || (!source.is_live && !source.is_followed)) return "END";
      return of_.silent_s > 0 ? absl::StrCat("LIVE, no data for ", of_.silent_s, " s") : "LIVE";
    case Pace::kPlaying:
      return "PLAYING";
    case Pace::kPaused:
      break;
  }
  if (!of_.scene.span) return "PAUSED";
  const double behind = static_cast<double>(of_.scene.span->end_ns - state.cursor_ns) / 1e9;
  return absl::StrFormat("PAUSED -%.1f s", behind);
}

std::string Drawing::CountsText() const {
  const auto vms = VmsOf(boards());
  size_t vcpus = 0;
  for (const auto& [id, vm] : vms) vcpus += vm->vcpus.size();
  const TickCost cost = of_.strip.Cost();
  std::string text = absl::StrCat(Plural(vms.size(), "VM"), "  ", Plural(vcpus, "vCPU"));
  if (of_.stride > 1) {
    absl::StrAppend(&text, "  strips are sampled: each ", of_.stride, "th chunk");
  } else {
    absl::StrAppend(&text, "  ", Plural(cost.ticks, "tick"), "  ", Plural(cost.gaps, "gap"));
    if (cost.gaps > 0) absl::StrAppend(&text, " of ", Plural(cost.missing_ticks, "tick"));
  }
  if (cost.covered_ns > 0 && of_.stride == 1) {
    absl::StrAppendFormat(
        &text, "  reading %.2f%% of a core, late %.2f ms at most",
        static_cast<double>(cost.read_ns) * 100 / static_cast<double>(cost.covered_ns),
        static_cast<double>(cost.most_late_ns) / 1e6);
  }
  if (of_.is_loading) absl::StrAppend(&text, "  reading...");
  return text;
}

std::string Drawing::DegradedText() const {
  const auto vms = VmsOf(boards());
  const auto without =
      std::ranges::count_if(vms, [](const auto& entry) { return entry.second->degraded; });
  if (without == 0) return "";
  if (static_cast<size_t>(without) == vms.size()) return "DEGRADED: no hardware counters";
  return absl::StrCat("DEGRADED: no hardware counters of ", without, " of ", vms.size(), " VMs");
}

void Drawing::DrawHead() {
  const State& state = of_.state;
  std::string left = absl::StrCat("vcpulse top  ", Printable(of_.scene.source.name));
  std::set<std::string> hosts;
  for (const Stream& stream : of_.streams) hosts.insert(HostName(stream));
  if (hosts.size() == 1 && !of_.streams.front().host.empty()) {
    absl::StrAppend(&left, "  ", *hosts.begin());
  } else if (hosts.size() > 1) {
    absl::StrAppend(&left, "  ", hosts.size(), " hosts");
  }
  std::string time = of_.scene.span ? Time(state.cursor_ns, 3) : "";
  if (!time.empty() && !time.ends_with(" s")) time += " UTC";
  const std::string right = absl::StrCat(PaceText(), "  ", time);
  const size_t right_columns = WidthOf(right) + 1;
  cells_.Put({.row = 0}, left, {.ink = Ink::kTitle, .bold = true},
             width() > right_columns ? width() - right_columns : 0);
  cells_.PutRight(0, width(), right,
                  {.ink = state.pace == Pace::kPaused ? Ink::kMarker : Ink::kTitle, .bold = true});
  if (of_.state.size.rows < 2) return;
  const std::string degraded = DegradedText();
  size_t column = 0;
  const auto alarm = [&](const std::string& text) {
    column = cells_.Put({.row = 1, .column = column}, absl::StrCat(text, "  "),
                        {.ink = Ink::kAlarm, .bold = true});
  };
  if (of_.lost_chunks > 0) alarm(absl::StrCat(Plural(of_.lost_chunks, "chunk"), " NOT SHOWN"));
  if (of_.damaged_chunks > 0) alarm(absl::StrCat(Plural(of_.damaged_chunks, "chunk"), " DAMAGED"));
  if (of_.damaged_bytes > 0) alarm(absl::StrCat(Plural(of_.damaged_bytes, "byte"), " DAMAGED"));
  if (of_.now.omitted_vcpus() > 0) {
    alarm(absl::StrCat(Plural(of_.now.omitted_vcpus(), "vCPU"), " NOT SHOWN"));
  }
  if (!degraded.empty()) alarm(degraded);
  cells_.Put({.row = 1, .column = column}, CountsText(), {.ink = Ink::kDim});
}

void Drawing::DrawAxis() {
  if (layout_.axis >= layout_.footer) return;
  const Window& window = of_.strip.window();
  cells_.Put({.row = layout_.axis}, Spans()[of_.state.span_index].name, {.ink = Ink::kDim},
             layout_.name_columns);
  const int digits = window.slot_ns < 1'000'000'000 ? 1 : 0;
  const size_t label = WidthOf(Time(window.EndNs(), digits));
  const size_t end = layout_.strip + layout_.strip_columns;
  // The end, and as many times before it as leave a label's width between them.
  for (size_t right = end; right >= layout_.strip + label; right -= std::min(right, 2 * label)) {
    const auto slots_before_end = static_cast<int64_t>(end - right);
    const int64_t ns = window.EndNs() - slots_before_end * window.slot_ns;
    // The last slot may end behind what is shown.
    cells_.PutRight(layout_.axis, right, Time(std::min(ns, of_.state.page_end_ns), digits),
                    {.ink = Ink::kDim});
  }
  size_t right = end;
  for (const size_t index : layout_.columns) {
    const Column& column = Columns()[index];
    right += column.width + 1;
    std::string head(column.head);
    const bool is_sorted = of_.state.rows.sort_column == index;
    if (is_sorted)
      head = absl::StrCat(of_.state.rows.reversed ? "^" : "v", head).substr(0, column.width);
    cells_.PutRight(
        layout_.axis, right, head,
        {.ink = Ink::kTitle, .reversed = of_.state.chosen_column == index, .bold = true});
  }
}

void Drawing::DrawMarks() {
  if (layout_.marks >= layout_.footer) return;
  const auto& marks = of_.strip.marks();
  for (size_t i = 0; i < marks.size(); ++i) {
    const auto column = StripColumnOf(marks[i].ns);
    if (!column) continue;
    // Up to the next marker; where several meet, the last is named.
    std::optional<size_t> next;
    for (size_t k = i + 1; k < marks.size() && !next; ++k) next = StripColumnOf(marks[k].ns);
    const size_t room = next.value_or(layout_.strip_columns) - *column;
    cells_.Put({.row = layout_.marks, .column = layout_.strip + *column},
               absl::StrCat("^", Printable(marks[i].name)), {.ink = Ink::kMarker, .bold = true},
               room);
  }
  if (of_.state.pace != Pace::kFollow) {
    if (const auto column = StripColumnOf(of_.state.cursor_ns)) {
      cells_.Put({.row = layout_.marks, .column = layout_.strip + *column},
                 of_.has_utf8 ? "▼" : "v", {.ink = Ink::kTitle, .bold = true});
    }
  }
  const Window& numbers = of_.numbers.window();
  const std::string of =
      numbers.latest_only ? "of one tick"
      : of_.state.numbers == Numbers::kStrip
          ? "of the strip"
          : absl::StrFormat("of %.3g s", static_cast<double>(numbers.slots) *
                                             static_cast<double>(numbers.slot_ns) / 1e9);
  const size_t begin = layout_.strip + layout_.strip_columns;
  if (!layout_.columns.empty()) {
    cells_.Put({.row = layout_.marks, .column = begin + 1}, of, {.ink = Ink::kDim});
  }
}

void Drawing::DrawStrip(size_t at_row, const std::vector<VcpuId>& vcpus, bool is_chosen) {
  const Window& window = of_.strip.window();
  const size_t columns = std::min(layout_.strip_columns, window.slots);
  for (size_t i = 0; i < columns; ++i) {
    report::StripSlot sum;
    for (const VcpuId& vcpu : vcpus) {
      if (const Track* track = of_.strip.Find(vcpu)) {
        sum += StripSlotOf(track->At(window.first_slot + static_cast<int64_t>(i)));
      }
    }
    if (vcpus.size() > 1) {
      // Of several: where they differ, what runs is shown, and starvation only of those.
      float& halted = sum.band_ns[static_cast<size_t>(core::Band::kHalted)];
      halted *= kHaltedWeight;
      if (halted == *std::ranges::max_element(sum.band_ns)) sum.starved_ns = 0;
    }
    // The slot of the end may not be over, and where slots are shorter than ticks some are empty.
    const char letter = sum.SampledNs() <= 0 ? '_' : report::StripLetter(sum, sum.SampledNs());
    // Before the beginning of what is held there is nothing to be missed.
    const int64_t slot_end_ns = (window.first_slot + static_cast<int64_t>(i)) * window.slot_ns;
    const bool is_held = of_.scene.span &&
                         slot_end_ns - window.slot_ns >= of_.scene.span->begin_ns &&
                         slot_end_ns <= of_.scene.span->end_ns;
    const char shown = letter == '_' && !is_held ? ' ' : letter;
    Style style = StyleOfLetter(letter);
    style.bold = style.bold || is_chosen;
    cells_.Put({.row = at_row, .column = layout_.strip + i}, std::string_view(&shown, 1), style);
  }
}

void Drawing::DrawRows() {
  const auto& rows = of_.scene.rows;
  const auto chosen = ChosenIndex(of_.state, rows);
  for (size_t i = 0; i < layout_.body_rows; ++i) {
    const size_t index = of_.state.first_row + i;
    if (index >= rows.size()) break;
    const Row& row = rows[index];
    const size_t at_row = layout_.body + i;
    const bool is_chosen = chosen == index;
    std::string name(row.depth, ' ');
    // The first row of the screen names its VM where the VM's own row is scrolled away.
    const bool is_cut_off = i == 0 && row.depth > 0;
    if (row.can_fold) name += row.is_folded ? "+" : "-";
    absl::StrAppend(&name, is_cut_off ? row.full_name : row.name,
                    row.ended && row.depth == 0 ? " (ended)" : "");
    const Ink ink = row.id.kind == RowId::Kind::kVcpu ? InkOf(row.verdict.band) : Ink::kTitle;
    name.resize(std::max(name.size(), layout_.name_columns), ' ');
    cells_.Put({.row = at_row}, name,
               {.ink = row.ended   ? Ink::kDim
                       : is_chosen ? Ink::kTitle
                                   : ink,
                .reversed = is_chosen,
                .bold = row.depth == 0},
               layout_.name_columns);
    DrawStrip(at_row, row.vcpus, is_chosen);
    size_t right = layout_.strip + layout_.strip_columns;
    for (const size_t column_index : layout_.columns) {
      const Column& column = Columns()[column_index];
      right += column.width + 1;
      std::string text = TextOf(column, row);
      if (WidthOf(text) > column.width) text = std::string(CutUtf8(text, column.width));
      cells_.PutRight(at_row, right, text,
                      {.ink = text == "-" ? Ink::kDim : Ink::kPlain, .bold = is_chosen});
    }
  }
  if (rows.empty() && layout_.body_rows > 0) {
    const bool filtered = !of_.state.rows.filter.IsAll();
    const std::string text =
        filtered ? absl::StrCat("no vCPU fits the filter ", Quoted(of_.state.rows.filter.text()))
        : of_.scene.source.is_over ? "no VM was recorded here"
        : of_.scene.span           ? "no VM is recorded so far"
                                   : "waiting for the first samples";
    cells_.Put({.row = layout_.body}, text, {.ink = Ink::kDim});
    size_t row = layout_.body + 1;
    for (const std::string& note : of_.state.notes) {
      for (const std::string_view part : Wrapped(note, width())) {
        if (row < layout_.footer) cells_.Put({.row = row++}, part);
      }
    }
  }
}

std::vector<std::pair<std::string, Style>> Drawing::DetailLines(const Row& row) const {
  std::vector<std::pair<std::string, Style>> lines;
  std::string title = row.full_name;
  const auto vms = VmsOf(boards());
  if (const auto vm = vms.find(row.id.vcpu.vm);
      vm != vms.end() && row.id.kind != RowId::Kind::kHost) {
    if (vm->second->instance.pid() != 0) {
      absl::StrAppend(&title, "  pid ", vm->second->instance.pid());
    }
    if (!vm->second->instance.uuid().empty() && row.id.kind == RowId::Kind::kVm) {
      absl::StrAppend(&title, "  ", Printable(vm->second->instance.uuid()));
    }
  }
  if (row.id.kind == RowId::Kind::kVcpu) {
    const core::Verdict& verdict = row.verdict;
    Style style{.ink = InkOf(verdict.band), .bold = true};
    absl::StrAppend(&title, "  ", std::string(core::ToString(verdict.band)));
    if (verdict.band == core::Band::kSpinning && core::IsOfIpcAlone(verdict.rule)) title += "?";
    if (verdict.band == core::Band::kNone) {
      title += " no verdict yet";
    } else {
      absl::StrAppend(&title, " by ", std::string(core::ToString(verdict.rule)));
    }
    if (verdict.confidence_pct > 0)
      absl::StrAppend(&title, ", confidence ", verdict.confidence_pct, "%");
    if (verdict.starved) title += ", STARVED";
    if (verdict.band == core::Band::kUnknown && reading::IsUnknownReason(verdict.rule)) {
      absl::StrAppend(&title, ": ", std::string(reading::Explain(verdict.rule)));
    }
    lines.emplace_back(title, style);
  } else {
    absl::StrAppend(&title, "  ", Plural(row.vcpus.size(), "vCPU"));
    lines.emplace_back(title, Style{.ink = Ink::kTitle, .bold = true});
  }
  const std::string reason = of_.now.DegradedReason(row.id.vcpu.vm.stream);
  if (row.degraded && !reason.empty()) {
    lines.emplace_back(absl::StrCat("no hardware counters: ", Printable(reason)),
                       Style{.ink = Ink::kAlarm});
  }
  if (row.hot != nullptr) {
    std::vector<std::string> parts;
    uint64_t all = row.hot->further_samples();
    for (const uint64_t samples : row.hot->samples()) all += samples;
    const int most = std::min({3, row.hot->addresses_size(), row.hot->samples_size()});
    for (int i = 0; i < most && all > 0; ++i) {
      const bool named = i < row.hot->functions_size() && !row.hot->functions(i).empty();
      parts.push_back(absl::StrFormat(
          "%s %.0f%%",
          named ? Printable(row.hot->functions(i)) : absl::StrFormat("%#x", row.hot->addresses(i)),
          static_cast<double>(row.hot->samples(i)) * 100 / static_cast<double>(all)));
    }
    if (!parts.empty())
      lines.emplace_back(absl::StrCat("hot: ", absl::StrJoin(parts, ", ")), Style{});
  }
  if (row.id.kind == RowId::Kind::kVcpu) {
    const std::string others = of_.strip.CompetitorsOf(row.id.vcpu);
    if (!others.empty()) lines.emplace_back(absl::StrCat("had its CPU: ", others), Style{});
  }
  return lines;
}

void Drawing::DrawChart(size_t at_row, const std::vector<VcpuId>& vcpus, Metric metric) {
  const metric::Info& info = metric::InfoOf(metric);
  const Window& window = of_.strip.window();
  std::vector<std::optional<double>> values(std::min(window.slots, layout_.strip_columns));
  double least = info.IsShare() ? 0 : HUGE_VAL;
  double most = info.IsShare() ? 1 : 0;
  for (size_t i = 0; i < values.size(); ++i) {
    metric::Totals sum;
    for (const VcpuId& vcpu : vcpus) {
      if (const Track* track = of_.strip.Find(vcpu)) {
        sum.Add(track->At(window.first_slot + static_cast<int64_t>(i)));
      }
    }
    values[i] = sum.Value(metric);
    if (!values[i] || info.IsShare()) continue;
    least = std::min(least, *values[i]);
    most = std::max(most, *values[i]);
  }
  cells_.Put({.row = at_row, .column = 1}, info.label, {.ink = Ink::kDim},
             layout_.name_columns - 1);
  const bool any = std::ranges::any_of(values, [](const auto& value) { return value.has_value(); });
  if (!any) {
    cells_.Put({.row = at_row, .column = layout_.strip}, "not measured", {.ink = Ink::kDim},
               layout_.strip_columns);
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    const double part = most > 0 ? std::clamp(*values[i] / most, 0.0, 1.0) : 0;
    auto step = static_cast<size_t>(std::lround(part * static_cast<double>(kSteps)));
    if (*values[i] > 0) step = std::max<size_t>(step, 1);
    cells_.Put({.row = at_row, .column = layout_.strip + i},
               of_.has_utf8 ? kBlocks[step] : kAsciiBlocks[step], {.ink = Ink::kTitle});
  }
  const std::string range = info.IsShare() ? "0 to 100%"
                                           : absl::StrCat(report::MetricText(info, least), " to ",
                                                          report::MetricText(info, most));
  cells_.Put({.row = at_row, .column = layout_.strip + layout_.strip_columns + 1}, range,
             {.ink = Ink::kDim});
}

void Drawing::DrawDetails() {
  const auto chosen = ChosenIndex(of_.state, of_.scene.rows);
  if (layout_.details_rows == 0 || !chosen) return;
  const Row& row = of_.scene.rows[*chosen];
  size_t at = layout_.details;
  const size_t end = layout_.footer;
  constexpr size_t kMostLines = 3;  // of one text
  for (const auto& [text, style] : DetailLines(row)) {
    const auto lines = Wrapped(text, width());
    for (size_t i = 0; i < std::min(lines.size(), kMostLines) && at < end; ++i) {
      cells_.Put({.row = at++}, lines[i], style);
    }
  }
  for (const Metric metric : {Metric::kIpc, Metric::kResidency, Metric::kRunDelay, Metric::kRun,
                              Metric::kExits, Metric::kHaltPoll, Metric::kGhz}) {
    if (at < end) DrawChart(at++, row.vcpus, metric);
  }
}

void Drawing::DrawPalette() {
  if (of_.state.mode != Mode::kPrompt || of_.state.prompt != Prompt::kPalette) return;
  const auto found = PaletteFor(of_.state.typed);
  const size_t most = layout_.footer > layout_.body ? layout_.footer - layout_.body : 0;
  const size_t shown = std::min(found.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    const ActionInfo& info = InfoOf(found[i]);
    const size_t row = layout_.footer - 1 - i;
    std::string text = absl::StrFormat(" %-14s %-12s %s", std::string(info.name),
                                       of_.keymap.KeysOf(found[i]), std::string(info.help));
    text.resize(std::max(text.size(), width()), ' ');
    cells_.Put({.row = row}, text, {.ink = Ink::kTitle, .reversed = i == 0});
  }
}

void Drawing::DrawText() {
  const State& state = of_.state;
  const size_t end = layout_.footer;
  if (end < 2) return;
  cells_.Put({.row = 1}, std::string(width(), ' '));
  cells_.Put({.row = 1}, state.text_title, {.ink = Ink::kTitle, .bold = true});
  size_t row = 2;
  for (size_t line = state.first_line; line < state.text.size(); ++line) {
    for (const std::string_view part : Wrapped(state.text[line], width())) {
      if (row < end) cells_.Put({.row = row++}, part);
    }
  }
}

std::string Drawing::PromptName() const {
  switch (of_.state.prompt) {
    case Prompt::kFilter:
      return "filter (name, band, ipc < 0.5): ";
    case Prompt::kJump:
      return "jump on by, or to (30s, 10:31:58, @12s): ";
    case Prompt::kJumpBack:
      return "jump back by, or to (30s, 10:31:58, @12s): ";
    case Prompt::kMark:
      return "name of the phase that begins: ";
    case Prompt::kWrite:
      return absl::StrCat("write what is held to [", std::string(kWrittenTo), "]: ");
    case Prompt::kPalette:
      return ":";
  }
  return "";
}

void Drawing::DrawFooter() {
  const State& state = of_.state;
  const size_t row = layout_.footer;
  if (row == 0) return;
  if (state.mode == Mode::kPrompt) {
    size_t column = cells_.Put({.row = row}, PromptName(), {.ink = Ink::kTitle, .bold = true});
    // The end of what is typed stays in sight.
    std::string_view typed = state.typed;
    const size_t room = width() > column + 1 ? width() - column - 1 : 0;
    while (WidthOf(typed) > room)
      typed.remove_prefix(std::max<size_t>(Utf8SequenceLength(typed), 1));
    column = cells_.Put({.row = row, .column = column}, typed);
    cells_.Put({.row = row, .column = column}, " ", {.reversed = true});
    if (!state.message.empty()) {
      cells_.Put({.row = row - 1}, std::string(width(), ' '));
      cells_.Put({.row = row - 1}, state.message, {.ink = Ink::kAlarm, .bold = true});
    }
    return;
  }
  if (state.mode == Mode::kConfirmQuit) {
    cells_.Put({.row = row},
               absl::StrCat("Nothing was written to a file. Leave? y, or ",
                            of_.keymap.KeysOf(Action::kWrite), " to write what is held: "),
               {.ink = Ink::kAlarm, .bold = true});
    return;
  }
  if (!state.message.empty()) {
    cells_.Put({.row = row}, state.message,
               {.ink = state.message_is_alarm ? Ink::kAlarm : Ink::kPlain, .bold = true});
    return;
  }
  size_t column = 0;
  if (!state.rows.filter.IsAll() && state.mode == Mode::kBrowse) {
    column = cells_.Put({.row = row}, absl::StrCat("filter: ", state.rows.filter.text(), "  "),
                        {.ink = Ink::kMarker, .bold = true});
  }
  const std::array<std::pair<Action, std::string_view>, 12> kHints = {{
      {Action::kHelp, "help"},
      {Action::kQuit, "leave"},
      {Action::kPause, "pause"},
      {Action::kPreviousTick, "back"},
      {Action::kNextTick, "on"},
      {Action::kExplain, "explain"},
      {Action::kFilter, "filter"},
      {Action::kSort, "sort"},
      {Action::kShorter, "zoom"},
      {Action::kGroup, "rows"},
      {Action::kMark, "mark"},
      {Action::kWrite, "write"},
  }};
  if (state.mode == Mode::kText) {
    cells_.Put({.row = row}, "escape: back; up, down, page keys: scroll", {.ink = Ink::kDim});
    return;
  }
  const Source& source = of_.scene.source;
  for (const auto& [action, word] : kHints) {
    if (action == Action::kMark && (!source.is_live || source.is_over)) continue;
    if (action == Action::kWrite && !source.is_live && !source.is_followed) continue;
    std::string key = of_.keymap.KeysOf(action);
    key = key.substr(0, key.find(','));
    if (column + key.size() + word.size() + 1 > width()) break;
    column = cells_.Put({.row = row, .column = column}, key, {.ink = Ink::kTitle, .bold = true});
    column = cells_.Put({.row = row, .column = column}, absl::StrCat(" ", std::string(word), "  "),
                        {.ink = Ink::kDim});
  }
}

}  // namespace

Cells Draw(const Picture& picture) { return Drawing(picture).Finish(); }

std::string TimeText(int64_t ns, const std::vector<Stream>& streams,
                     const std::optional<TimeSpan>& span, int digits) {
  const bool has_realtime = !streams.empty() && std::ranges::all_of(streams, &Stream::has_realtime);
  if (!has_realtime) {
    const int64_t begin_ns = span ? span->begin_ns : 0;
    return absl::StrFormat("%+.*f s", digits, static_cast<double>(ns - begin_ns) / 1e9);
  }
  const absl::Time time = absl::FromUnixNanos(ns);
  const char* format = digits == 0 ? "%H:%M:%S" : digits == 1 ? "%H:%M:%E1S" : "%H:%M:%E3S";
  return absl::FormatTime(format, time, absl::UTCTimeZone());
}

}  // namespace vcpulse::top
