#include "monitor/rollup/row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "boost/json.hpp"
#include "monitor/core/verdict.h"

namespace vcpulse::rollup {
namespace {

using metric::Metric;

std::optional<std::string> TextIfAny(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

template <typename Number>
std::optional<int64_t> NumberIfAny(Number number) {
  if (number == 0) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string LabelsOf(const v1::Session& session) {
  std::string text;
  for (const v1::Label& label : session.labels()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", label.key(), "=", label.value());
  }
  return text;
}

// A damaged file may hold any counts.
int64_t AsInteger(uint64_t number) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(number, kMost));
}

// Of sums that are whole numbers (metric::Totals).
int64_t AsInteger(double number) {
  constexpr double kBeyond = 9.2e18;
  if (!(number < kBeyond)) return std::numeric_limits<int64_t>::max();
  return std::llround(number);
}

template <typename T>
Value OrNull(const std::optional<T>& value) {
  if (!value) return {};
  if constexpr (std::is_convertible_v<T, std::string>) {
    return *value;
  } else {
    return AsInteger(*value);
  }
}

Value OrNull(const std::optional<int64_t>& value) {
  if (!value) return {};
  return *value;
}

template <Metric kMetric>
Value Part(const Row& row) {
  return AsInteger(row.totals.Of(kMetric).part);
}

template <Metric kMetric>
Value Whole(const Row& row) {
  return AsInteger(row.totals.Of(kMetric).whole);
}

// Null where it was not measured in any interval.
template <Metric kMetric>
Value PartIfAny(const Row& row) {
  if (!(row.totals.Of(kMetric).whole > 0)) return {};
  return Part<kMetric>(row);
}

// Null where no hardware counter is read.
template <auto kOf>
Value IfCounted(const Row& row) {
  if (!row.subject->has_counters) return {};
  return kOf(row);
}

template <size_t kColumn>
Value Count(const Row& row) {
  return OrNull(row.counts[kColumn]);
}

// {"L1-dcache-load-misses":{"count":12,"time_enabled_ns":..,"time_running_ns":..}}
Value OtherCounts(const Row& row) {
  if (row.others.empty()) return {};
  boost::json::object all;
  for (const Subject::EventSum& sum : row.subject->events) {
    if (sum.column || !sum.event.counted) continue;
    const Row::Other& other = row.others[sum.other];
    boost::json::object& one = all[sum.event.name].emplace_object();
    one["count"] = other.count ? boost::json::value(AsInteger(*other.count)) : nullptr;
    one["time_enabled_ns"] = AsInteger(other.time_enabled_ns);
    one["time_running_ns"] = AsInteger(other.time_running_ns);
  }
  return boost::json::serialize(all);
}

constexpr auto kTable = std::to_array<Column>({
    {.name = "window_start_ns",
     .of = [](const Row& r) -> Value { return r.window_start_ns; },
     .help = "begin of the window, ns since 1970 (UTC)"},
    {.name = "window_ns",
     .of = [](const Row& r) -> Value { return r.window_ns; },
     .help = "its length"},
    {.name = "agent",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->agent); },
     .help = "agent id of the host; null where the recording has none"},
    {.name = "host",
     .type = Type::kText,
     .of = [](const Row& r) -> Value { return r.subject->host; },
     .help = "host name"},
    {.name = "labels",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->labels); },
     .help = "labels of the recording, key=value,key=value"},
    {.name = "boot_id",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->boot_id); },
     .help = "boot of the host: with vm_pid and vm_start_ticks it identifies the VM instance"},
    {.name = "kernel_release",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->kernel_release); },
     .help = "kernel of the host, as uname -r prints it"},
    {.name = "stream",
     .type = Type::kText,
     .of = [](const Row& r) -> Value { return r.subject->stream; },
     .help = "id of the recording, hexadecimal"},
    {.name = "vm",
     .of = [](const Row& r) -> Value { return int64_t{r.subject->vm}; },
     .help = "number of the VM in its recording"},
    {.name = "vm_name",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->vm_name); },
     .help = "name of the VM"},
    {.name = "vm_uuid",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->vm_uuid); },
     .help = "UUID of the VM"},
    {.name = "vm_pid",
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->vm_pid); },
     .help = "PID of its VMM"},
    {.name = "vm_start_ticks",
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->vm_start_ticks); },
     .help = "start time of that process, clock ticks after boot"},
    {.name = "vcpu",
     .of = [](const Row& r) -> Value { return int64_t{r.subject->vcpu}; },
     .help = "index of the vCPU"},
    {.name = "epoch",
     .of = [](const Row& r) -> Value { return int64_t{r.subject->epoch}; },
     .help = "number of the epoch of its VM; another epoch in a window is another row"},
    {.name = "classifier",
     .type = Type::kText,
     .of = [](const Row& r) -> Value { return r.subject->classifier; },
     .help = "classifier that judged it"},
    {.name = "profile",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->profile); },
     .help = "profile whose thresholds it used"},
    {.name = "tool_version",
     .type = Type::kText,
     .optional = true,
     .of = [](const Row& r) { return OrNull(r.subject->tool_version); },
     .help = "version of vcpulse that recorded it, and of its built-in profiles"},
    {.name = "ticks",
     .adds_up = true,
     .of = [](const Row& r) -> Value { return r.ticks; },
     .help = "intervals that end in the window"},
    {.name = "measured_ns",
     .adds_up = true,
     .of = [](const Row& r) -> Value { return AsInteger(r.totals.MeasuredNs()); },
     .help = "their length; what has no verdict is in none of the next four"},
    {.name = "halted_ns", .adds_up = true, .of = Part<Metric::kHalted>, .help = "thereof HALTED"},
    {.name = "spinning_ns",
     .adds_up = true,
     .of = Part<Metric::kSpinning>,
     .help = "thereof SPINNING"},
    {.name = "productive_ns",
     .adds_up = true,
     .of = Part<Metric::kProductive>,
     .help = "thereof PRODUCTIVE"},
    {.name = "unknown_ns",
     .adds_up = true,
     .of = Part<Metric::kUnknown>,
     .help = "thereof UNKNOWN"},
    {.name = "unknown_starved_ns",
     .adds_up = true,
     .of = [](const Row& r) -> Value { return r.unknown_starved_ns; },
     .help = "of UNKNOWN: it wanted to run and got no CPU"},
    {.name = "unknown_paused_ns",
     .adds_up = true,
     .of = [](const Row& r) -> Value { return r.unknown_paused_ns; },
     .help = "of UNKNOWN: the VM was paused"},
    {.name = "unknown_no_counters_ns",
     .adds_up = true,
     .of = [](const Row& r) -> Value { return AsInteger(r.totals.NoCountersNs()); },
     .help = "of UNKNOWN: it ran, and no hardware counter is read"},
    {.name = "starved_ns",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kStarved>,
     .help = "intervals, of any band, in which it waited for a CPU for over 10 %; null: not known"},
    {.name = "starved_known_ns",
     .adds_up = true,
     .of = Whole<Metric::kStarved>,
     .help = "intervals of which it is known whether it was starved"},
    {.name = "longest_spin_ns",
     .is_maximum = true,
     .of = [](const Row& r) -> Value { return r.longest_spin_ns; },
     .help = "longest time in one go that it was SPINNING, counted from its true begin"},
    {.name = "longest_starvation_ns",
     .optional = true,
     .is_maximum = true,
     .of = [](const Row& r) -> Value {
       if (!(r.totals.Of(Metric::kStarved).whole > 0)) return {};
       return r.longest_starvation_ns;
     },
     .help = "longest time in one go that it was starved, from its true begin; null: not known"},
    {.name = "gap_ns",
     .adds_up = true,
     .of = [](const Row& r) -> Value { return r.gap_ns; },
     .help = "time without samples between an interval and the one before it"},
    {.name = "run_ns",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kRun>,
     .help = "time on a CPU, guest or host code, as the scheduler says"},
    {.name = "run_delay_ns",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kRunDelay>,
     .help = "time runnable and waiting for a CPU"},
    {.name = "run_delay_max_ns",
     .optional = true,
     .is_maximum = true,
     .of = [](const Row& r) { return OrNull(r.run_delay_max_ns); },
     .help = "longest such wait in one interval"},
    {.name = "scheduled_ns",
     .adds_up = true,
     .of = Whole<Metric::kRunDelay>,
     .help = "intervals in which those two were read"},
    {.name = "guest_ns",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kResidency>,
     .help = "time in guest code (residency), rounded to ns in each interval"},
    {.name = "guest_known_ns",
     .adds_up = true,
     .of = Whole<Metric::kResidency>,
     .help = "intervals in which that is known"},
    {.name = "time_enabled_ns",
     .optional = true,
     .adds_up = true,
     .of = IfCounted<Whole<Metric::kRunning>>,
     .help = "time on a CPU with the counters enabled; null: no counter is read"},
    {.name = "time_running_ns",
     .optional = true,
     .adds_up = true,
     .of = IfCounted<Part<Metric::kRunning>>,
     .help = "thereof with the counters on the PMU"},
    {.name = "cycles",
     .optional = true,
     .adds_up = true,
     .of = Count<0>,
     .help = "guest cycles, as counted"},
    {.name = "instructions",
     .optional = true,
     .adds_up = true,
     .of = Count<1>,
     .help = "guest instructions"},
    {.name = "branches",
     .optional = true,
     .adds_up = true,
     .of = Count<2>,
     .help = "guest branches"},
    {.name = "branch_misses",
     .optional = true,
     .adds_up = true,
     .of = Count<3>,
     .help = "of those, mispredicted"},
    {.name = "cache_misses",
     .optional = true,
     .adds_up = true,
     .of = Count<4>,
     .help = "guest cache misses"},
    {.name = "ref_cycles",
     .optional = true,
     .adds_up = true,
     .of = Count<5>,
     .help = "guest reference cycles"},
    {.name = "pause",
     .optional = true,
     .adds_up = true,
     .of = Count<6>,
     .help = "PAUSE instructions"},
    {.name = "pause_cycles",
     .optional = true,
     .adds_up = true,
     .of = Count<7>,
     .help = "cycles in PAUSE"},
    {.name = "other_counts",
     .type = Type::kText,
     .optional = true,
     .of = OtherCounts,
     .help = "events beside these and those that take turns on the PMU: JSON, count and times by "
             "name"},
    {.name = "exits",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kExits>,
     .help = "exits to KVM, by the readings that came with these intervals"},
    {.name = "halt_exits",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kHaltExits>,
     .help = "of those, as the guest halted (HLT, WFI)"},
    {.name = "io_exits",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kIoExits>,
     .help = "accesses to emulated devices"},
    {.name = "migrations",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kMigrations>,
     .help = "times that its thread went to another CPU of the host"},
    {.name = "preemptions",
     .optional = true,
     .adds_up = true,
     .of = PartIfAny<Metric::kPreemptions>,
     .help = "times that another thread took its CPU"},
});

