#include "tests/accuracy/labelled_series.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace vcpulse::accuracy {
namespace {

constexpr double kTick_ns = 100e6;
constexpr int kTicks = 24;
constexpr int kIdleTicks = 40;
constexpr int kPhaseTicks = 20;
constexpr int kPhases = 6;

// Host time that each timer tick of the guest costs outside of it (exits, wake-ups).
constexpr double kHostPerTick_ns = 3'000;
constexpr double kHostPerWakeUp_ns = 12'000;

// Where no condition says otherwise: what a distribution's kernel has.
constexpr double kTimerHz = 250;

struct Condition {
  std::string name;
  double timer_hz = kTimerHz;
  bool shared = false;         // another thread has its CPU for about half of the time
  double running_share = 1.0;  // of the time enabled, with the group on the PMU
};

const std::vector<Condition>& Conditions() {
  static const std::vector<Condition> conditions = {
      {.name = "plain"},
      {.name = "timer-1000", .timer_hz = 1000},
      {.name = "shared-cpu", .shared = true},
      {.name = "multiplexed-50", .running_share = 0.5},
      {.name = "multiplexed-25", .running_share = 0.25},
  };
  return conditions;
}

// A vCPU that is sampled every 100 ms or so.
class Vcpu {
 public:
  Vcpu(const CpuModel& cpu, const std::string& name, const std::string& condition)
      : cpu_(cpu), random_(std::string(cpu.name) + "/" + name + "/" + condition) {
    series_.name = name + "/" + condition;
    series_.condition = condition;
  }

  RandomSource& random() { return random_; }
  LabelledSeries Take() { return std::move(series_); }

  // A tick in which `first` has `share` of the time that there is work, and `second` the rest.
  void Work(const Condition& condition, RunningLoop& first, double share, RunningLoop* second,
            double busy, Label label, const std::string& loop) {
    LabelledRow row = NewRow(label, loop);
    const auto dt = static_cast<double>(row.dt_ns);
    double enabled = dt * busy * random_.Uniform(0.985, 0.9995);
    if (condition.shared) {
      const double got = enabled * random_.Uniform(0.4, 0.6);
      row.run_delay_ns = static_cast<uint64_t>(enabled - got);
      enabled = got;
    }
    const double ticks = condition.timer_hz * enabled * 1e-9;
    const double guest_seconds = (enabled * 0.998 - ticks * kHostPerTick_ns) * 1e-9;
    const Counts timer = TimerTicks(ticks, cpu_, random_);
    const double left = std::max(0.0, guest_seconds - timer.cycles / cpu_.core_hz);
    row.counts = timer;
    row.counts += first.Run(left * share);
    if (second != nullptr) row.counts += second->Run(left * (1 - share));
    Finish(condition, enabled, row);
  }

  // A tick in which the guest only serves its timer. `polling`: the host polls before it blocks.
  void Idle(const Condition& condition, bool polling, const std::string& loop) {
    LabelledRow row = NewRow(Label::kHalted, loop);
    const double ticks = condition.timer_hz * static_cast<double>(row.dt_ns) * 1e-9;
    row.counts = TimerTicksOfIdleGuest(ticks, cpu_, random_);
    const double guest = row.counts.cycles / cpu_.core_hz * 1e9;
    const double polled_ns = polling ? random_.Uniform(150e3, 200e3) : 0;
    const double enabled = guest + ticks * (kHostPerWakeUp_ns + polled_ns);
    Finish(condition, enabled, row);
  }

  // A tick in which nothing ran.
  void Sleep(const std::string& loop) {
    LabelledRow row = NewRow(Label::kHalted, loop);
    Finish({}, 0, row);
  }

 private:
  LabelledRow NewRow(Label label, const std::string& loop) {
    const auto dt = static_cast<uint64_t>(kTick_ns + random_.Uniform(-60e3, 60e3));
    now_ns_ += dt;
    return {.t_ns = now_ns_, .dt_ns = dt, .counts = {}, .label = label, .loop = loop};
  }

