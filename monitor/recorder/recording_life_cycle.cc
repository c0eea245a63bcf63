// Of Recording: what is said of a VM's life.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/discovery/pause.h"
#include "monitor/recorder/recording.h"
#include "monitor/recorder/session_record.h"

namespace vcpulse::recorder {
namespace {

// Names of ended VMs that are remembered, so that a VM that comes again is told to do so.
constexpr size_t kMostEndedNames = 4096;

}  // namespace

void Recording::Pause() {
  paused_ = true;
  AddLifeCycle(std::nullopt, v1::LifeCycle::KIND_RECORDING_PAUSED, "", std::nullopt);
}

void Recording::Resume() {
  paused_ = false;
  AddLifeCycle(std::nullopt, v1::LifeCycle::KIND_RECORDING_RESUMED, "", std::nullopt);
}

PauseWatch Recording::WatchOf(const kvm::Vm& vm, const std::vector<kvm::Vcpu>& vcpus) const {
  if (vm.userspace_irqchip) {
    return {vcpus.size(), [](size_t) { return kvm::WaitPlace::kUnknown; }};
  }
  std::vector<pid_t> tids;
  tids.reserve(vcpus.size());
  for (const kvm::Vcpu& vcpu : vcpus) tids.push_back(vcpu.tid);
  return {vcpus.size(), [root = options_.root, pid = vm.pid, tids = std::move(tids)](size_t vcpu) {
            return kvm::ReadWaitPlace(root, pid, tids.at(vcpu));
          }};
}

void Recording::WatchPause(LiveEpoch& live, RecordedVm* current, core::Sample& sample) {
  const std::optional<PauseCause> cause = live.pause.Observe(sample);
  if (!cause || current == nullptr) return;
  RecordedVm& recorded = *current;
  const bool paused = *cause != PauseCause::kNone;
  if (paused == recorded.paused) return;
  recorded.paused = paused;
  if (!paused) {
    AddLifeCycle(recorded.number, v1::LifeCycle::KIND_VM_RESUMED, "", recorded.vm, sample.wake_ns);
    return;
  }
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_VM_PAUSED,
               *cause == PauseCause::kSigstop
                   ? "SIGSTOP"
                   : "its vCPUs wait outside KVM_RUN, as after a QMP stop",
               recorded.vm, sample.wake_ns);
}

void Recording::Remember(const kvm::Vm& vm) {
  if (vm.name == absl::StrCat("pid-", vm.pid)) return;  // no name, see Again
  const bool full = ended_names_.size() >= kMostEndedNames && !ended_names_.contains(vm.name);
  if (full) ended_names_.erase(ended_names_.begin());
  ended_names_.insert_or_assign(vm.name, vm.pid);
}

std::string Recording::Again(const kvm::Vm& vm) const {
  const auto before = ended_names_.find(vm.name);
  // "pid-7" is no name: another VM may get that PID.
  if (before == ended_names_.end() || vm.name == absl::StrCat("pid-", vm.pid)) return "";
  return absl::StrCat(", again: '", vm.name, "' ran as PID ", before->second, " before");
}

void Recording::AddLifeCycle(std::optional<uint32_t> vm_number, v1::LifeCycle::Kind kind,
                             const std::string& detail, const std::optional<kvm::Vm>& vm,
                             std::optional<int64_t> mono_ns,
                             v1::LifeCycle::SkipReason skip_reason) {
  v1::TimelineRecord record;
  v1::LifeCycle& life_cycle = *record.mutable_life_cycle();
  life_cycle.set_vm(vm_number.value_or(0));
  const int64_t now_ns = options_.now_ns();
  life_cycle.set_mono_ns(mono_ns.value_or(now_ns));
  life_cycle.set_kind(kind);
  life_cycle.set_detail(detail);
  life_cycle.set_skip_reason(skip_reason);
  if (vm) *life_cycle.mutable_instance() = MakeVmInstance(*vm);
  writer_.Add(std::move(record), now_ns);
}

}  // namespace vcpulse::recorder
