// The totals of a vCPU's events: which slot of which group goes where.

#include <algorithm>

#include "monitor/report/summary.h"

namespace vcpulse::report {
namespace {

constexpr size_t kKeptTids = 16;  // per vCPU

// Which of the vCPU's totals an event belongs to, making one if it is new.
size_t EventTotalOf(VcpuSummary& vcpu, const std::string& event) {
  for (size_t i = 0; i < vcpu.events.size(); ++i) {
    if (vcpu.events[i].event == event) return i;
  }
  vcpu.events.push_back({.event = event});
  return vcpu.events.size() - 1;
}

template <typename Events>
std::vector<EpochSummary::Slot> SlotsOf(
    VcpuSummary& vcpu, const Events& events,
    const std::vector<std::vector<EpochSummary::Slot>>& before) {
  std::vector<EpochSummary::Slot> slots;
  for (const std::string& event : events) {
    if (slots.size() == core::kMaxEvents) break;
    const size_t total = EventTotalOf(vcpu, event);
    const bool known = std::ranges::any_of(before, [total](const auto& group) {
      return std::ranges::find(group, total, &EpochSummary::Slot::total) != group.end();
    });
    vcpu.events[total].on_many_pmus = vcpu.events[total].on_many_pmus || known;
    slots.push_back({.total = total, .brings_time = !known});
  }
  return slots;
}

}  // namespace

EpochSummary::Column ColumnOf(VmSummary& vm, const v1::Vcpu& member, const v1::VcpuSet& set) {
  VcpuSummary& vcpu = vm.vcpus[member.index()];
  vcpu.index = member.index();
  if (member.has_kvm_id()) vcpu.kvm_id = member.kvm_id();
  const auto known = std::find(vcpu.tids.begin(), vcpu.tids.end(), member.tid());
  if (known != vcpu.tids.end()) vcpu.tids.erase(known);
  if (vcpu.tids.size() == kKeptTids) vcpu.tids.erase(vcpu.tids.begin());
  vcpu.tids.push_back(member.tid());

  EpochSummary::Column column{.vcpu = &vcpu, .groups = {}};
  column.groups.push_back(SlotsOf(vcpu, set.events(), column.groups));
  for (const v1::EventGroup& group : set.further_groups()) {
    column.groups.push_back(SlotsOf(vcpu, group.events(), column.groups));
  }
  return column;
}

void AddEvents(const EpochSummary::Column& column, std::span<const core::VcpuDelta> groups) {
  for (size_t g = 0; g < std::min(groups.size(), column.groups.size()); ++g) {
    const core::VcpuDelta& delta = groups[g];
    for (size_t slot = 0; slot < column.groups[g].size(); ++slot) {
      const EpochSummary::Slot& place = column.groups[g][slot];
      EventTotal& total = column.vcpu->events[place.total];
      total.raw += delta.counts[slot];
      total.time_running_ns += delta.time_running_ns;
      if (!place.brings_time) continue;
      total.time_enabled_ns += delta.time_enabled_ns;
      total.interval_ns += delta.interval_ns;
    }
  }
}

}  // namespace vcpulse::report
