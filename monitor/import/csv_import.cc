#include "monitor/import/csv_import.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/import/import_records.h"
#include "monitor/import/intervals.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/replay/rejudge.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::csv {
namespace {

// Each is a set in the file and in memory.
constexpr uint64_t kMaxEpochs = 250'000;

// How far an interval may begin from the end of the one before.
constexpr int64_t kSlack_ns = 100'000;
constexpr int64_t kSlackShare = 100;  // one of so many parts of the interval

// Which cells must be the same within an epoch: all but the instants, which samples carry.
FieldSet EpochCells(const FieldSet& present) {
  FieldSet cells = present;
  cells.reset(static_cast<size_t>(Field::kT));
  cells.reset(static_cast<size_t>(Field::kDt));
  cells.reset(static_cast<size_t>(Field::kVcpu));
  return cells;
}

// Nothing in the row was measured over its interval: a state is that of an instant, and a wait says
// nothing of what ran.
bool SaysNothing(const CsvRow& row) {
  return !row.Value(Field::kTimeEnabled) && !row.Value(Field::kTimeRunning) &&
         !row.Value(Field::kRun) && CountedFields(row.present).empty();
}

bool Joins(int64_t last_end_ns, const Interval& next) {
  const int64_t slack = std::max(kSlack_ns, next.Length_ns() / kSlackShare);
  const int64_t off = next.begin_ns - last_end_ns;
  return off <= slack && off >= -slack;
}

// Adds to a sum; false where it would pass 2^64.
bool AddTo(uint64_t& sum, uint64_t value) { return !__builtin_add_overflow(sum, value, &sum); }

core::VcpuSample AtInstant(int64_t instant_ns) {
  return {.read_begin_ns = instant_ns, .read_end_ns = instant_ns};
}

// One epoch while it goes on.
struct Epoch {
  uint32_t number = 0;
  FieldSet cells;
  std::vector<uint32_t> vcpus;
  core::Sample last;
};

struct Vm {
  uint32_t number = 0;
  uint32_t epochs = 0;
  std::map<uint32_t, std::shared_ptr<Epoch>> current;  // by vCPU
};

// Turns intervals into records.
class Importer {
 public:
  Importer(const CsvTable& table, const ImportOptions& options, timeline::RecordWriter& writer)
      : table_(table),
        options_(options),
        writer_(writer),
        rejudge_(options.classifier, options.profile.values) {}

  absl::StatusOr<ImportReport> Run(const Intervals& intervals);

 private:
  void Begin(const Intervals& intervals);
  absl::Status AddInstant(std::span<const Interval> at);
  // The rows of one VM at one instant that have the same cells.
  absl::Status AddGroup(std::span<const Interval> group);
  // `epoch` as it is after these rows; false where they do not continue it.
  bool Continue(const Epoch& epoch, std::span<const Interval> group, core::Sample& sample) const;
  // Adds one row to the sums of its vCPU; false where one would pass 2^64.
  bool AddRow(const Interval& interval, core::VcpuSample& sample) const;
  std::shared_ptr<Epoch> Open(Vm& vm, std::span<const Interval> group);
  void AddSample(const Vm& vm, Epoch& epoch, core::Sample sample);
  void End(const Intervals& intervals);

  const FieldSet& PresentIn(const Interval& interval) const {
    return table_.rows[interval.row].present;
  }

  const CsvTable& table_;
  const ImportOptions& options_;
  timeline::RecordWriter& writer_;
  replay::Rejudge rejudge_;
  ImportReport report_;
  std::map<uint32_t, Vm> vms_;  // by their names' places in texts
  std::set<std::pair<uint32_t, uint32_t>> vcpus_;
};

void Importer::Begin(const Intervals& intervals) {
  // Numbered as they first appear in the text.
  for (const Interval& interval : intervals.all) vms_.try_emplace(interval.vm);
  uint32_t number = 0;
  for (auto& [name, vm] : vms_) vm.number = ++number;

  const int64_t begin_ns = intervals.all.front().begin_ns;
  v1::TimelineRecord session;
  *session.mutable_session() = MakeSession(table_, options_, intervals.Shortest_ns());
  rejudge_.Take(session.session());
  writer_.Add(std::move(session), begin_ns);
  writer_.Add(replay::KeepProfile(options_.profile), begin_ns);
}

void Importer::End(const Intervals& intervals) {
  report_.only_begin = intervals.only_begin;
  report_.vms = vms_.size();
  report_.vcpus = vcpus_.size();
  v1::TimelineRecord record;
  v1::Summary& summary = *record.mutable_summary();
  summary.set_ticks(report_.ticks);
  summary.set_vcpu_samples(report_.intervals);
  summary.set_end_reason("import");
  writer_.Add(std::move(record), intervals.all.back().end_ns);
}

absl::StatusOr<ImportReport> Importer::Run(const Intervals& intervals) {
  if (intervals.all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(table_.name, ": each vCPU has one row and none has dt_ns: no interval"));
  }
  Begin(intervals);
  const std::span<const Interval> all = intervals.all;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && all[end].end_ns == all[begin].end_ns) ++end;
    ++report_.ticks;
    if (absl::Status status = AddInstant(all.subspan(begin, end - begin)); !status.ok()) {
      return status;
    }
    begin = end;
  }
  End(intervals);
  const v1::ClockSnapshot clock = [&] {
    v1::ClockSnapshot snapshot;
    snapshot.set_mono_ns(all.back().end_ns);
    return snapshot;
  }();
  if (absl::Status status = writer_.Flush(clock); !status.ok()) return status;
  return std::move(report_);
}

