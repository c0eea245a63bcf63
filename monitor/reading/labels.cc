#include "monitor/reading/labels.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/core/classify.h"

namespace vcpulse::reading {

std::string_view GapReasonName(v1::Gap::Reason reason) {
  switch (reason) {
    case v1::Gap::REASON_READ_FAILED:
      return "read-failed";
    case v1::Gap::REASON_TICK_MISSED:
      return "tick-missed";
    case v1::Gap::REASON_QUEUE_FULL:
      return "queue-full";
    case v1::Gap::REASON_SOURCE_LOST:
      return "source-lost";
    case v1::Gap::REASON_NOT_OPENED:
      return "not-opened";
    default:
      return "unspecified";
  }
}

std::string_view ClassifierOf(const v1::VcpuSet& set) {
  if (set.classifier().empty()) return core::ToString(core::Classifier::kIpcBands);
  return set.classifier();
}

std::string_view LifeCycleName(v1::LifeCycle::Kind kind) {
  switch (kind) {
    case v1::LifeCycle::KIND_VM_FOUND:
      return "vm-found";
    case v1::LifeCycle::KIND_VM_ENDED:
      return "vm-ended";
    case v1::LifeCycle::KIND_VCPUS_CHANGED:
      return "vcpus-changed";
    case v1::LifeCycle::KIND_SET_REDUCED:
      return "set-reduced";
    case v1::LifeCycle::KIND_VM_SKIPPED:
      return "vm-skipped";
    case v1::LifeCycle::KIND_VM_PAUSED:
      return "vm-paused";
    case v1::LifeCycle::KIND_VM_RESUMED:
      return "vm-resumed";
    case v1::LifeCycle::KIND_RECORDING_PAUSED:
      return "recording-paused";
    case v1::LifeCycle::KIND_RECORDING_RESUMED:
      return "recording-resumed";
    case v1::LifeCycle::KIND_SET_RESTORED:
      return "set-restored";
    default:
      return "unspecified";
  }
}

std::optional<std::string_view> SkipReasonName(const v1::LifeCycle& change) {
  if (change.kind() != v1::LifeCycle::KIND_VM_SKIPPED) return std::nullopt;
  switch (change.skip_reason()) {
    case v1::LifeCycle::SKIP_REASON_NO_KVM:
      return "no-kvm";
    case v1::LifeCycle::SKIP_REASON_NO_VCPU:
      return "no-vcpu";
    case v1::LifeCycle::SKIP_REASON_NOT_OPENED:
      return "not-opened";
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> BandName(core::Band band) {
  switch (band) {
    case core::Band::kNone:
      return std::nullopt;
    case core::Band::kHalted:
      return "halted";
    case core::Band::kSpinning:
      return "spinning";
    case core::Band::kProductive:
      return "productive";
    case core::Band::kUnknown:
      return "unknown";
  }
  return std::nullopt;
}

std::optional<std::string_view> StateName(core::ThreadState state) {
  switch (state) {
    case core::ThreadState::kNotRead:
      return std::nullopt;
    case core::ThreadState::kBlocked:
      return "blocked";
    case core::ThreadState::kRunnable:
      return "runnable";
    case core::ThreadState::kStopped:
      return "stopped";
    case core::ThreadState::kExited:
      return "exited";
    case core::ThreadState::kPaused:
      return "paused";
    case core::ThreadState::kIoWait:
      return "io-wait";
  }
  return std::nullopt;
}

std::optional<std::string_view> ResidencyMethodName(v1::ResidencyMethod method) {
  switch (method) {
    case v1::RESIDENCY_METHOD_REF_CYCLES:
      return "ref-cycles";
    case v1::RESIDENCY_METHOD_MAX_FREQUENCY:
      return "max-frequency";
    case v1::RESIDENCY_METHOD_TIME_ENABLED:
      return "time-enabled";
    case v1::RESIDENCY_METHOD_HIGHEST_RATE:
      return "highest-rate";
    default:
      return std::nullopt;
  }
}

std::string_view FeatureName(core::Feature feature) {
  switch (feature) {
    case core::Feature::kCycles:
      return "cycles";
    case core::Feature::kIpc:
      return "ipc";
    case core::Feature::kIpcSpread:
      return "ipc_spread";
    case core::Feature::kBranchShare:
      return "branch_share";
    case core::Feature::kBranchMisses:
      return "branch_misses_per_kcycle";
    case core::Feature::kCacheMisses:
      return "cache_misses_per_kcycle";
    case core::Feature::kPauseShare:
      return "pause_share";
    case core::Feature::kL1dMisses:
      return "l1d_misses_per_kcycle";
  }
  return "unspecified";
}

std::optional<std::string_view> SchedulingName(v1::Scheduling scheduling) {
  switch (scheduling) {
    case v1::SCHEDULING_NORMAL:
      return "normal";
    case v1::SCHEDULING_FIFO:
      return "fifo";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> ErrnoName(int32_t error) {
  const char* name = error > 0 ? strerrorname_np(error) : nullptr;
  if (name == nullptr) return std::nullopt;
  return name;
}

std::string ErrnoText(int32_t error) {
  const std::optional<std::string> name = ErrnoName(error);
  if (!name) return "errno " + std::to_string(error);
  return *name + ": " + strerrordesc_np(error);
}

std::string DegradedText(const std::vector<std::string>& vms, size_t of, std::string_view why) {
  if (vms.empty() && (of > 0 || why.empty())) return "";
  std::string text = "no hardware counter was read";
  constexpr size_t kNamed = 8;
  if (!vms.empty() && vms.size() < of) absl::StrAppend(&text, " of VM ", Listed(vms, kNamed));
  if (!why.empty()) absl::StrAppend(&text, ": ", Printable(why));
  return text;
}

bool IsUnknownReason(core::Rule rule) {
  const auto i = static_cast<size_t>(rule);
  return i >= core::kRules || !core::kRuleTable[i].unknown_as.empty();
}

std::string WhyByPresence(core::Rule rule) {
  switch (rule) {
    case core::Rule::kBlocked:
      return "nothing ran, and its thread sleeps";
    case core::Rule::kResidency:
      return "it ran guest code for next to none of the window";
    case core::Rule::kPolling:
      return "hardly any guest code ran; the host polled in its stead before putting it to sleep";
    default:
      return std::string(Explain(rule));
  }
}

std::string_view Explain(core::Rule rule) {
  const auto i = static_cast<size_t>(rule);
  const bool is_reason = i < core::kRules && IsUnknownReason(rule);
  return core::kRuleTable[is_reason ? i : 0].unknown_as;
}

const char* WhyLost(v1::LostRecords::Reason reason) {
  switch (reason) {
    case v1::LostRecords::REASON_SPOOL_FULL:
      return "the agent's spool was full";
    case v1::LostRecords::REASON_SPOOL_DAMAGED:
      return "the agent's spool was damaged";
    case v1::LostRecords::REASON_TOO_LARGE:
      return "a chunk was too large to be sent";
    case v1::LostRecords::REASON_AGENT_BUSY:
      return "the agent was too slow to send them";
    case v1::LostRecords::REASON_NOT_HELD:
      return "the agent had them no more";
    default:
      return "why is not recorded";
  }
}

char BandLetter(core::Band band, bool starved) {
  constexpr std::array<std::array<char, 2>, core::kBands> kLetters = {
      {{'-', '-'}, {'.', ':'}, {'S', '$'}, {'#', '%'}, {'?', '!'}}};
  const auto place = static_cast<size_t>(band);
  return place < kLetters.size() ? kLetters[place][starved ? 1 : 0] : '-';
}

std::vector<uint32_t> VmsMeant(const std::string& text,
                               const std::map<uint32_t, const v1::VmInstance*>& vms) {
  using Meets = bool (*)(const std::string& wanted, uint32_t number, const v1::VmInstance& vm);
  constexpr std::array<Meets, 3> kWays = {
      [](const std::string& wanted, uint32_t, const v1::VmInstance& vm) {
        return wanted == vm.name() || wanted == vm.uuid();
      },
      [](const std::string& wanted, uint32_t, const v1::VmInstance& vm) {
        return vm.pid() != 0 && wanted == absl::StrCat(vm.pid());
      },
      [](const std::string& wanted, uint32_t number, const v1::VmInstance&) {
        return wanted == absl::StrCat(number);
      }};
  std::vector<uint32_t> meant;
  for (const Meets meets : kWays) {
    for (const auto& [number, vm] : vms) {
      if (meets(text, number, *vm)) meant.push_back(number);
    }
    if (!meant.empty()) break;
  }
  return meant;
}

}  // namespace vcpulse::reading