static_assert([] {
  size_t first = 0;
  while (kTable[first].name != importing::kEventColumns.front().column) ++first;
  for (size_t i = 0; i < importing::kEventColumns.size(); ++i) {
    if (kTable[first + i].name != importing::kEventColumns[i].column) return false;
  }
  return true;
}());

}  // namespace

Subject Subject::Of(const v1::Session& session, const metric::Epoch& epoch, size_t column) {
  const v1::VmInstance& instance = epoch.set.instance();
  const v1::Vcpu& vcpu = epoch.set.vcpus(static_cast<int>(column));
  Subject subject{
      .agent = TextIfAny(session.agent_id()),
      .host = session.host_name(),
      .stream = absl::BytesToHexString(session.stream_id()),
      .boot_id = TextIfAny(session.boot_id()),
      .kernel_release = TextIfAny(session.kernel_release()),
      .tool_version = TextIfAny(session.tool_version()),
      .labels = TextIfAny(LabelsOf(session)),
      .classifier = epoch.set.classifier().empty() ? "ipc-bands" : epoch.set.classifier(),
      .profile = TextIfAny(session.classifier().profile()),
      .vm = epoch.set.vm(),
      .vm_name = TextIfAny(instance.name()),
      .vm_uuid = TextIfAny(instance.uuid()),
      .vm_pid = NumberIfAny(instance.pid()),
      .vm_start_ticks = NumberIfAny(instance.start_time_ticks()),
      .epoch = epoch.set.epoch(),
      .vcpu = vcpu.index(),
      .has_counters = !epoch.IsDegraded()};
  std::array<bool, importing::kEventColumns.size()> taken{};
  for (const metric::EventPlace& event : epoch.events) {
    if (!event.counted) continue;
    EventSum sum{.event = event};
    const auto known = importing::EventColumnOf(event.name);
    if (known && !taken[*known] && event.group < std::max<size_t>(1, epoch.core_pmus)) {
      taken[*known] = true;
      sum.column = known;
    } else {
      sum.other = subject.others++;
    }
    subject.events.push_back(std::move(sum));
  }
  return subject;
}

