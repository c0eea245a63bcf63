#include "monitor/prometheus/vcpu_metrics.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "kvm/base/clock.h"
#include "monitor/metric/interval.h"
#include "monitor/prometheus/vcpu_totals.h"

namespace vcpulse::prometheus {
namespace {

constexpr int64_t kKept_ns = std::chrono::nanoseconds(std::chrono::minutes(5)).count();

void AddTo(IntervalTotals& totals, const metric::Interval& interval) {
  totals.totals.Add(interval);
  for (const metric::Info& info : metric::Table()) {
    for (size_t i = 0; i < info.counters.size(); ++i) {
      if (info.counters[i].of == nullptr) continue;
      const std::optional<double> more = info.counters[i].of(interval);
      std::optional<double>& sum = totals.counters[static_cast<size_t>(info.metric)][i];
      if (more) sum = sum.value_or(0) + *more;
    }
  }
}

// Adds up the records of one recording. One thread at a time.
class Tally {
 public:
  explicit Tally(MetricsLevel level) : level_(level) {
    // Those that a recording makes: there from the beginning, so that the first one is an increase.
    for (const auto reason :
         {v1::Gap::REASON_READ_FAILED, v1::Gap::REASON_TICK_MISSED, v1::Gap::REASON_QUEUE_FULL}) {
      totals_.gaps[reason] = {};
    }
  }

  const RecordingTotals& totals() const { return totals_; }

  void AddTick(uint32_t vm, uint32_t number, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) {
    AddLateness(sample);
    if (intervals_.EpochOf({.vm = vm, .epoch = number, .sample = sample}) == nullptr) return;
    const auto before = previous_.find({vm, number});
    // What lies across a gap is of no single tick: it counts nowhere.
    const bool follows = before != previous_.end() && before->second.tick + 1 == sample.tick;
    const absl::Status added = intervals_.Add({.vm = vm,
                                               .epoch = number,
                                               .sample = sample,
                                               .previous = follows ? &before->second : nullptr,
                                               .verdicts = verdicts},
                                              [&](const metric::Interval& interval) {
                                                AddInterval(vm, interval);
                                                return absl::OkStatus();
                                              });
    if (added.ok()) previous_.insert_or_assign({vm, number}, sample);
  }

  void Add(const v1::TimelineRecord& record, int64_t mono_ns) {
    if (record.has_session()) {
      AddSession(record.session());
      // Another stream would be another recording.
      if (intervals_.Add(record.session()).ok()) return;
      previous_.clear();
      intervals_ = metric::IntervalReader();
      intervals_.Add(record.session()).IgnoreError();  // the first of a new reader never fails
    } else if (record.has_vcpu_set()) {
      AddSet(record.vcpu_set());
    } else if (record.has_statistics()) {
      intervals_.Add(record.statistics());
    } else if (record.has_gap()) {
      const v1::Gap& gap = record.gap();
      GapTotals& gaps = totals_.gaps[gap.reason()];
      ++gaps.records;
      gaps.ticks +=
          gap.last_tick() >= gap.first_tick() ? gap.last_tick() - gap.first_tick() + 1 : 1;
    } else if (record.life_cycle().kind() == v1::LifeCycle::KIND_VM_ENDED) {
      const auto vm = totals_.vms.find(record.life_cycle().vm());
      if (vm != totals_.vms.end()) vm->second.ended_mono_ns = mono_ns;
    }
  }

  void EndEpoch(uint32_t vm, uint32_t epoch) {
    intervals_.EndEpoch(vm, epoch);
    previous_.erase({vm, epoch});
  }

  // Forgets the VMs that ended long ago.
  void Forget(int64_t now_mono_ns) {
    std::erase_if(totals_.vms, [&](const auto& vm) {
      return vm.second.ended_mono_ns && now_mono_ns - *vm.second.ended_mono_ns > kKept_ns;
    });
  }

 private:
  void AddSession(const v1::Session& session) {
    totals_.version = session.tool_version();
    totals_.reader = session.reader();
    totals_.agent = session.agent_id();
    totals_.labels.clear();
    for (const v1::Label& label : session.labels()) {
      totals_.labels.emplace_back(label.key(), label.value());
    }
  }

  void AddInterval(uint32_t number, const metric::Interval& interval) {
    AddTo(totals_.sum, interval);
    const auto vm = totals_.vms.find(number);
    if (vm == totals_.vms.end() || level_ < MetricsLevel::kVm) return;
    AddTo(vm->second.sum, interval);
    if (level_ == MetricsLevel::kVcpu) {
      AddTo(vm->second.vcpus[interval.Vcpu().index()], interval);
    }
  }