absl::Status Importer::AddInstant(std::span<const Interval> at) {
  // In the order of their VMs and vCPUs; groups by their cells, in the order of their first vCPU.
  std::vector<std::pair<std::pair<uint32_t, unsigned long>, std::vector<Interval>>> groups;
  for (const Interval& interval : at) {
    const std::pair key(interval.vm, EpochCells(PresentIn(interval)).to_ulong());
    // Rows come VM by VM: a group of another VM ends the search.
    auto group = std::find_if(groups.rbegin(), groups.rend(), [&](const auto& known) {
      return known.first == key || known.first.first != key.first;
    });
    if (group == groups.rend() || group->first != key) {
      groups.emplace_back(key, std::vector<Interval>());
      group = groups.rbegin();
    }
    group->second.push_back(interval);
  }
  for (const auto& [key, group] : groups) {
    if (absl::Status status = AddGroup(group); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Importer::AddGroup(std::span<const Interval> group) {
  Vm& vm = vms_.at(group.front().vm);
  report_.intervals += group.size();
  core::Sample sample;
  std::shared_ptr<Epoch> epoch = vm.current[group.front().vcpu];
  if (!epoch || !Continue(*epoch, group, sample)) {
    if (++report_.epochs > kMaxEpochs) {
      return absl::ResourceExhaustedError(
          absl::StrCat(table_.name, ": row ", table_.rows[group.front().row].number,
                       ": the intervals do not join, or the cells that are filled change too "
                       "often: more than ",
                       kMaxEpochs, " epochs; split it"));
    }
    epoch = Open(vm, group);
    Continue(*epoch, group, sample);
  }
  AddSample(vm, *epoch, std::move(sample));
  return absl::OkStatus();
}

bool Importer::Continue(const Epoch& epoch, std::span<const Interval> group,
                        core::Sample& sample) const {
  if (epoch.cells != EpochCells(PresentIn(group.front()))) return false;
  const bool same_vcpus = std::ranges::equal(epoch.vcpus, group, {}, {}, &Interval::vcpu);
  if (!same_vcpus) return false;
  sample = epoch.last;
  sample.tick = report_.ticks;
  sample.wake_ns = sample.deadline_ns = group.front().end_ns;
  for (size_t i = 0; i < group.size(); ++i) {
    core::VcpuSample& vcpu = sample.vcpus[i];
    if (!Joins(vcpu.read_end_ns, group[i]) || !AddRow(group[i], vcpu)) return false;
  }
  return true;
}

bool Importer::AddRow(const Interval& interval, core::VcpuSample& sample) const {
  const CsvRow& row = table_.rows[interval.row];
  sample.read_begin_ns = sample.read_end_ns = interval.end_ns;
  sample.state = row.state;
  bool fits = AddTo(sample.time_enabled_ns, interval.time_enabled_ns) &&
              AddTo(sample.time_running_ns, interval.time_running_ns);
  size_t slot = 0;
  for (const Field field : CountedFields(row.present)) {
    fits = AddTo(sample.counts[slot++], *row.Value(field)) && fits;
  }
  const std::optional<uint64_t> run_delay = row.Value(Field::kRunDelay);
  sample.has_scheduler_times = run_delay.has_value();
  if (run_delay) {
    const uint64_t run = row.Value(Field::kRun).value_or(interval.time_enabled_ns);
    fits = AddTo(sample.run_ns, run) && AddTo(sample.run_delay_ns, *run_delay) && fits;
  }
  return fits;
}

std::shared_ptr<Epoch> Importer::Open(Vm& vm, std::span<const Interval> group) {
  auto epoch = std::make_shared<Epoch>(
      Epoch{.number = ++vm.epochs, .cells = EpochCells(PresentIn(group.front()))});
  int64_t begin_ns = group.front().begin_ns;
  core::Sample base;
  base.tick = report_.ticks - 1;
  for (const Interval& interval : group) {
    begin_ns = std::min(begin_ns, interval.begin_ns);
    epoch->vcpus.push_back(interval.vcpu);
    core::VcpuSample& vcpu = base.vcpus.emplace_back(AtInstant(interval.begin_ns));
    vcpu.has_scheduler_times = epoch->cells[static_cast<size_t>(Field::kRunDelay)];
    vcpus_.emplace(interval.vm, interval.vcpu);
    // Its old epoch ends, for all of its vCPUs.
    if (const std::shared_ptr<Epoch> old = vm.current[interval.vcpu]) {
      writer_.EndEpoch(vm.number, old->number);
      rejudge_.EndEpoch(vm.number, old->number);
      for (const uint32_t member : old->vcpus) {
        if (vm.current[member] == old) vm.current[member] = nullptr;
      }
    }
    vm.current[interval.vcpu] = epoch;
  }
  base.wake_ns = base.deadline_ns = begin_ns;

  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set = MakeVcpuSet(table_, table_.texts[group.front().vm], PresentIn(group.front()), epoch->vcpus,
                    options_.max_hz.has_value());
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

}  // namespace

absl::StatusOr<ImportReport> ImportCsv(const CsvTable& table, const ImportOptions& options,
                                       timeline::RecordWriter& writer) {
  absl::StatusOr<Intervals> intervals = FindIntervals(table, options.max_hz);
  if (!intervals.ok()) return intervals.status();
  const bool any_interval = !intervals->all.empty();
  const uint64_t says_nothing = std::erase_if(intervals->all, [&table](const Interval& interval) {
    return SaysNothing(table.rows[interval.row]);
  });
  if (any_interval && intervals->all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(table.name, ": no row has a count or a time of its vCPU"));
  }
  absl::StatusOr<ImportReport> report = Importer(table, options, writer).Run(*intervals);
  if (report.ok()) report->says_nothing = says_nothing;
  return report;
}

}  // namespace vcpulse::csv
