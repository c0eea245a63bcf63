#include "monitor/compare/recording.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/check/subjects.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/labels.h"
#include "monitor/reading/part.h"

namespace vcpulse::compare {
namespace {

constexpr size_t kMostCellsInAll = size_t{1} << 20;

struct PhaseSpan {
  check::TimeRange when;
  size_t phase = 0;
};

// Cuts intervals into series.
class Measuring {
 public:
  Measuring(const std::vector<VmGroup>& groups, std::vector<PhaseSpan> spans, Measured& measured)
      : spans_(std::move(spans)), measured_(measured) {
    for (size_t i = 0; i < groups.size(); ++i) {
      for (const uint32_t number : groups[i].numbers) group_of_[number] = i;
    }
  }

  // The middle of what the ticks that come now tell of.
  void At(int64_t instant_ns) {
    const auto after = std::ranges::upper_bound(spans_, instant_ns, {},
                                                [](const PhaseSpan& s) { return s.when.from_ns; });
    span_ = nullptr;
    if (after != spans_.begin() && instant_ns < std::prev(after)->when.to_ns) {
      span_ = &*std::prev(after);
    }
  }

  void Add(const metric::Interval& interval) {
    if (span_ == nullptr) return;
    Columns* const columns = ColumnsOf(interval);
    if (columns == nullptr) return;
    Track& track = (*columns)[interval.column];
    const bool begins = track.span != span_ || interval.tick != track.tick + 1;
    if (track.span == nullptr || track.span->phase != span_->phase) {
      track.series = SeriesOf(group_of_.at(interval.Vm()), interval.Vcpu().index());
    }
    track.span = span_;
    track.tick = interval.tick;
    track.series->Add(interval, begins);
  }

 private:
  // One vCPU of one epoch.
  struct Track {
    Series* series = nullptr;
    const PhaseSpan* span = nullptr;
    uint64_t tick = 0;
  };
  using Columns = std::vector<Track>;

  // Null where the VM is none of those to measure.
  Columns* ColumnsOf(const metric::Interval& interval) {
    if (&interval.epoch == epoch_) return columns_;
    epoch_ = &interval.epoch;
    columns_ = nullptr;
    if (!group_of_.contains(interval.Vm())) return nullptr;
    const v1::VcpuSet& set = interval.epoch.set;
    Columns& columns = tracks_[epoch_];
    if (columns.empty()) {
      columns.resize(static_cast<size_t>(set.vcpus_size()));
      measured_.classifiers.emplace(reading::ClassifierOf(set));
      measured_.event_sets.insert(set.event_set());
      measured_.degraded = measured_.degraded || interval.epoch.IsDegraded();
    }
    columns_ = &columns;
    return columns_;
  }

  Series* SeriesOf(size_t group, uint32_t vcpu) {
    const auto [found, is_new] =
        measured_.series.try_emplace({.group = group, .vcpu = vcpu, .phase = span_->phase});
    if (is_new) {
      while (cells_each_ > Series::kFewestCells &&
             measured_.series.size() * cells_each_ > kMostCellsInAll) {
        cells_each_ /= 2;
        for (auto& [key, series] : measured_.series) series.Limit(cells_each_);
      }
      found->second.Limit(cells_each_);
    }
    return &found->second;
  }

