#include "kvm/competitors/competitor_sampler.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/competitors/scheduler_events.h"
#include "kvm/competitors/wait_ledger.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/scheduler_times.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/events/pmu.h"
#include "kvm/proc_files.h"
#include "kvm/proc_tree.h"
#include "kvm/tracing/sample_records.h"
#include "kvm/tracing/sample_ring.h"
#include "kvm/tracing/tracepoint_format.h"

namespace vcpulse::kvm {
namespace {

// A vCPU that is moved about more than this in a second has other troubles.
constexpr size_t kMostCpus = 8;
constexpr size_t kCpuPages = 1024;  // some 35,000 switches in a tenth of a second
// A wake-up is recorded on the CPU of whoever wakes it: that may be any. On larger hosts those of
// further CPUs are not seen.
constexpr size_t kMostWakers = 128;
constexpr size_t kWakerPages = 16;        // some 1,000 wake-ups of the thread
constexpr size_t kThreadPages = 128;      // some 16,000 of the thread itself
constexpr uint64_t kLooks_hz = 50;        // who runs, where nothing is switched
constexpr uint64_t kLate_ns = 1'000'000;  // records of one instant are all there after this
constexpr int64_t kFollow_ns = 100'000'000;
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO (include/linux/proc_ns.h)

perf_event_attr SchedulerAttr(uint32_t type, uint64_t config, uint64_t sample_type) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = type;
  attr.config = config;
  attr.sample_type = sample_type;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

absl::Status Refused(int error, std::string_view event, const std::string& of) {
  const bool lacks_rights = error == EACCES || error == EPERM;
  return absl::ErrnoToStatus(error,
                             absl::StrCat(std::string(event), " of ", of, " cannot be opened",
                                          lacks_rights ? " (needs root or CAP_PERFMON)" : ""));
}

absl::StatusOr<SchedulerRecords> ReadFormats(const std::string& root) {
  const auto on_switch = ReadTracepointFormat(root, "sched", "sched_switch");
  if (!on_switch.ok()) return on_switch.status();
  const auto on_wakeup = ReadTracepointFormat(root, "sched", "sched_wakeup");
  if (!on_wakeup.ok()) return on_wakeup.status();
  return SchedulerRecords::From(*on_switch, *on_wakeup);
}

// Tracepoints tell TIDs of the host's first namespace.
bool SeesTheHostsTids(const std::string& root) {
  struct stat info{};
  const bool known = ::stat(absl::StrCat(root, "/proc/self/ns/pid").c_str(), &info) == 0;
  return !known || info.st_ino == kFirstPidNamespace;
}

// The events of one CPU, in one ring.
struct WatchedCpu {
  int cpu = 0;
  SampleRing switches;  // has the ring
  SampleRing looks;
};

// The wake-ups of the thread that this CPU makes.
struct Waker {
  int cpu = 0;
  SampleRing wakeups;
};

class SchedulerSampler final : public CompetitorSampler {
  using Kind = SchedulerEvent::Kind;

 public:
  SchedulerSampler(PerfEvents& perf, const Vm& vm, const std::string& root,
                   SchedulerRecords records)
      : perf_(perf),
        root_(root),
        tree_(root),
        vm_(vm),
        vcpu_(vm.vcpus.front()),
        records_(std::move(records)),
        ledger_(vcpu_.tid) {
    auto scheduling = ThreadScheduling::Open(root, vm.pid, vcpu_.tid);
    if (scheduling.ok()) scheduling_ = std::move(scheduling.value);
    run_delay_ns_ = RunDelay();
  }

  absl::Status Start() {
    perf_event_attr attr =
        SchedulerAttr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, kSwitchSampleType);
    attr.context_switch = 1;
    attr.sample_id_all = 1;
    auto ring = SampleRing::Open(perf_, attr, vcpu_.tid);
    if (!ring.ok()) return Refused(ring.error, "the switches", absl::StrCat("TID ", vcpu_.tid));
    thread_ = std::move(ring.value);
    int error = thread_.Map(kThreadPages);
    if (error == 0) error = thread_.Enable();
    if (error != 0) return absl::ErrnoToStatus(error, "watching the switches of the thread");
    absl::Status status = WatchWakers();
    status.Update(Follow());
    return status;
  }

  absl::Status Collect() override {
    const int64_t now_ns = MonotonicNow_ns();
    absl::Status status = Take();
    Tell(static_cast<uint64_t>(now_ns) - kLate_ns);
    if (now_ns < follow_at_ns_) return status;
    follow_at_ns_ = now_ns + kFollow_ns;
    status.Update(Follow());
    return status;
  }

