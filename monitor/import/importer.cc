#include "monitor/import/importer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/import/epoch_sums.h"
#include "monitor/import/import_records.h"
#include "monitor/import/interval_window.h"
#include "monitor/import/intervals.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/replay/rejudge.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::importing {
namespace {

// Each is a set in the file and in memory.
constexpr uint64_t kMaxEpochs = 250'000;

// A damaged chunk costs so many ticks.
constexpr uint64_t kTicksPerChunk = 100;

core::VcpuSample AtInstant(int64_t instant_ns) {
  return {.read_begin_ns = instant_ns, .read_end_ns = instant_ns};
}

struct Vm {
  uint32_t number = 0;
  uint32_t epochs = 0;
  std::map<uint32_t, std::shared_ptr<Epoch>> current;  // by vCPU
};

// Turns intervals into records.
class Importer {
 public:
  Importer(const Table& table, const ImportOptions& options, const Survey& survey,
           timeline::RecordWriter& writer)
      : table_(table),
        options_(options),
        survey_(survey),
        writer_(writer),
        rejudge_(options.classifier, options.profile.values) {}

  // The records that stand before the first tick. `clock` is a row that knows the wall clock.
  void Begin(const std::optional<Row>& clock);
  // Released intervals, in order, until they are all in.
  absl::Status Add(std::vector<Interval> intervals);
  absl::StatusOr<ImportReport> End(uint64_t only_begin);

 private:
  absl::Status AddInstant(std::span<const Interval> at);
  // A sample that is ready to be written.
  struct Sampled {
    const Vm* vm = nullptr;
    std::shared_ptr<Epoch> epoch{};
    core::Sample sample{};
  };
  // The rows of one VM at one instant that have the same cells; opens their epoch where it is new.
  absl::StatusOr<Sampled> Take(std::span<const Interval> group);
  absl::Status Flush(int64_t mono_ns);
  std::shared_ptr<Epoch> Open(Vm& vm, std::span<const Interval> group);
  void AddSample(const Vm& vm, Epoch& epoch, core::Sample sample);

  const Row& RowOf(const Interval& interval) const { return table_.rows[interval.row]; }
  uint64_t TickOf(const Interval& interval) const {
    return survey_.by_tick() ? interval.instant : report_.ticks;
  }
  const EventGroups& GroupsOf(const Row& row);

  const Table& table_;
  const ImportOptions& options_;
  const Survey& survey_;
  timeline::RecordWriter& writer_;
  replay::Rejudge rejudge_;
  ImportReport report_;
  v1::ClockSnapshot clock_;                 // what the rows know of the wall clock
  std::map<uint32_t, Vm> vms_;              // by their places in the table
  std::map<uint32_t, EventGroups> groups_;  // by layout
  std::set<std::pair<uint32_t, uint32_t>> vcpus_;
};

void Importer::Begin(const std::optional<Row>& clock) {
  // With the numbers that the rows say, else as they first appear in the text.
  std::set<uint64_t> numbers;
  for (const VmIdentity& vm : table_.vms) numbers.insert(vm.number);
  const bool numbered = numbers.size() == table_.vms.size() && !numbers.contains(0) &&
                        *numbers.rbegin() <= std::numeric_limits<uint32_t>::max();
  uint32_t number = 0;
  for (const uint32_t place : survey_.vms) {
    ++number;
    vms_[place].number = numbered ? static_cast<uint32_t>(table_.vms[place].number) : number;
  }

  v1::TimelineRecord session;
  *session.mutable_session() = MakeSession(table_, options_, survey_.lengths.Median_ns());
  rejudge_.Take(session.session());
  writer_.Add(std::move(session), survey_.begin_ns);
  writer_.Add(replay::KeepProfile(options_.profile), survey_.begin_ns);
  if (!clock) return;
  clock_.set_mono_ns(static_cast<int64_t>(*clock->Value(Field::kT)));
  clock_.set_realtime_ns(static_cast<int64_t>(*clock->Value(Field::kWall)));
  v1::TimelineRecord record;
  *record.mutable_clock_snapshot() = clock_;
  writer_.Add(std::move(record), survey_.begin_ns);
}

const EventGroups& Importer::GroupsOf(const Row& row) {
  const auto [found, is_new] = groups_.try_emplace(row.layout);
  if (is_new) found->second = GroupEvents(table_, table_.LayoutOf(row));
  return found->second;
}

absl::Status Importer::Add(std::vector<Interval> intervals) {
  std::erase_if(intervals,
                [this](const Interval& interval) { return SaysNothing(table_, RowOf(interval)); });
  Prepare(table_, survey_, options_.max_hz, intervals);
  const std::span<const Interval> all = intervals;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && all[end].instant == all[begin].instant) ++end;
    ++report_.ticks;
    if (absl::Status status = AddInstant(all.subspan(begin, end - begin)); !status.ok()) {
      return status;
    }
    if (report_.ticks % kTicksPerChunk == 0) {
      if (absl::Status status = Flush(all[begin].end_ns); !status.ok()) return status;
    }
    begin = end;
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportReport> Importer::End(uint64_t only_begin) {
  report_.only_begin = only_begin;
  report_.says_nothing = survey_.says_nothing;
  report_.impossible = survey_.impossible;
  report_.first_impossible = survey_.first_impossible;
  report_.vms = vms_.size();
  report_.vcpus = vcpus_.size();
  v1::TimelineRecord record;
  v1::Summary& summary = *record.mutable_summary();
  summary.set_ticks(report_.ticks);
  summary.set_vcpu_samples(report_.intervals);
  summary.set_end_reason("import");
  writer_.Add(std::move(record), survey_.end_ns);
  if (absl::Status status = Flush(survey_.end_ns); !status.ok()) return status;
  return std::move(report_);
}

absl::Status Importer::Flush(int64_t mono_ns) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  if (clock_.realtime_ns() != 0) {
    clock.set_realtime_ns(clock_.realtime_ns() + mono_ns - clock_.mono_ns());
  }
  return writer_.Flush(clock);
}