  std::vector<PhaseSpan> spans_;  // in order
  Measured& measured_;
  std::map<uint32_t, size_t> group_of_;
  std::map<const metric::Epoch*, Columns> tracks_;
  const PhaseSpan* span_ = nullptr;
  const metric::Epoch* epoch_ = nullptr;  // of columns_
  Columns* columns_ = nullptr;
  size_t cells_each_ = Series::kMostCells;
};

std::vector<PhaseSpan> SpansOf(const check::Timetable& timetable,
                               const std::vector<std::optional<std::string>>& phases) {
  std::vector<PhaseSpan> spans;
  for (size_t i = 0; i < phases.size(); ++i) {
    if (!phases[i]) {
      constexpr int64_t kEver = std::numeric_limits<int64_t>::max();
      spans.push_back(
          {.when = {.from_ns = std::numeric_limits<int64_t>::min(), .to_ns = kEver}, .phase = i});
      continue;
    }
    for (const check::TimeRange& span : timetable.Spans(phases[i], 0)) {
      spans.push_back({.when = span, .phase = i});
    }
  }
  std::ranges::stable_sort(spans, {}, [](const PhaseSpan& s) { return s.when.from_ns; });
  return spans;
}

// Cells are never as long: 36 years, so that nothing made of it overflows.
constexpr int64_t kWidest_ns = int64_t{1} << 60;

}  // namespace

absl::StatusOr<Recording> Recording::Open(const std::string& path, std::string label) {
  auto input = reading::RepeatableInput::Open(path);
  if (!input.ok()) return input.status();
  Recording recording(*std::move(input), std::move(label));
  auto read = recording.input_.Read([&recording](const timeline::Entry& entry) {
    absl::Status added = recording.timetable_.Add(entry);
    if (added.ok()) return added;
    return absl::Status(added.code(), absl::StrCat(recording.Name(), ": ", added.message()));
  });
  if (!read.ok()) return read.status();
  recording.read_ = *std::move(read);
  const std::vector<timeline::Damage>& damages = recording.read_.damages;
  if (recording.read_.records == 0) {
    return absl::InvalidArgumentError(
        damages.empty()
            ? absl::StrCat(recording.Name(), ": holds no record")
            : absl::StrCat(recording.Name(),
                           ": nothing could be read: ", Plural(damages.size(), "damaged region"),
                           ", the first: ", damages.front().reason));
  }
  return recording;
}

std::vector<VmGroup> Recording::Groups() const {
  std::vector<VmGroup> groups;
  for (const auto& [number, vm] : timetable_.vms()) {
    const std::vector<check::TimeRange> windows = timetable_.SampledWindows(number);
    if (windows.empty()) continue;
    const v1::VmInstance& instance = vm.instance;
    const auto before = [&](const VmGroup& group) {
      return !instance.name().empty() && group.name == instance.name() &&
             std::ranges::all_of(group.numbers, [&](uint32_t other) {
               return check::Common(windows, timetable_.SampledWindows(other)).empty();
             });
    };
    const auto same = std::ranges::find_if(groups, before);
    if (same != groups.end()) {
      same->numbers.push_back(number);
      same->label = Printable(instance.name());  // without the PID of one of them
      continue;
    }
    groups.push_back({.label = check::LabelOf(timetable_, number),
                      .name = instance.name(),
                      .uuid = instance.uuid(),
                      .numbers = {number}});
  }
  return groups;
}

absl::StatusOr<Measured> Recording::Measure(
    const std::vector<VmGroup>& groups,
    const std::vector<std::optional<std::string>>& phases) const {
  Measured measured;
  Measuring measuring(groups, SpansOf(timetable_, phases), measured);
  metric::IntervalReader intervals;
  const auto read = input_.Read([&](const timeline::Entry& entry) {
    if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
      measuring.At(reading::PlaceOf(*tick));
    }
    return intervals.Add(entry, [&measuring](const metric::Interval& interval) {
      measuring.Add(interval);
      return absl::OkStatus();
    });
  });
  if (!read.ok()) return read.status();
  measured.unusable_ticks = intervals.unusable_ticks();
  return measured;
}

void Series::Add(const metric::Interval& interval, bool begins) {
  const int64_t length_ns = interval.delta.interval_ns;
  metric::Totals totals;
  totals.Add(interval);
  total_.Add(totals);
  length_ns_ += length_ns;
  ++ticks_;
  const bool fits = !begins && !cells_.empty() && cells_.back().length_ns + length_ns <= width_ns_;
  if (fits) {
    cells_.back().totals.Add(totals);
    cells_.back().length_ns += length_ns;
    return;
  }
  if (cells_.size() >= most_cells_) Fold();
  cells_.push_back({.totals = totals, .length_ns = length_ns, .begins = begins || cells_.empty()});
}

void Series::Limit(size_t most_cells) {
  most_cells_ = std::max(most_cells, kFewestCells);
  while (cells_.size() > most_cells_) Fold();
}

void Series::Fold() {
  // A little more than two ticks, as no tick is as long as another.
  const int64_t mean_ns = length_ns_ / static_cast<int64_t>(cells_.size());
  width_ns_ = std::min(kWidest_ns, std::max(2 * width_ns_, mean_ns / 4 * 9));
  const auto join = [this](bool over_breaks) {
    size_t kept = 0;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const bool second =
          i + 1 < cells_.size() && (over_breaks || !cells_[i + 1].begins) &&
          (over_breaks || cells_[i].length_ns + cells_[i + 1].length_ns <= width_ns_);
      Cell cell = cells_[i];
      if (second) {
        cell.totals.Add(cells_[i + 1].totals);
        cell.length_ns += cells_[i + 1].length_ns;
        ++i;
      }
      cells_[kept++] = cell;
    }
    cells_.resize(kept);
  };
  const size_t enough = cells_.size() * 3 / 4;
  join(false);
  // Breaks every other tick: what is left of them is not worth memory without bound.
  if (cells_.size() > enough) join(true);
}

}  // namespace vcpulse::compare