  WaitAccount Stop() override {
    static_cast<void>(thread_.Disable());  // each ends with its descriptor at the latest
    for (const Waker& waker : wakers_) static_cast<void>(waker.wakeups.Disable());
    for (const WatchedCpu& watched : watched_) {
      static_cast<void>(watched.switches.Disable());
      static_cast<void>(watched.looks.Disable());
    }
    const auto end_ns = static_cast<uint64_t>(MonotonicNow_ns());
    static_cast<void>(Take());
    Tell(UINT64_MAX);
    ledger_.End(end_ns);
    return Account();
  }

 private:
  // Looks at the thread, and watches the CPU that it is on.
  absl::Status Follow() {
    auto now_ns = static_cast<uint64_t>(MonotonicNow_ns());
    auto stat = tree_.ThreadStat(vm_.pid, vcpu_.tid);
    const auto is_new = [&] {
      return std::ranges::find(watched_, stat->cpu, &WatchedCpu::cpu) == watched_.end();
    };
    if (IsTheVcpus(stat) && is_new() && watched_.size() < kMostCpus) {
      if (absl::Status status = Watch(stat->cpu); !status.ok()) return status;
      now_ns = static_cast<uint64_t>(MonotonicNow_ns());
      stat = tree_.ThreadStat(vm_.pid, vcpu_.tid);
    }
    if (!IsTheVcpus(stat)) {
      return absl::NotFoundError(absl::StrCat("the thread of vCPU ", vcpu_.index, " has ended"));
    }
    if (stat->state == 'R') {
      events_.push_back({.at_ns = now_ns, .kind = Kind::kRunnable, .cpu = stat->cpu});
    }
    return absl::OkStatus();
  }

  // Where descriptors or memory run out, the wake-ups of further CPUs are not seen.
  absl::Status WatchWakers() {
    const auto text = ReadSmallFile(absl::StrCat(root_, "/sys/devices/system/cpu/online"));
    const auto cpus =
        text ? ParseCpuList(std::string_view(*text).substr(0, text->find('\n'))) : std::nullopt;
    if (!cpus) return absl::UnavailableError("which CPUs are online cannot be read");
    perf_event_attr attr =
        SchedulerAttr(PERF_TYPE_TRACEPOINT, records_.wakeup_id(), kRawSampleType);
    attr.sample_period = 1;
    for (const int cpu : *cpus) {
      if (wakers_.size() == kMostWakers) break;
      auto ring = SampleRing::OpenOnCpu(perf_, attr, cpu);
      if (MeansShortage(ring.error)) break;
      if (!ring.ok()) {
        return Refused(ring.error, "sched:sched_wakeup", absl::StrCat("all threads on CPU ", cpu));
      }
      Waker waker{.cpu = cpu, .wakeups = std::move(ring.value)};
      int error = waker.wakeups.SetFilter(absl::StrCat("pid == ", vcpu_.tid));
      if (error == 0) error = waker.wakeups.Map(kWakerPages);
      if (error == 0) error = waker.wakeups.Enable();
      if (MeansShortage(error)) break;
      if (error != 0) return absl::ErrnoToStatus(error, "watching the wake-ups of the thread");
      wakers_.push_back(std::move(waker));
    }
    return absl::OkStatus();
  }

  bool IsTheVcpus(const std::optional<TaskStat>& stat) const {
    return stat && !stat->Exited() && stat->start_time_ticks == vcpu_.start_time_ticks;
  }