  void Finish(const Condition& condition, double enabled_ns, LabelledRow& row) {
    double running_ns = enabled_ns;
    if (condition.running_share < 1) {
      running_ns *= condition.running_share * random_.Around1(0.03);
      // A part of the tick stands for all of it, but is not all of it.
      row.counts *= enabled_ns > 0 ? running_ns / enabled_ns * random_.Around1(0.01) : 0;
    }
    row.time_enabled_ns = static_cast<uint64_t>(enabled_ns);
    row.time_running_ns = static_cast<uint64_t>(running_ns);
    // As `vcpulse record` does: the state is read where hardly anything ran.
    row.blocked = row.label == Label::kHalted && enabled_ns < 0.10 * static_cast<double>(row.dt_ns);
    series_.rows.push_back(std::move(row));
  }

  const CpuModel& cpu_;
  RandomSource random_;
  uint64_t now_ns_ = 0;
  LabelledSeries series_;
};

LabelledSeries LoopSeries(const CpuModel& cpu, const Loop& loop, const Condition& condition) {
  Vcpu vcpu(cpu, loop.name, condition.name);
  RunningLoop running(loop, cpu, vcpu.random());
  for (int i = 0; i < kTicks; ++i) {
    const double busy = vcpu.random().Uniform(loop.busy_from, loop.busy_to);
    vcpu.Work(condition, running, 1, nullptr, busy, loop.label, loop.name);
  }
  return vcpu.Take();
}

LabelledSeries IdleSeries(const CpuModel& cpu, const std::string& name, Condition condition,
                          double timer_hz, bool polling) {
  condition.timer_hz = timer_hz;
  Vcpu vcpu(cpu, name, condition.name);
  for (int i = 0; i < kIdleTicks; ++i) vcpu.Idle(condition, polling, name);
  return vcpu.Take();
}

LabelledSeries SleepSeries(const CpuModel& cpu) {
  Vcpu vcpu(cpu, "deep-idle", "plain");
  for (int i = 0; i < kIdleTicks; ++i) vcpu.Sleep("deep-idle");
  return vcpu.Take();
}

LabelledSeries MixtureSeries(const CpuModel& cpu, const Loop& spin, const Loop& work, int percent) {
  const std::string name = spin.name + "+" + work.name;
  Vcpu vcpu(cpu, name, "spin-" + std::to_string(percent));
  RunningLoop spinning(spin, cpu, vcpu.random());
  RunningLoop working(work, cpu, vcpu.random());
  for (int i = 0; i < kTicks; ++i) {
    vcpu.Work(Conditions().front(), spinning, percent / 100.0, &working, 1, Label::kMixed, name);
  }
  return vcpu.Take();
}

// Work, spin and halt in turn. `split`: a change happens within a tick, which is then mixed.
LabelledSeries PhaseSeries(const CpuModel& cpu, const Loop& spin, const Loop& work, bool split) {
  const Condition& condition = Conditions().front();
  Vcpu vcpu(cpu, "phases-" + spin.name, split ? "split" : "aligned");
  RunningLoop spinning(spin, cpu, vcpu.random());
  RunningLoop working(work, cpu, vcpu.random());
  for (int phase = 0; phase < kPhases; ++phase) {
    for (int i = 0; i < kPhaseTicks; ++i) {
      const bool changes = split && phase > 0 && i == 0;
      const double before = changes ? vcpu.random().Uniform(0.1, 0.9) : 0;
      if (phase % 3 == 0) {
        // Before it, nothing ran.
        vcpu.Work(condition, working, 1, nullptr, 1 - before,
                  changes ? Label::kMixed : Label::kProductive, changes ? "change" : work.name);
      } else if (phase % 3 == 1) {
        vcpu.Work(condition, spinning, 1 - before, changes ? &working : nullptr, 1,
                  changes ? Label::kMixed : Label::kSpinning, changes ? "change" : spin.name);
      } else if (changes) {
        vcpu.Work(condition, spinning, 1, nullptr, before, Label::kMixed, "change");
      } else {
        vcpu.Idle(condition, false, "halted-250");
      }
    }
  }
  return vcpu.Take();
}

std::string Integer(double value) { return std::to_string(static_cast<uint64_t>(value)); }

}  // namespace