  void AddLateness(const core::Sample& sample) {
    if (last_tick_ && sample.tick <= *last_tick_) return;  // of another VM
    last_tick_ = sample.tick;
    ++totals_.ticks;
    const int64_t late_ns = std::max<int64_t>(0, sample.wake_ns - sample.deadline_ns);
    totals_.lateness_ns += static_cast<uint64_t>(late_ns);
    const auto bound = std::ranges::lower_bound(kLatenessBounds, ToSeconds(late_ns));
    ++totals_.lateness[static_cast<size_t>(bound - kLatenessBounds.begin())];
  }

  void AddSet(const v1::VcpuSet& set) {
    intervals_.Add(set);
    // Its PID was free again: series of the same labels must not be there twice. Of imported VMs
    // no PID is known; those of one name are then the latest of them.
    const std::string pid = PidLabel(set.instance());
    std::erase_if(totals_.vms, [&](const auto& vm) {
      const v1::VmInstance& other = vm.second.instance;
      return vm.first != set.vm() && PidLabel(other) == pid &&
             (!pid.empty() || VmLabel(other) == VmLabel(set.instance()));
    });
    VmTotals& vm = totals_.vms[set.vm()];
    vm.instance = set.instance();
    vm.ended_mono_ns.reset();
    const auto opened = static_cast<uint64_t>(set.vcpus_size());
    const bool is_degraded = set.event_set() == "degraded";
    vm.states = {.counters = is_degraded ? 0 : opened,
                 .no_counters = is_degraded ? opened : 0,
                 .not_opened = static_cast<uint64_t>(set.unopened_vcpus_size())};
    if (level_ < MetricsLevel::kVcpu) return;
    for (const v1::Vcpu& vcpu : set.vcpus()) vm.vcpus.try_emplace(vcpu.index());
  }

  const MetricsLevel level_;
  RecordingTotals totals_;
  metric::IntervalReader intervals_;
  std::map<std::pair<uint32_t, uint32_t>, core::Sample> previous_;  // by (vm, epoch)
  std::optional<uint64_t> last_tick_;
};

class Metrics final : public VcpuMetrics {
 public:
  explicit Metrics(MetricsLevel level) : level_(level), tally_(level) {}

  std::unique_ptr<timeline::RecordWriter> Count(
      std::unique_ptr<timeline::RecordWriter> next) override;

  std::string Text() const override {
    const RecordingTotals totals = [&] {
      const std::lock_guard lock(mutex_);
      return tally_.totals();
    }();
    return TextOf(totals, level_);
  }

  // Calls `change` with the tally, which nobody else sees meanwhile.
  template <typename Change>
  void With(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(tally_);
  }

 private:
  const MetricsLevel level_;
  mutable std::mutex mutex_;
  Tally tally_;
};

class CountingWriter final : public timeline::RecordWriter {
 public:
  CountingWriter(Metrics& metrics, std::unique_ptr<timeline::RecordWriter> next)
      : metrics_(metrics), next_(std::move(next)) {}

  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override {
    metrics_.With([&](Tally& tally) { tally.AddTick(vm, epoch, sample, verdicts); });
    next_->AddTick(vm, epoch, sample, verdicts);
  }
  void Add(v1::TimelineRecord record, int64_t mono_ns) override {
    metrics_.With([&](Tally& tally) { tally.Add(record, mono_ns); });
    next_->Add(std::move(record), mono_ns);
  }
  void EndEpoch(uint32_t vm, uint32_t epoch) override {
    metrics_.With([&](Tally& tally) { tally.EndEpoch(vm, epoch); });
    next_->EndEpoch(vm, epoch);
  }
  absl::Status Flush(const v1::ClockSnapshot& clock) override {
    metrics_.With([&](Tally& tally) { tally.Forget(clock.mono_ns()); });
    return next_->Flush(clock);
  }

 private:
  Metrics& metrics_;
  std::unique_ptr<timeline::RecordWriter> next_;
};

std::unique_ptr<timeline::RecordWriter> Metrics::Count(
    std::unique_ptr<timeline::RecordWriter> next) {
  return std::make_unique<CountingWriter>(*this, std::move(next));
}

}  // namespace

std::optional<MetricsLevel> FindMetricsLevel(std::string_view name) {
  if (name == "host") return MetricsLevel::kHost;
  if (name == "vm") return MetricsLevel::kVm;
  if (name == "vcpu") return MetricsLevel::kVcpu;
  return std::nullopt;
}

std::unique_ptr<VcpuMetrics> VcpuMetrics::Create(MetricsLevel level) {
  return std::make_unique<Metrics>(level);
}

}  // namespace vcpulse::prometheus