  absl::Status Watch(int cpu) {
    const std::string of = absl::StrCat("all threads on CPU ", cpu);
    WatchedCpu watched{.cpu = cpu};
    perf_event_attr attr =
        SchedulerAttr(PERF_TYPE_TRACEPOINT, records_.switch_id(), kRawSampleType);
    attr.sample_period = 1;
    auto ring = SampleRing::OpenOnCpu(perf_, attr, cpu);
    if (!ring.ok()) return Refused(ring.error, "sched:sched_switch", of);
    watched.switches = std::move(ring.value);
    if (const int error = watched.switches.Map(kCpuPages); error != 0) {
      return absl::ErrnoToStatus(error, "no memory for the scheduler's records");
    }
    attr = SchedulerAttr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, kRawSampleType);
    attr.freq = 1;
    attr.sample_freq = kLooks_hz;
    ring = SampleRing::OpenOnCpu(perf_, attr, cpu);
    if (!ring.ok()) return Refused(ring.error, "cpu-clock", of);
    watched.looks = std::move(ring.value);
    int error = watched.looks.WriteTo(watched.switches);
    for (const SampleRing* one : {&watched.switches, &watched.looks}) {
      if (error == 0) error = one->Enable();
    }
    if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("watching ", of));
    watched_.push_back(std::move(watched));
    return absl::OkStatus();
  }

  void Add(const RawSample& sample, int cpu) {
    const auto event = records_.Decode(
        sample, cpu, vcpu_.tid, [this](pid_t tid, std::string_view name) { names_[tid] = name; });
    if (event) events_.push_back(*event);
  }

  // Makes events of what the rings have.
  absl::Status Take() {
    bool whole = true;
    for (Waker& waker : wakers_) {
      RingRecords of_waker;
      of_waker.lost = [this](uint64_t lost) { lost_ += lost; };
      of_waker.raw = [&](const RawSample& sample) { Add(sample, waker.cpu); };
      waker.wakeups.Take([&](std::span<const uint8_t> records) {
        whole = ReadRecords(records, true, of_waker) && whole;
      });
    }
    RingRecords of_thread;
    of_thread.lost = [this](uint64_t lost) { lost_ += lost; };
    of_thread.switched = [this](const ThreadSwitch& it) {
      events_.push_back({.at_ns = it.time_ns,
                         .kind = it.is_out ? Kind::kLostCpu : Kind::kGotCpu,
                         .waits = it.waits,
                         .cpu = it.cpu});
    };
    thread_.Take([&](std::span<const uint8_t> records) {
      whole = ReadRecords(records, true, of_thread) && whole;
    });
    for (WatchedCpu& watched : watched_) {
      bool missed = false;
      const auto add_missed = [&](uint64_t at_ns) {
        if (!std::exchange(missed, false)) return;
        events_.push_back({.at_ns = at_ns, .kind = Kind::kMissed, .cpu = watched.cpu});
      };
      RingRecords of_cpu;
      of_cpu.lost = [&](uint64_t lost) {
        lost_ += lost;
        missed = true;
      };
      of_cpu.raw = [&](const RawSample& sample) {
        add_missed(sample.time_ns);
        Add(sample, watched.cpu);
      };
      watched.switches.Take([&](std::span<const uint8_t> records) {
        whole = ReadRecords(records, true, of_cpu) && whole;
      });
      add_missed(static_cast<uint64_t>(MonotonicNow_ns()));
    }
    return whole ? absl::OkStatus() : absl::DataLossError("the kernel's records make no sense");
  }

  // Tells the ledger what happened before `until_ns`, of all rings in the order of time.
  void Tell(uint64_t until_ns) {
    std::ranges::stable_sort(events_, {}, &SchedulerEvent::at_ns);
    const auto end = std::ranges::lower_bound(events_, until_ns, {}, &SchedulerEvent::at_ns);
    for (auto event = events_.begin(); event != end; ++event) event->Tell(ledger_);
    events_.erase(events_.begin(), end);
  }

  std::optional<uint64_t> RunDelay() const {
    if (!scheduling_) return std::nullopt;
    const auto times = scheduling_->Read();
    if (!times.ok()) return std::nullopt;
    return times.value.run_delay_ns;
  }

  WaitAccount Account() const {
    WaitAccount account{.waited_ns = ledger_.unattributed_ns(),
                        .unattributed_ns = ledger_.unattributed_ns(),
                        .lost = lost_};
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
    const auto stat = tree_.ProcessStat(one.tid);
    one.is_kernel = stat && stat->kernel_thread;
    if (*pid != one.tid) one.process_name = CleanLabel(tree_.ProcessName(*pid));
    if (!RunsKnownVmm(tree_, *pid)) return;
    if (const auto vm = IdentifyVm(tree_, *pid)) one.vm = vm->name;
  }

  PerfEvents& perf_;
  const std::string root_;
  const ProcTree tree_;
  const Vm vm_;
  const Vcpu vcpu_;
  const SchedulerRecords records_;
  std::optional<ThreadScheduling> scheduling_;
  std::optional<uint64_t> run_delay_ns_;  // when it began
  SampleRing thread_;                     // its own switches
  std::vector<Waker> wakers_;
  std::vector<WatchedCpu> watched_;
  int64_t follow_at_ns_ = 0;
  std::vector<SchedulerEvent> events_;  // that the ledger was not told yet
  std::map<pid_t, std::string> names_;
  WaitLedger ledger_;
  uint64_t lost_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompetitorSampler>> CompetitorSampler::Open(
    PerfEvents& perf, const Vm& vm, const std::string& root) {
  if (!SeesTheHostsTids(root)) {
    return absl::FailedPreconditionError(
        "the scheduler tells PIDs of the host, and this is another PID namespace: run it in the "
        "host's");
  }
  auto records = ReadFormats(root);
  if (!records.ok()) return records.status();
  auto sampler = std::make_unique<SchedulerSampler>(perf, vm, root, *std::move(records));
  if (absl::Status status = sampler->Start(); !status.ok()) return status;
  return sampler;
}

}  // namespace vcpulse::kvm