void Row::Add(const metric::Interval& interval) {
  const int64_t length_ns = interval.delta.interval_ns;
  ++ticks;
  totals.Add(interval);
  if (interval.IsJudged()) {
    if (interval.verdict.rule == core::Rule::kStarved) unknown_starved_ns += length_ns;
    if (interval.verdict.rule == core::Rule::kPaused) unknown_paused_ns += length_ns;
  }
  if (interval.delta.run_ns && interval.delta.run_delay_ns) {
    run_delay_max_ns = std::max(run_delay_max_ns.value_or(0), *interval.delta.run_delay_ns);
  }
  others.resize(subject->others);
  for (const Subject::EventSum& sum : subject->events) {
    const auto counted = interval.CountOf(sum.event);
    std::optional<uint64_t>& count = sum.column ? counts[*sum.column] : others[sum.other].count;
    if (counted.count) count = count.value_or(0) + *counted.count;
    if (sum.column || sum.event.group >= interval.groups.size()) continue;
    const core::VcpuDelta& group =
        interval.InTurns(sum.event) ? interval.groups[sum.event.group] : interval.delta;
    others[sum.other].time_enabled_ns += group.time_enabled_ns;
    others[sum.other].time_running_ns += group.time_running_ns;
  }
}

std::span<const Column> Columns() { return kTable; }

}  // namespace vcpulse::rollup
