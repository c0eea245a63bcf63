#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/strip.h"
#include "monitor/report/text_format.h"

namespace vcpulse::report {
namespace {

constexpr float kSomeSpinning = 0.05F;  // of a character's time: a spin must not vanish in others
constexpr float kMuchStarved = 0.5F;
constexpr float kLeastSampled = 0.1F;  // of a character's time: less says nothing of it
constexpr size_t kLabelColumns = 12;   // from one time of the axis to the next

constexpr char kMissing = '_';

// How slots become characters: at most as many as fit, and none narrower than a slot.
struct Grid {
  size_t slots = 0;
  size_t columns = 0;
  int64_t start_ns = 0;  // CLOCK_MONOTONIC
  double column_ns = 0;

  // Where an instant is; may lie outside.
  double ColumnOf(int64_t mono_ns) const {
    return (static_cast<double>(mono_ns) - static_cast<double>(start_ns)) / column_ns;
  }
};

size_t LabelWidth(const std::map<uint32_t, Strip>& strips) {
  return std::max<size_t>(4, absl::StrCat(strips.rbegin()->first).size());
}

Grid GridOf(const Strips& strips, size_t columns_that_fit) {
  Grid grid;
  grid.slots = strips.UsedSlots();
  grid.columns = std::min(columns_that_fit, grid.slots);
  grid.start_ns = *strips.start_mono_ns();
  grid.column_ns = static_cast<double>(strips.slot_ns()) * static_cast<double>(grid.slots) /
                   static_cast<double>(grid.columns);
  return grid;
}

// What lies in column `column`: whole slots, and parts of those at its ends.
StripSlot ColumnSlot(const Strip& strip, const Grid& grid, size_t column) {
  const double each = static_cast<double>(grid.slots) / static_cast<double>(grid.columns);
  const double begin = static_cast<double>(column) * each;
  const double end = std::min(begin + each, static_cast<double>(grid.slots));
  StripSlot sum;
  for (auto i = static_cast<size_t>(begin); i < grid.slots && static_cast<double>(i) < end; ++i) {
    const auto slot_begin = static_cast<double>(i);
    const auto share =
        static_cast<float>(std::min(end, slot_begin + 1) - std::max(begin, slot_begin));
    StripSlot part = strip.At(i);
    for (float& ns : part.band_ns) ns *= share;
    part.starved_ns *= share;
    sum += part;
  }
  return sum;
}

Colour ColourOf(char letter) {
  switch (letter) {
    case '.':
    case '-':
    case kMissing:
      return Colour::kDim;
    case 'S':
    case 's':
      return Colour::kYellow;
    case '#':
      return Colour::kGreen;
    case ':':
    case '$':
    case '%':
    case '!':
      return Colour::kRed;
    default:
      return Colour::kNone;
  }
}

// A colour per run of equal letters.
std::string PaintedLetters(const std::string& letters) {
  std::string out;
  for (size_t begin = 0; begin < letters.size();) {
    const size_t end = std::min(letters.find_first_not_of(letters[begin], begin), letters.size());
    out += Painted(std::string_view(letters).substr(begin, end - begin), ColourOf(letters[begin]));
    begin = end;
  }
  return out;
}

std::string TrimmedLine(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// "^boot    ^body": each as far as the next one leaves room; '*' where several meet.
std::string MarkerLine(const Report& report, const Grid& grid, size_t indent) {
  std::string line(grid.columns, ' ');
  std::vector<std::pair<size_t, std::string>> marks;
  for (const v1::Marker& marker : report.summary.markers()) {
    const double column = grid.ColumnOf(marker.mono_ns());
    // One that was set while the first sample was still to come is at its beginning.
    const bool before = column < 0 && column > -1;
    if (!before && !(column >= 0 && column < static_cast<double>(grid.columns))) continue;
    marks.emplace_back(before ? 0 : static_cast<size_t>(column), Printable(marker.name()));
  }
  std::ranges::stable_sort(marks, {}, [](const auto& mark) { return mark.first; });
  for (size_t i = 0; i < marks.size(); ++i) {
    const auto& [column, name] = marks[i];
    if (line[column] == '*') continue;
    const bool several = i + 1 < marks.size() && marks[i + 1].first == column;
    line[column] = several ? '*' : '^';
    if (several) continue;
    const auto next =
        std::ranges::find_if(marks, [at = column](const auto& mark) { return mark.first > at; });
    const size_t room = (next == marks.end() ? grid.columns : next->first) - column - 1;
    // A name that is not ASCII is cut by bytes nowhere: it is left out where it does not fit.
    const bool ascii = std::ranges::all_of(name, [](char c) { return (c & 0x80) == 0; });
    if (ascii || name.size() <= room) {
      line.replace(column + 1, std::min(room, name.size()), name.substr(0, room));
    }
  }
  if (marks.empty()) return "";
  return TrimmedLine(std::string(indent, ' ') + line);
}

std::string TimeText(double seconds) {
  if (seconds < 120) return absl::StrFormat("%gs", std::round(seconds * 1e6) / 1e6);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 7200) {
    return whole % 60 == 0 ? absl::StrFormat("%dm", whole / 60)
                           : absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  }
  return absl::StrFormat("%dh%02dm", whole / 3600, whole % 3600 / 60);
}

// The least of 1, 2 and 5 times a power of ten, from a minute on of round parts of an hour.
double RoundStep(double least_s) {
  for (double ten = 1e-6; ten < 60; ten *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (ten * factor >= least_s && ten * factor < 60) return ten * factor;
    }
  }
  for (const double step : {60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 18000.0, 43200.0}) {
    if (step >= least_s) return step;
  }
  constexpr double kDay_s = 86400;
  return kDay_s * std::max(1.0, std::ceil(least_s / kDay_s));
}

std::string AxisLine(const Report& report, const Grid& grid, size_t indent) {
  std::string line(grid.columns, ' ');
  const double start_s = report.SecondsAt(grid.start_ns);
  const double column_s = grid.column_ns / 1e9;
  const double step_s = RoundStep(column_s * static_cast<double>(kLabelColumns));
  size_t free = 0;
  const double first = std::ceil(start_s / step_s - 1e-9);
  if ((first * step_s - start_s) / column_s >= static_cast<double>(kLabelColumns) / 2) {
    const double fine_s = step_s / 100;
    const double shown_s = start_s < column_s ? 0 : std::round(start_s / fine_s) * fine_s;
    const std::string label = "|" + TimeText(shown_s);
    line.replace(0, std::min(label.size(), line.size()), label.substr(0, line.size()));
    free = label.size() + 1;
  }
  for (double at = first;; ++at) {
    // The label of a time stands at the character that the time begins or lies in.
    const double column = (at * step_s - start_s) / column_s + 1e-6;
    if (column >= static_cast<double>(grid.columns)) break;
    const std::string label = "|" + TimeText(at == 0 ? 0 : at * step_s);  // never -0
    const auto place = static_cast<size_t>(std::max(0.0, column));
    if (place < free || place + label.size() > grid.columns) continue;
    line.replace(place, label.size(), label);
    free = place + label.size() + 1;
  }
  return TrimmedLine(std::string(indent, ' ') + line);
}

}  // namespace