std::vector<LabelledSeries> LabelledSet(const CpuModel& cpu) {
  std::vector<LabelledSeries> set;
  const std::vector<Loop> spins = SpinsOf(cpu);
  const std::vector<Loop> productive = ProductiveLoopsOf(cpu);
  for (const std::vector<Loop>* loops : {&spins, &productive}) {
    for (const Loop& loop : *loops) {
      for (const Condition& condition : Conditions()) {
        set.push_back(LoopSeries(cpu, loop, condition));
      }
    }
  }
  for (const Condition& condition : {Conditions()[0], Conditions()[3]}) {
    for (const int hz : {100, 250, 1000}) {
      set.push_back(IdleSeries(cpu, "halted-" + std::to_string(hz), condition, hz, false));
    }
    set.push_back(IdleSeries(cpu, "halt-polling", condition, 1000, true));
  }
  set.push_back(SleepSeries(cpu));

  const Loop& work = Named(productive, "compile");
  for (const char* name : {cpu.IsArm() ? "isb-spin" : "pause-spin-4", "bare-spin"}) {
    const Loop& spin = Named(spins, name);
    for (const int percent : {10, 30, 50, 70, 90}) {
      set.push_back(MixtureSeries(cpu, spin, work, percent));
    }
    for (const bool split : {false, true}) set.push_back(PhaseSeries(cpu, spin, work, split));
  }
  return set;
}

std::vector<LabelledSeries> HeldApartSet(const CpuModel& cpu) {
  std::vector<LabelledSeries> set;
  for (const Loop& loop : HeldApartLoopsOf(cpu)) {
    for (const Condition& condition : Conditions()) {
      set.push_back(LoopSeries(cpu, loop, condition));
    }
  }
  return set;
}

std::vector<LabelledSeries> BlindSpotSet(const CpuModel& cpu) {
  std::vector<LabelledSeries> set;
  for (const Loop& loop : BlindSpotsOf(cpu)) {
    set.push_back(LoopSeries(cpu, loop, Conditions().front()));
  }
  // Half of each tick waits by giving its CPU away in the guest, which is work for its kernel.
  Loop yielding = Named(ProductiveLoopsOf(cpu), "compile");
  yielding.name = "yield-spin-half-work";
  yielding.label = Label::kSpinning;
  yielding.ipc = 1.0;
  yielding.branch_misses = 5;
  yielding.cache_misses = {.last_level = 0.5, .l2 = 5, .l1d = 15};
  set.push_back(LoopSeries(cpu, yielding, Conditions().front()));
  return set;
}

std::string ToCsv(const CpuModel& cpu, const std::vector<LabelledSeries>& set) {
  std::string text =
      "t_ns,dt_ns,vm,vcpu,cycles,instructions,branches,branch_misses,cache_misses,"
      "L1-dcache-load-misses,";
  if (cpu.tsc_hz) text += "ref_cycles,";
  if (cpu.pause == PauseEvent::kInstructions) text += "pause,";
  if (cpu.pause == PauseEvent::kCycles) text += "pause_cycles,";
  text += "time_enabled_ns,time_running_ns,run_ns,run_delay_ns,state,label,loop,condition\n";
  for (const LabelledSeries& series : set) {
    for (const LabelledRow& row : series.rows) {
      const Counts& counts = row.counts;
      std::vector<std::string> cells = {std::to_string(row.t_ns), std::to_string(row.dt_ns),
                                        series.name, "0"};
      for (const double count : {counts.cycles, counts.instructions, counts.branches,
                                 counts.branch_misses, counts.cache_misses, counts.l1d_misses}) {
        cells.push_back(Integer(count));
      }
      if (cpu.tsc_hz) cells.push_back(Integer(counts.ref_cycles));
      if (cpu.pause == PauseEvent::kInstructions) cells.push_back(Integer(counts.pauses));
      if (cpu.pause == PauseEvent::kCycles) {
        cells.push_back(Integer(counts.pauses * cpu.pause_cycles));
      }
      for (const uint64_t time :
           {row.time_enabled_ns, row.time_running_ns, row.time_enabled_ns, row.run_delay_ns}) {
        cells.push_back(std::to_string(time));
      }
      cells.emplace_back(row.blocked ? "S" : "");
      cells.emplace_back(ToString(row.label));
      cells.push_back(row.loop);
      cells.push_back(series.condition);
      for (size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + cells[i];
      text += '\n';
    }
  }
  return text;
}

}  // namespace vcpulse::accuracy
