#include "monitor/metric/metric.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kvm/base/clock.h"

namespace vcpulse::metric {
namespace {

using core::Band;

double OneIf(bool yes) { return yes ? 1 : 0; }

Ratio InBand(Band band, const Interval& interval) {
  return {.part = OneIf(interval.verdict.band == band), .whole = OneIf(interval.IsJudged())};
}

double LengthNs(const Interval& interval) {
  return static_cast<double>(interval.delta.interval_ns);
}

// Of two events of the first group; on a hybrid host of all core PMUs together.
Ratio OfCounts(const Interval& interval, std::optional<size_t> part, std::optional<size_t> whole) {
  if (!part || !whole || interval.delta.counts[*whole] == 0) return {};
  return {.part = static_cast<double>(interval.delta.counts[*part]),
          .whole = static_cast<double>(interval.delta.counts[*whole])};
}

// What the scheduler says, where it says all of it.
Ratio OfSchedule(const Interval& interval, const std::optional<uint64_t>& part) {
  if (!interval.delta.run_ns || !interval.delta.run_delay_ns) return {};
  return {.part = static_cast<double>(*part), .whole = LengthNs(interval)};
}

Ratio Starved(const Interval& interval) {
  const std::optional<bool> starved = interval.Starved();
  return {.part = OneIf(starved.value_or(false)), .whole = OneIf(starved.has_value())};
}

Ratio Confidence(const Interval& interval) {
  const uint8_t percent = interval.verdict.confidence_pct;
  if (!interval.IsJudged() || percent == 0) return {};
  return {.part = percent / 100.0, .whole = 1};
}

Ratio Held(const Interval& interval) {
  const core::Verdict& verdict = interval.verdict;
  return {.part = OneIf(interval.IsJudged() && verdict.raw_band != verdict.band),
          .whole = OneIf(interval.IsJudged())};
}

Ratio Residency(const Interval& interval) {
  const std::optional<double> residency = interval.Residency();
  if (!residency) return {};
  return {.part = *residency, .whole = 1};
}

Ratio Running(const Interval& interval) {
  return {.part = static_cast<double>(interval.delta.time_running_ns),
          .whole = static_cast<double>(interval.delta.time_enabled_ns)};
}

Ratio GuestFrequency(const Interval& interval) {
  if (!interval.epoch.slots.cycles || interval.delta.time_running_ns == 0) return {};
  return {.part = static_cast<double>(interval.delta.counts[*interval.epoch.slots.cycles]),
          .whole = static_cast<double>(interval.delta.time_running_ns)};
}

// What a group counted, scaled to all of its time. Where it was never on the PMU nothing is known,
// and where its thread never ran there is nothing to count.
std::optional<double> Scaled(const Interval& interval, std::optional<size_t> slot) {
  if (!slot) return std::nullopt;
  const auto count = core::ScaledCount(interval.delta, *slot);
  if (!count && interval.delta.time_enabled_ns > 0) return std::nullopt;
  return std::round(count.value_or(0));
}

std::optional<double> RunDelayNs(const Interval& interval) {
  if (!interval.delta.run_delay_ns) return std::nullopt;
  return static_cast<double>(*interval.delta.run_delay_ns);
}

constexpr double kNsPerSecond = 1e9;

// Of readings, so many per second.
template <Statistic kStatistic>
Ratio PerSecond(const Interval& interval) {
  if (interval.statistics == nullptr) return {};
  const StatisticsDelta::Progress& read = interval.statistics->Of(kStatistic);
  return {.part = static_cast<double>(read.count),
          .whole = static_cast<double>(read.time_ns) / kNsPerSecond};
}

template <Statistic kStatistic>
std::optional<double> Read(const Interval& interval) {
  if (interval.statistics == nullptr) return std::nullopt;
  const StatisticsDelta::Progress& read = interval.statistics->Of(kStatistic);
  if (read.time_ns == 0) return std::nullopt;
  return static_cast<double>(read.count);
}

constexpr std::array<Info, kMetrics> kTable = {{
    {.metric = Metric::kHalted,
     .key = "halted",
     .label = "HALTED",
     .help = "share of the judged time in which it ran next to no guest code",
     .of = [](const Interval& i) { return InBand(Band::kHalted, i); },
     .by_time = true,
     .asked = true},
    {.metric = Metric::kSpinning,
     .key = "spinning",
     .label = "SPINNING",
     .help = "share of the judged time in which it ran and got nowhere",
     .of = [](const Interval& i) { return InBand(Band::kSpinning, i); },
     .by_time = true,
     .needs_counters = true,
     .asked = true},
    {.metric = Metric::kProductive,
     .key = "productive",
     .label = "PRODUCTIVE",
     .help = "share of the judged time in which it worked",
     .of = [](const Interval& i) { return InBand(Band::kProductive, i); },
     .by_time = true,
     .needs_counters = true,
     .asked = true},
    {.metric = Metric::kUnknown,
     .key = "unknown",
     .label = "UNKNOWN",
     .help = "share of the judged time that is none of these",
     .of = [](const Interval& i) { return InBand(Band::kUnknown, i); },
     .by_time = true,
     .needs_counters = true,
     .asked = true},
    {.metric = Metric::kStarved,
     .key = "starved",
     .report_key = "starved_share",
     .label = "starved",
     .help =
         "share of the judged time, where waiting was measured, in ticks in which it waited for "
         "a CPU for over 10 %",
     .of = Starved,
     .by_time = true,
     .asked = true,
     .counters = {{{.name = "vcpulse_vcpu_starved_seconds_total",
                    .help = "Time in which a vCPU wanted to run and mostly waited for a CPU of the "
                            "host; absent where waiting is not measured.",
                    .of = [](const Interval& i) -> std::optional<double> {
                      const std::optional<bool> starved = i.Starved();
                      if (!starved) return std::nullopt;
                      return *starved ? LengthNs(i) : 0;
                    },
                    .unit = kNsPerSecond}}}},
    {.metric = Metric::kConfidence,
     .key = "confidence",
     .report_key = "confidence",
     .label = "confidence",
     .help = "mean confidence of the verdicts that give one",
     .of = Confidence,
     .by_time = true},
    {.metric = Metric::kHeld,
     .key = "held_share",
     .report_key = "held_share",
     .label = "held",
     .help = "share of the judged time in which the band was held against that of the window alone",
     .of = Held,
     .by_time = true},
    {.metric = Metric::kRun,
     .key = "run",
     .report_key = "run_share",
     .label = "run",
     .help = "time on a CPU, guest or host code, per time measured",
     .of = [](const Interval& i) { return OfSchedule(i, i.delta.run_ns); },
     .asked = true},
    {.metric = Metric::kRunDelay,
     .key = "run_delay",
     .report_key = "run_delay_share",
     .label = "run-delay",
     .help = "time runnable and waiting for a CPU per time measured",
     .of = [](const Interval& i) { return OfSchedule(i, i.delta.run_delay_ns); },
     .asked = true,
     .counters = {{{.name = "vcpulse_vcpu_run_delay_seconds_total",
                    .help = "Time for which a vCPU's thread waited for a CPU of the host, as the "
                            "scheduler says.",
                    .of = RunDelayNs,
                    .unit = kNsPerSecond}}}},
    {.metric = Metric::kResidency,
     .key = "residency",
     .report_key = "residency",
     .label = "residency",
     .help = "share of the time in guest code",
     .of = Residency,
     .by_time = true,
     .needs_counters = true,
     .asked = true,
     .row_decimals = 9},
    {.metric = Metric::kIpc,
     .key = "ipc",
     .label = "IPC",
     .unit = Unit::kNumber,
     .unit_text = "instructions per cycle",
     .help = "instructions per cycle of guest code",
     .of =
         [](const Interval& i) {
           return OfCounts(i, i.epoch.slots.instructions, i.epoch.slots.cycles);
         },
     .needs_counters = true,
     .asked = true,
     .row_decimals = 9,
     .counters = {{{.name = "vcpulse_vcpu_guest_cycles_total",
                    .help = "Core cycles that a vCPU spent in guest code; absent where they are "
                            "not counted.",
                    .of = [](const Interval& i) { return Scaled(i, i.epoch.slots.cycles); }},
                   {.name = "vcpulse_vcpu_guest_instructions_total",
                    .help = "Instructions that a vCPU ran in guest code; absent where they are not "
                            "counted.",
                    .of =
                        [](const Interval& i) { return Scaled(i, i.epoch.slots.instructions); }}}}},
    {.metric = Metric::kRunning,
     .key = "running_share",
     .report_key = "running_share",
     .label = "counted",
     .help = "time that its counters were on the PMU per time that its thread was on a CPU; below "
             "1 counts are estimates",
     .of = Running},
    {.metric = Metric::kCacheMissRate,
     .key = "cache_miss_rate",
     .report_key = "cache_miss_rate",
     .label = "cache-misses/instr",
     .unit = Unit::kNumber,
     .unit_text = "cache misses per instruction",
     .help = "cache misses per instruction of guest code",
     .of =
         [](const Interval& i) {
           return OfCounts(i, i.epoch.slots.cache_misses, i.epoch.slots.instructions);
         },
     .needs_counters = true,
     .row_decimals = 12,
     .decimals = 4},
    {.metric = Metric::kGhz,
     .key = "ghz",
     .report_key = "ghz",
     .label = "GHz",
     .unit = Unit::kNumber,
     .unit_text = "GHz",
     .help =
         "guest cycles per time that its counters were on the PMU: the frequency at which guest "
         "code ran, a lower bound where the thread ran host code too",
     .of = GuestFrequency,
     .needs_counters = true,
     .asked = true,
     .row_decimals = 9,
     .counters = {{{.name = "vcpulse_vcpu_counted_seconds_total",
                    .help = "Time on a CPU, in guest or host code, while guest cycles were "
                            "counted: cycles divided by it give the frequency, HALTED time "
                            "included.",
                    .of = [](const Interval& i) -> std::optional<double> {
                      if (!Scaled(i, i.epoch.slots.cycles)) return std::nullopt;
                      return static_cast<double>(i.delta.time_enabled_ns);
                    },
                    .unit = kNsPerSecond}}}},
    {.metric = Metric::kBranchMissRate,
     .key = "branch_miss_rate",
     .report_key = "branch_miss_rate",
     .label = "misses/branch",
     .unit = Unit::kNumber,
     .unit_text = "misses per branch",
     .help = "mispredicted branches of guest code, per branch",
     .of =
         [](const Interval& i) {
           return OfCounts(i, i.epoch.slots.branch_misses, i.epoch.slots.branches);
         },
     .needs_counters = true,
     .asked = true,
     .row_decimals = 9,
     .decimals = 4,
     .counters =
         {{{.name = "vcpulse_vcpu_guest_branches_total",
            .help = "Branches that a vCPU ran in guest code; absent where they are not "
                    "counted.",
            .of = [](const Interval& i) { return Scaled(i, i.epoch.slots.branches); }},
           {.name = "vcpulse_vcpu_guest_branch_misses_total",
            .help = "Of those, mispredicted; absent where they are not counted.",
            .of = [](const Interval& i) { return Scaled(i, i.epoch.slots.branch_misses); }}}}},
    {.metric = Metric::kMigrations,
     .key = "migrations",
     .report_key = "migrations",
     .label = "migrations/s",
     .unit = Unit::kNumber,
     .unit_text = "migrations per second",
     .help = "times that its thread went to another CPU of the host, per second",
     .of = PerSecond<Statistic::kMigrations>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_migrations_total",
                    .help = "Times that a vCPU's thread went to another CPU of the host.",
                    .of = Read<Statistic::kMigrations>}}}},
    {.metric = Metric::kPreemptions,
     .key = "preemptions",
     .report_key = "preemptions",
     .label = "preempted/s",
     .unit = Unit::kNumber,
     .unit_text = "preemptions per second",
     .help = "times that another thread took the CPU of its own, per second",
     .of = PerSecond<Statistic::kPreemptions>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_preemptions_total",
                    .help = "Times that another thread took the CPU of a vCPU's thread.",
                    .of = Read<Statistic::kPreemptions>}}}},
    {.metric = Metric::kExits,
     .key = "exits",
     .report_key = "exits",
     .label = "exits/s",
     .unit = Unit::kNumber,
     .unit_text = "exits per second",
     .help = "times that it left guest code for KVM, per second",
     .of = PerSecond<Statistic::kExits>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_exits_total",
                    .help = "Times that a vCPU left guest code for KVM.",
                    .of = Read<Statistic::kExits>}}}},
    {.metric = Metric::kHaltExits,
     .key = "halt_exits",
     .report_key = "halt_exits",
     .label = "halt-exits/s",
     .unit = Unit::kNumber,
     .unit_text = "halt exits per second",
     .help = "times that the guest halted it (HLT, WFI), per second",
     .of = PerSecond<Statistic::kHaltExits>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_halt_exits_total",
                    .help = "Times that the guest halted a vCPU (HLT, WFI).",
                    .of = Read<Statistic::kHaltExits>}}}},
    {.metric = Metric::kIoExits,
     .key = "io_exits",
     .report_key = "io_exits",
     .label = "I/O-exits/s",
     .unit = Unit::kNumber,
     .unit_text = "I/O exits per second",
     .help = "accesses to emulated devices (ports, MMIO), per second",
     .of = PerSecond<Statistic::kIoExits>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_io_exits_total",
                    .help = "Accesses of a vCPU to emulated devices (ports, MMIO).",
                    .of = Read<Statistic::kIoExits>}}}},
    {.metric = Metric::kSignalExits,
     .key = "signal_exits",
     .report_key = "signal_exits",
     .label = "signal-exits/s",
     .unit = Unit::kNumber,
     .unit_text = "signal exits per second",
     .help = "times that a signal took it out of guest code, per second",
     .of = PerSecond<Statistic::kSignalExits>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_signal_exits_total",
                    .help = "Times that a signal took a vCPU out of guest code.",
                    .of = Read<Statistic::kSignalExits>}}}},
    {.metric = Metric::kHypercalls,
     .key = "hypercalls",
     .report_key = "hypercalls",
     .label = "hypercalls/s",
     .unit = Unit::kNumber,
     .unit_text = "hypercalls per second",
     .help = "hypercalls of the guest, per second",
     .of = PerSecond<Statistic::kHypercalls>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_hypercalls_total",
                    .help = "Hypercalls of the guest on a vCPU.",
                    .of = Read<Statistic::kHypercalls>}}}},
    {.metric = Metric::kWfeExits,
     .key = "wfe_exits",
     .report_key = "wfe_exits",
     .label = "WFE-exits/s",
     .unit = Unit::kNumber,
     .unit_text = "WFE exits per second",
     .help = "times that a WFE of the guest left to KVM (Arm: a wait for a lock, where CPUs are "
             "contended), per second",
     .of = PerSecond<Statistic::kWfeExits>,
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_wfe_exits_total",
                    .help = "Times that a WFE of the guest left to KVM (Arm).",
                    .of = Read<Statistic::kWfeExits>}}}},
    {.metric = Metric::kHaltPoll,
     .key = "halt_poll",
     .report_key = "halt_poll",
     .label = "halt-poll-ms/s",
     .unit = Unit::kNumber,
     .unit_text = "ms per second",
     .help = "time in which KVM polled for it after a halt, before it slept, ms per second",
     .of =
         [](const Interval& i) {
           Ratio polled = PerSecond<Statistic::kHaltPollNs>(i);
           polled.part /= kNsPerSecond / 1e3;
           return polled;
         },
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1,
     .counters = {{{.name = "vcpulse_vcpu_halt_poll_seconds_total",
                    .help = "Time in which KVM polled for a vCPU after a halt, before it slept.",
                    .of = Read<Statistic::kHaltPollNs>,
                    .unit = kNsPerSecond}}}},
    {.metric = Metric::kNumaRemote,
     .key = "numa_remote",
     .report_key = "numa_remote",
     .label = "NUMA-remote%",
     .unit = Unit::kNumber,
     .unit_text = "% of the readings",
     .help =
         "readings at which it was on another NUMA node than its home, the node on which it was "
         "most often until then, %",
     .of = [](const Interval& i) -> Ratio {
       if (i.statistics == nullptr || !i.statistics->is_remote) return {};
       return {.part = *i.statistics->is_remote ? 100.0 : 0.0, .whole = 1};
     },
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1},
    {.metric = Metric::kSmtShared,
     .key = "smt_shared",
     .report_key = "smt_shared",
     .label = "SMT-shared%",
     .unit = Unit::kNumber,
     .unit_text = "% of the readings",
     .help = "readings, of those at which it ran, at which another vCPU of the recording ran on "
             "another thread of its core, %",
     .of = [](const Interval& i) -> Ratio {
       if (i.statistics == nullptr || !i.statistics->neighbours) return {};
       return {.part = i.statistics->neighbours->empty() ? 0.0 : 100.0, .whole = 1};
     },
     .of_readings = true,
     .asked = true,
     .row_decimals = 3,
     .decimals = 1},
}};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].metric) != i) return false;
  }
  return true;
}
static_assert(IsInOrder());

}  // namespace