char StripLetter(const StripSlot& slot, double slot_ns) {
  const float sampled = slot.SampledNs();
  if (sampled < kLeastSampled * static_cast<float>(slot_ns)) return kMissing;
  const auto largest = std::ranges::max_element(slot.band_ns) - slot.band_ns.begin();
  const bool starved = slot.starved_ns >= kMuchStarved * sampled;
  const char letter = reading::BandLetter(static_cast<core::Band>(largest), starved);
  if (starved) return letter;
  const float spinning = slot.band_ns[static_cast<size_t>(core::Band::kSpinning)];
  return letter != 'S' && spinning >= kSomeSpinning * sampled ? 's' : letter;
}

std::string RenderStrips(const Report& report, const Strips& strips, uint32_t vm,
                         const StripOptions& options) {
  const std::map<uint32_t, Strip>* const of_vm = strips.Find(vm);
  if (of_vm == nullptr || strips.UsedSlots() == 0) return "";
  if (options.vcpu && !of_vm->contains(*options.vcpu)) return "";
  const size_t label_width = LabelWidth(*of_vm);
  const size_t indent = label_width + 2;
  const Grid grid = GridOf(strips, std::max(options.width, kNarrowestStrips) - indent - 1);
  std::string out;
  for (const auto& [index, strip] : *of_vm) {
    if (options.vcpu && *options.vcpu != index) continue;
    std::string letters;
    for (size_t column = 0; column < grid.columns; ++column) {
      letters += StripLetter(ColumnSlot(strip, grid, column), grid.column_ns);
    }
    absl::StrAppendFormat(&out, "%*d |", static_cast<int>(label_width), index);
    absl::StrAppend(&out, options.colour ? PaintedLetters(letters) : letters, "|\n");
  }
  return out + MarkerLine(report, grid, indent) + AxisLine(report, grid, indent);
}

std::string StripLegend(const Strips& strips, const StripOptions& options) {
  if (strips.UsedSlots() == 0) return "";
  const Grid grid = GridOf(strips, std::max(options.width, kNarrowestStrips) - 7);
  return Wrapped(
      "strips: ",
      absl::StrCat(
          "a character is about ", DurationText(grid.column_ns),
          ": . HALTED, S SPINNING, s some (5 % or more), # PRODUCTIVE, ? UNKNOWN; the same "
          "starved for half of it or more : $ % !; - no verdict, _ no sample"));
}

}  // namespace vcpulse::report
