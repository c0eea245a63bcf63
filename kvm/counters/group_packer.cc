#include "kvm/counters/group_packer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "kvm/base/fd.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/group_layout.h"

namespace vcpulse::kvm {
namespace {

// False where the PMU refuses so many at once. Other refusals are for the opening to find. The
// events are opened enabled: Arm's check of a group passes over members that are off
// (validate_event in drivers/perf/arm_pmu.c), so that one too many would open, and never run.
bool FitsOnThread(PerfEvents& perf, pid_t tid, const GroupLayout& group) {
  std::vector<Fd> open;
  for (const Event& event : group.events) {
    perf_event_attr attr = AttrOf(event, /*leader=*/open.empty());
    attr.disabled = 0;
    OrErrno<Fd> fd = perf.Open(attr, tid, open.empty() ? -1 : open.front().get());
    if (fd.error == EINVAL && !open.empty()) return false;
    if (fd.ok()) open.push_back(std::move(fd.value));
  }
  return true;
}

bool Fits(PerfEvents& perf, pid_t tid, std::span<const Event> events,
          std::span<const Pmu> core_pmus) {
  return std::ranges::all_of(LayoutOf(events, core_pmus), [&](const GroupLayout& group) {
    return FitsOnThread(perf, tid, group);
  });
}

// The first thread on which `event` opens at all; the last one where it opens on none.
pid_t ThreadToTry(PerfEvents& perf, std::span<const Vcpu> vcpus, const Event& event) {
  for (const Vcpu& vcpu : vcpus) {
    perf_event_attr attr = AttrOf(event, /*leader=*/true);
    if (perf.Open(attr, vcpu.tid, /*group_fd=*/-1).ok()) return vcpu.tid;
  }
  return vcpus.back().tid;
}

}  // namespace

std::vector<std::vector<Event>> PackGroups(PerfEvents& perf, std::span<const Vcpu> vcpus,
                                           std::span<const std::vector<Event>> units,
                                           size_t largest_group, std::span<const Pmu> core_pmus) {
  std::vector<std::vector<Event>> groups;
  if (units.empty() || vcpus.empty()) return groups;
  const pid_t tid = ThreadToTry(perf, vcpus, units.front().front());
  for (const std::vector<Event>& unit : units) {
    if (!groups.empty()) {
      std::vector<Event> joined = groups.back();
      joined.insert(joined.end(), unit.begin(), unit.end());
      if (joined.size() <= largest_group && Fits(perf, tid, joined, core_pmus)) {
        groups.back() = std::move(joined);
        continue;
      }
    }
    groups.push_back(unit);
  }
  return groups;
}

}  // namespace vcpulse::kvm
