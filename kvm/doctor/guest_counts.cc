#include "kvm/doctor/guest_counts.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "kvm/events/pmu.h"

namespace vcpulse::kvm::doctor {

void Counts::Add(const GroupValues& begun, const GroupValues& now, std::span<const Event> events) {
  ++groups_;
  enabled_ns = std::max(enabled_ns, now.time_enabled_ns - begun.time_enabled_ns);
  running_ns += now.time_running_ns - begun.time_running_ns;
  for (size_t i = 0; i < events.size(); ++i) of[events[i].name] += now.counts[i] - begun.counts[i];
}

bool Counts::Whole() const {
  // A core PMU's group is enabled on the cores of the others too, where it does not run, and each
  // reads its own clock when the thread moves. A rival takes milliseconds at a time.
  const uint64_t between_clocks_ns = groups_ > 1 ? enabled_ns / 100 : 0;
  return running_ns + between_clocks_ns >= enabled_ns;
}

absl::StatusOr<GuestCounts> GuestCounts::Open(PerfEvents& perf, const std::string& root,
                                              const std::optional<Event>& pause,
                                              const microguest::Machine& machine) {
  Vm vm{.pid = getpid(), .name = "microguest", .accelerator = Accelerator::kKvm};
  for (size_t i = 0; i < machine.vcpus(); ++i) {
    vm.vcpus.push_back({.index = static_cast<int>(i), .tid = machine.Tid(i)});
  }
  OpenOptions options{.core_pmus = CorePmus(ReadPmus(root))};
  options.wanted.pause = pause;
  auto opened = OpenGroups(perf, root, vm, options);
  if (!opened.ok()) return opened.status();
  if (!opened->degraded_reason.empty()) {
    return absl::FailedPreconditionError(opened->degraded_reason);
  }
  for (VcpuGroups& groups : opened->groups) {
    for (CounterGroup& group : groups) {
      if (const int error = group.Enable(); error != 0) {
        return absl::ErrnoToStatus(error, "cannot enable a counter group");
      }
    }
  }
  GuestCounts counts(*std::move(opened));
  for (size_t i = 0; i < machine.vcpus(); ++i) {
    counts.begun_.emplace_back();
    if (absl::Status status = counts.Begin(i); !status.ok()) return status;
  }
  return counts;
}

std::vector<std::string> GuestCounts::Events() const {
  std::vector<std::string> names;
  for (const Event& event : opened_.layout.front().events) names.push_back(event.name);
  return names;
}

bool GuestCounts::Counts(const std::string& event) const {
  return std::ranges::count(opened_.layout.front().events, event, &Event::name) > 0;
}

absl::StatusOr<std::vector<GroupValues>> GuestCounts::Read(size_t vcpu) {
  std::vector<GroupValues> all;
  for (CounterGroup& group : opened_.groups[vcpu]) {
    const OrErrno<GroupValues> values = group.Read();
    if (!values.ok()) return absl::ErrnoToStatus(values.error, "cannot read a counter group");
    all.push_back(values.value);
  }
  return all;
}

absl::Status GuestCounts::Begin(size_t vcpu) {
  auto values = Read(vcpu);
  if (!values.ok()) return values.status();
  begun_[vcpu] = *std::move(values);
  return absl::OkStatus();
}

absl::StatusOr<Counts> GuestCounts::Since(size_t vcpu) {
  const auto now = Read(vcpu);
  if (!now.ok()) return now.status();
  doctor::Counts counts;
  for (size_t g = 0; g < now->size(); ++g) {
    counts.Add(begun_[vcpu][g], (*now)[g], opened_.groups[vcpu][g].events());
  }
  return counts;
}

}  // namespace vcpulse::kvm::doctor