std::optional<double> Ratio::Value() const {
  const double value = part / whole;
  if (!(whole > 0) || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::span<const Info, kMetrics> Table() { return kTable; }

const Info& InfoOf(Metric metric) { return kTable[static_cast<size_t>(metric)]; }

std::optional<Metric> FindMetric(std::string_view key) {
  const auto found = std::ranges::find(kTable, key, &Info::key);
  if (found == kTable.end()) return std::nullopt;
  return found->metric;
}

std::optional<double> ValueOf(Metric metric, const Interval& interval) {
  return InfoOf(metric).of(interval).Value();
}

std::optional<double> ValueOf(Metric metric, const StatisticsDelta& read) {
  if (!InfoOf(metric).of_readings) return std::nullopt;
  // What else an interval has is none of theirs.
  const Epoch epoch;
  const core::VcpuSample sample;
  const core::VcpuDelta delta;
  const ResidencyScale scale;
  return ValueOf(metric, Interval{.epoch = epoch,
                                  .before = sample,
                                  .now = sample,
                                  .delta = delta,
                                  .residency_scale = scale,
                                  .statistics = &read});
}

void Totals::Add(const Interval& interval) {
  const double length_ns = LengthNs(interval);
  measured_ns_ += length_ns;
  if (interval.IsJudged() && interval.verdict.rule == core::Rule::kNoCounters) {
    no_counters_ns_ += length_ns;
  }
  const bool busy = IsBusy(interval);
  // Unrolled, so that the functions of the table are inlined: over a quarter of a report's time.
  const auto add = [&]<size_t i>() {
    constexpr const Info& kInfo = kTable[i];
    if (kInfo.OfBusyTime() && !busy) return;
    if constexpr (kInfo.by_time) {
      Ratio of_time{};
      of_time.Add(kInfo.of(interval), length_ns);
      // Of a band it is all or nothing, of residency some share.
      ratios_[i].Add({.part = std::rint(of_time.part), .whole = of_time.whole}, 1);
    } else {
      ratios_[i].Add(kInfo.of(interval), 1);
    }
  };
  [&add]<size_t... i>(std::index_sequence<i...>) {
    (add.template operator()<i>(), ...);
  }(std::make_index_sequence<kMetrics>());
}

void Totals::Add(const Totals& other, double share) {
  measured_ns_ += other.measured_ns_ * share;
  no_counters_ns_ += other.no_counters_ns_ * share;
  for (size_t i = 0; i < kMetrics; ++i) ratios_[i].Add(other.ratios_[i], share);
}

}  // namespace vcpulse::metric