absl::Status Importer::AddInstant(std::span<const Interval> at) {
  // In the order of their VMs and vCPUs; groups by their cells, in the order of their first vCPU.
  std::map<std::pair<uint32_t, Cells>, size_t> known;
  std::vector<std::vector<Interval>> groups;
  for (const Interval& interval : at) {
    const auto [group, is_new] =
        known.try_emplace({interval.vm, CellsOf(RowOf(interval))}, groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(interval);
  }
  // Epochs that begin have a sample where their first interval began: before those of this instant.
  std::vector<Sampled> samples;
  for (const std::vector<Interval>& group : groups) {
    absl::StatusOr<Sampled> sampled = Take(group);
    if (!sampled.ok()) return sampled.status();
    samples.push_back(*std::move(sampled));
  }
  for (Sampled& sampled : samples) {
    AddSample(*sampled.vm, *sampled.epoch, std::move(sampled.sample));
  }
  return absl::OkStatus();
}

absl::StatusOr<Importer::Sampled> Importer::Take(std::span<const Interval> group) {
  const auto known = vms_.find(group.front().vm);
  if (known == vms_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(table_.name, ": changed while it was read: import it again"));
  }
  Vm& vm = known->second;
  report_.intervals += group.size();
  core::Sample sample;
  std::shared_ptr<Epoch> epoch = vm.current[group.front().vcpu];
  if (!epoch || !Continue(table_, *epoch, group, TickOf(group.front()), sample)) {
    if (++report_.epochs > kMaxEpochs) {
      return absl::ResourceExhaustedError(
          absl::StrCat(table_.name, ": ", table_.unit, " ", RowOf(group.front()).number,
                       ": the intervals do not join, or the cells that are filled change too "
                       "often: more than ",
                       kMaxEpochs, " epochs; split it"));
    }
    epoch = Open(vm, group);
    Continue(table_, *epoch, group, TickOf(group.front()), sample);
  }
  return Sampled{.vm = &vm, .epoch = std::move(epoch), .sample = std::move(sample)};
}

std::shared_ptr<Epoch> Importer::Open(Vm& vm, std::span<const Interval> group) {
  auto epoch = std::make_shared<Epoch>(Epoch{.number = ++vm.epochs,
                                             .cells = CellsOf(RowOf(group.front())),
                                             .groups = &GroupsOf(RowOf(group.front())),
                                             .vcpus = {},
                                             .last = {}});
  int64_t begin_ns = group.front().begin_ns;
  core::Sample base;
  const uint64_t tick = TickOf(group.front());
  base.tick = tick > 0 ? tick - 1 : 0;
  base.further.resize(group.size() * (epoch->groups->groups.size() - 1));
  std::vector<const Row*> rows;
  for (const Interval& interval : group) {
    begin_ns = std::min(begin_ns, interval.begin_ns);
    const Row& row = RowOf(interval);
    rows.push_back(&row);
    epoch->vcpus.push_back(ThreadOf(row, interval.vcpu));
    core::VcpuSample& vcpu = base.vcpus.emplace_back(AtInstant(interval.begin_ns));
    vcpu.has_scheduler_times = Has(row.present, Field::kRunDelay);
    vcpus_.emplace(interval.vm, interval.vcpu);
    // Its old epoch ends, for all of its vCPUs.
    if (const std::shared_ptr<Epoch> old = vm.current[interval.vcpu]) {
      writer_.EndEpoch(vm.number, old->number);
      rejudge_.EndEpoch(vm.number, old->number);
      for (const VcpuThread& member : old->vcpus) {
        if (vm.current[member.vcpu] == old) vm.current[member.vcpu] = nullptr;
      }
    }
    vm.current[interval.vcpu] = epoch;
  }
  base.wake_ns = base.deadline_ns = begin_ns;

  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set = MakeVcpuSet(table_, *epoch->groups, rows, options_.max_hz.has_value());
  set.set_vm(vm.number);
  set.set_epoch(epoch->number);
  set.set_mono_ns(begin_ns);
  set.set_classifier(std::string(core::ToString(rejudge_.ClassifierOf(set))));
  for (const std::string& note : set.notes()) {
    if (std::ranges::find(report_.substitutions, note) == report_.substitutions.end()) {
      report_.substitutions.push_back(note);
    }
  }
  rejudge_.Take(set);
  writer_.Add(std::move(record), begin_ns);
  AddSample(vm, *epoch, std::move(base));
  return epoch;
}

