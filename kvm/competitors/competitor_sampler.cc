#include "kvm/competitors/competitor_sampler.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/competitors/wait_ledger.h"
#include "kvm/counters/scheduler_times.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/host.h"
#include "kvm/proc_tree.h"
#include "kvm/tracing/sample_records.h"
#include "kvm/tracing/sample_ring.h"
#include "kvm/tracing/tracepoint_format.h"

namespace vcpulse::kvm {
namespace {

// A vCPU that is moved about more than this in a second has other troubles.
constexpr size_t kMostCpus = 8;
constexpr size_t kRingPages = 128;        // some 5,000 switches in a tenth of a second
constexpr uint64_t kLooks_hz = 50;        // who runs, where nothing is switched
constexpr uint64_t kLate_ns = 1'000'000;  // records of one instant are all there after this

// Bits of prev_state that say why a thread does not run; none: it could have run on
// (include/linux/sched.h, TASK_REPORT; above them is the mark of a preemption).
constexpr uint64_t kNotRunnable = 0xff;

perf_event_attr SchedulerAttr(uint32_t type, uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = type;
  attr.config = config;
  attr.sample_type = kRawSampleType;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

// What the scheduler did, as its tracepoints record it.
struct SchedulerFormats {
  TracepointFormat on_switch;
  TracepointFormat on_wakeup;

  static absl::StatusOr<SchedulerFormats> Read(const std::string& root) {
    SchedulerFormats formats;
    for (auto [format, name] : {std::pair(&formats.on_switch, "sched_switch"),
                                std::pair(&formats.on_wakeup, "sched_wakeup")}) {
      auto read = ReadTracepointFormat(root, "sched", name);
      if (!read.ok()) return read.status();
      *format = *std::move(read);
    }
    for (const char* field : {"prev_pid", "prev_state", "next_pid"}) {
      if (formats.on_switch.Find(field) != nullptr) continue;
      return absl::UnimplementedError(absl::StrCat("sched:sched_switch has no field ", field));
    }
    return formats;
  }
};

// The events of one CPU, in one ring.
struct WatchedCpu {
  int cpu = 0;
  SampleRing switches;  // has the ring
  SampleRing wakeups;
  SampleRing looks;
};

// Something to tell the ledger.
struct SchedulerEvent {
  uint64_t at_ns = 0;
  std::function<void(WaitLedger&)> tell;
};

class SchedulerSampler final : public CompetitorSampler {
 public:
  SchedulerSampler(PerfEvents& perf, const Vm& vm, const std::string& root,
                   SchedulerFormats formats)
      : perf_(perf),
        tree_(root),
        vm_(vm),
        vcpu_(vm.vcpus.front()),
        formats_(std::move(formats)),
        ledger_(vcpu_.tid) {
    auto scheduling = ThreadScheduling::Open(root, vm.pid, vcpu_.tid);
    if (scheduling.ok()) scheduling_ = std::move(scheduling.value);
    run_delay_ns_ = RunDelay();
  }

  // Looks at the thread, and watches the CPU that it is on.
  absl::Status Follow() {
    const auto stat = tree_.ThreadStat(vm_.pid, vcpu_.tid);
    if (!stat || stat->Exited() || stat->start_time_ticks != vcpu_.start_time_ticks) {
      return absl::NotFoundError(absl::StrCat("the thread of vCPU ", vcpu_.index, " has ended"));
    }
    const int cpu = stat->cpu;
    const bool is_watched = std::ranges::any_of(
        watched_, [cpu](const WatchedCpu& watched) { return watched.cpu == cpu; });
    if (!is_watched && watched_.size() < kMostCpus) {
      if (absl::Status status = Watch(cpu); !status.ok()) return status;
    }
    if (stat->state == 'R') {
      const auto now_ns = static_cast<uint64_t>(MonotonicNow_ns());
      events_.push_back(
          {now_ns, [now_ns, cpu](WaitLedger& ledger) { ledger.Runnable(now_ns, cpu); }});
    }
    return absl::OkStatus();
  }

  absl::Status Collect() override {
    absl::Status status = Take();
    Tell(static_cast<uint64_t>(MonotonicNow_ns()) - kLate_ns);
    status.Update(Follow());
    return status;
  }

  WaitAccount Stop() override {
    for (const WatchedCpu& watched : watched_) {
      for (const SampleRing* ring : {&watched.switches, &watched.wakeups, &watched.looks}) {
        static_cast<void>(ring->Disable());  // it ends with its descriptor at the latest
      }
    }
    const auto end_ns = static_cast<uint64_t>(MonotonicNow_ns());
    static_cast<void>(Take());
    Tell(UINT64_MAX);
    ledger_.End(end_ns);
    return Account();
  }

 private:
  absl::Status Watch(int cpu) {
    WatchedCpu watched{.cpu = cpu};
    perf_event_attr attr = SchedulerAttr(PERF_TYPE_TRACEPOINT, formats_.on_switch.id);
    attr.sample_period = 1;
    auto ring = SampleRing::OpenOnCpu(perf_, attr, cpu);
    if (!ring.ok()) return Refused(ring.error, "sched:sched_switch", cpu);
    watched.switches = std::move(ring.value);
    if (const int error = watched.switches.Map(kRingPages); error != 0) {
      return absl::ErrnoToStatus(error, "no memory for the scheduler's records");
    }
    attr.config = formats_.on_wakeup.id;
    ring = SampleRing::OpenOnCpu(perf_, attr, cpu);
    if (!ring.ok()) return Refused(ring.error, "sched:sched_wakeup", cpu);
    watched.wakeups = std::move(ring.value);
    int error = watched.wakeups.SetFilter(absl::StrCat("pid == ", vcpu_.tid));
    attr = SchedulerAttr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    attr.freq = 1;
    attr.sample_freq = kLooks_hz;
    ring = SampleRing::OpenOnCpu(perf_, attr, cpu);
    if (!ring.ok()) return Refused(ring.error, "cpu-clock", cpu);
    watched.looks = std::move(ring.value);
    for (const SampleRing* other : {&watched.wakeups, &watched.looks}) {
      if (error == 0) error = other->WriteTo(watched.switches);
    }
    for (const SampleRing* one : {&watched.switches, &watched.wakeups, &watched.looks}) {
      if (error == 0) error = one->Enable();
    }
    if (error != 0) return absl::ErrnoToStatus(error, "watching the scheduler");
    watched_.push_back(std::move(watched));
    return absl::OkStatus();
  }

  static absl::Status Refused(int error, std::string_view event, int cpu) {
    return absl::ErrnoToStatus(error,
                               absl::StrCat(std::string(event), " of all threads on CPU ", cpu,
                                            " cannot be opened (needs root or CAP_PERFMON)"));
  }

  // Makes events of what the rings have.
  absl::Status Take() {
    bool whole = true;
    for (WatchedCpu& watched : watched_) {
      uint64_t missed = 0;
      RingRecords into;
      into.lost = [&](uint64_t lost) { missed += lost; };
      into.raw = [&](const RawSample& sample) {
        if (std::exchange(missed, 0) != 0) AddMissed(sample.time_ns, watched.cpu);
        Add(sample, watched.cpu);
      };
      watched.switches.Take([&](std::span<const uint8_t> records) {
        whole = ReadRecords(records, true, into) && whole;
      });
      lost_ += missed;
      if (missed != 0) AddMissed(static_cast<uint64_t>(MonotonicNow_ns()), watched.cpu);
    }
    return whole ? absl::OkStatus() : absl::DataLossError("the kernel's records make no sense");
  }

  void AddMissed(uint64_t at_ns, int cpu) {
    events_.push_back({at_ns, [at_ns, cpu](WaitLedger& ledger) { ledger.Missed(at_ns, cpu); }});
  }

  void Add(const RawSample& sample, int cpu) {
    const uint64_t at_ns = sample.time_ns;
    const std::span<const uint8_t> record = sample.record;
    const auto field = [record](const TracepointFormat& format, std::string_view name) {
      return ReadField(record, format.Find(name));
    };
    // Each record of a tracepoint begins with its id.
    const auto id =
        record.size() > sizeof(uint32_t) ? field(formats_.on_switch, "common_type") : std::nullopt;
    if (id == formats_.on_switch.id) {
      const auto prev = field(formats_.on_switch, "prev_pid");
      const auto state = field(formats_.on_switch, "prev_state");
      const auto next = field(formats_.on_switch, "next_pid");
      if (!prev || !state || !next) return;
      const auto prev_tid = static_cast<pid_t>(*prev);
      const auto next_tid = static_cast<pid_t>(*next);
      Name(prev_tid, ReadText(record, formats_.on_switch.Find("prev_comm")));
      Name(next_tid, ReadText(record, formats_.on_switch.Find("next_comm")));
      const bool waits = (*state & kNotRunnable) == 0;
      events_.push_back({at_ns, [=](WaitLedger& ledger) {
                           ledger.Switched(at_ns, cpu, prev_tid, waits, next_tid);
                         }});
    } else if (id == formats_.on_wakeup.id) {
      const auto woken = field(formats_.on_wakeup, "pid");
      const auto target = field(formats_.on_wakeup, "target_cpu");
      if (!woken || static_cast<pid_t>(*woken) != vcpu_.tid) return;
      const int target_cpu = target ? static_cast<int>(*target) : cpu;
      events_.push_back({at_ns, [=](WaitLedger& ledger) { ledger.Woken(at_ns, target_cpu); }});
    } else if (!id) {
      events_.push_back(
          {at_ns, [=, tid = sample.tid](WaitLedger& ledger) { ledger.Runs(at_ns, cpu, tid); }});
    }
  }

  void Name(pid_t tid, std::string_view name) {
    if (!name.empty()) names_.try_emplace(tid, name);
  }

  // Tells the ledger what happened before `until_ns`, of all CPUs in the order of time.
  void Tell(uint64_t until_ns) {
    std::ranges::stable_sort(events_, {}, &SchedulerEvent::at_ns);
    size_t told = 0;
    for (; told < events_.size() && events_[told].at_ns < until_ns; ++told) {
      events_[told].tell(ledger_);
    }
    events_.erase(events_.begin(), events_.begin() + static_cast<ptrdiff_t>(told));
  }

  std::optional<uint64_t> RunDelay() const {
    if (!scheduling_) return std::nullopt;
    const auto times = scheduling_->Read();
    if (!times.ok()) return std::nullopt;
    return times.value.run_delay_ns;
  }

  WaitAccount Account() const {
    WaitAccount account{
        .waited_ns = ledger_.unseen_ns(), .unseen_ns = ledger_.unseen_ns(), .lost = lost_};
    const auto run_delay_ns = RunDelay();
    if (run_delay_ns && run_delay_ns_) account.run_delay_ns = *run_delay_ns - *run_delay_ns_;
    for (const WatchedCpu& watched : watched_) account.cpus.push_back(watched.cpu);
    std::ranges::sort(account.cpus);
    for (const auto& [tid, ns] : ledger_.waited_ns()) {
      account.waited_ns += ns;
      account.competitors.push_back({.tid = tid, .ns = ns});
    }
    std::ranges::stable_sort(account.competitors, std::greater(), &Competitor::ns);
    if (account.competitors.size() > kMostCompetitors) {
      account.competitors.resize(kMostCompetitors);
    }
    for (Competitor& one : account.competitors) Identify(one);
    return account;
  }

  void Identify(Competitor& one) const {
    if (one.tid == 0) return;
    if (const auto name = names_.find(one.tid); name != names_.end()) {
      one.thread_name = CleanLabel(name->second);
    } else {
      one.thread_name = CleanLabel(tree_.ProcessName(one.tid));  // of any thread's TID
    }
    const auto pid = tree_.ThreadGroup(one.tid);
    if (!pid) return;
    one.pid = *pid;
    if (*pid != one.tid) one.process_name = CleanLabel(tree_.ProcessName(*pid));
    if (!RunsKnownVmm(tree_, *pid)) return;
    if (const auto vm = IdentifyVm(tree_, *pid)) one.vm = vm->name;
  }

  PerfEvents& perf_;
  const ProcTree tree_;
  const Vm vm_;
  const Vcpu vcpu_;
  const SchedulerFormats formats_;
  std::optional<ThreadScheduling> scheduling_;
  std::optional<uint64_t> run_delay_ns_;  // when it began
  std::vector<WatchedCpu> watched_;
  std::vector<SchedulerEvent> events_;  // that the ledger was not told yet
  std::map<pid_t, std::string> names_;
  WaitLedger ledger_;
  uint64_t lost_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompetitorSampler>> CompetitorSampler::Open(
    PerfEvents& perf, const Vm& vm, const std::string& root) {
  auto formats = SchedulerFormats::Read(root);
  if (!formats.ok()) return formats.status();
  auto sampler = std::make_unique<SchedulerSampler>(perf, vm, root, *std::move(formats));
  if (absl::Status status = sampler->Follow(); !status.ok()) return status;
  return sampler;
}

}  // namespace vcpulse::kvm