void Importer::AddSample(const Vm& vm, Epoch& epoch, core::Sample sample) {
  const core::Sample previous = std::exchange(epoch.last, std::move(sample));
  const timeline::TickEntry tick{.vm = vm.number,
                                 .epoch = epoch.number,
                                 .sample = epoch.last,
                                 .verdicts = {},
                                 .previous = previous.vcpus.empty() ? nullptr : &previous};
  writer_.AddTick(vm.number, epoch.number, epoch.last, rejudge_.Judge(tick));
}

// Whether there is something to import.
absl::Status CheckFound(const Table& table, const Survey& survey) {
  if (survey.found == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(table.name, ": each vCPU has one row and none has dt_ns: no interval"));
  }
  if (survey.found == survey.says_nothing) {
    return absl::InvalidArgumentError(
        absl::StrCat(table.name, ": no row has a count or a time of its vCPU"));
  }
  return absl::OkStatus();
}

bool KnowsWallClock(const Row& row) { return row.Value(Field::kT) && row.Value(Field::kWall); }

}  // namespace

absl::StatusOr<ImportReport> ImportTable(const Table& table, const ImportOptions& options,
                                         timeline::RecordWriter& writer) {
  IntervalFinder finder(0);
  if (absl::Status status = finder.Take(table, 0); !status.ok()) return status;
  absl::StatusOr<std::vector<Interval>> all = finder.Release(table, true, false);
  if (!all.ok()) return all.status();
  Survey survey;
  survey.Add(table, *all);
  if (absl::Status status = CheckFound(table, survey); !status.ok()) return status;
  Importer importer(table, options, survey, writer);
  const auto clock = std::ranges::find_if(table.rows, KnowsWallClock);
  importer.Begin(clock == table.rows.end() ? std::nullopt : std::optional(*clock));
  if (absl::Status status = importer.Add(*std::move(all)); !status.ok()) return status;
  return importer.End(finder.only_begin());
}

absl::StatusOr<ImportReport> ImportRows(RowReader& rows, const ImportOptions& options,
                                        timeline::RecordWriter& writer, size_t window) {
  Survey survey;
  std::optional<Row> clock;
  bool turns_known = false;
  while (true) {
    survey = Survey();
    clock.reset();
    const absl::StatusOr<uint64_t> only_begin = ScanIntervals(
        rows, window, false,
        [&clock](std::span<const Row> batch) {
          const auto row = std::ranges::find_if(batch, KnowsWallClock);
          if (!clock && row != batch.end()) clock = *row;
        },
        [&](const std::vector<Interval>& intervals) {
          survey.Add(rows.table(), intervals);
          return absl::OkStatus();
        });
    if (absl::IsOutOfRange(only_begin.status()) && window < kMaxRows / 2) {
      window = std::min(8 * window, kMaxRows / 2);
      rows.Rewind();
      continue;
    }
    if (!only_begin.ok()) return only_begin.status();
    rows.Rewind();
    // Which events took turns decides what rows without counts mean, and only now it is known.
    const bool any_turns =
        std::ranges::any_of(rows.table().turns, [](uint32_t t) { return t > 0; });
    if (!any_turns || turns_known) break;
    turns_known = true;
  }
  if (absl::Status status = CheckFound(rows.table(), survey); !status.ok()) return status;
  Importer importer(rows.table(), options, survey, writer);
  importer.Begin(clock);
  const absl::StatusOr<uint64_t> only_begin = ScanIntervals(
      rows, window, survey.by_tick(), [](std::span<const Row>) {},
      [&importer](std::vector<Interval> intervals) { return importer.Add(std::move(intervals)); });
  if (!only_begin.ok()) return only_begin.status();
  return importer.End(*only_begin);
}

}  // namespace vcpulse::importing
