#include "monitor/recorder/step_down.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace vcpulse::recorder {
namespace {

// A group that was enabled for this long and never ran will not run.
constexpr uint64_t kNeverRanEnabled_ns = 20'000'000;
// One of several that take turns may have to wait for its first turn.
constexpr uint64_t kNeverRanRotating_ns = 1'000'000'000;

// The events of a rung that are not absent.
std::vector<std::string> NamesLeft(const kvm::Rung& rung,
                                   const std::vector<kvm::AbsentEvent>& absent) {
  std::vector<std::string> names;
  for (const kvm::Event& event : kvm::EventsOf(rung)) {
    if (std::ranges::find(absent, event.name, &kvm::AbsentEvent::name) == absent.end()) {
      names.push_back(event.name);
    }
  }
  return names;
}

}  // namespace

bool AnyGroupNeverRan(const core::Sample& sample, size_t core_pmus, bool multiplexed) {
  const uint64_t patience_ns = multiplexed ? kNeverRanRotating_ns : kNeverRanEnabled_ns;
  const auto never_ran = [patience_ns](uint64_t time_enabled_ns, uint64_t time_running_ns) {
    return time_enabled_ns >= patience_ns && time_running_ns == 0;
  };
  const size_t further = sample.FurtherGroups();
  for (size_t v = 0; v < sample.vcpus.size(); ++v) {
    const std::span<const core::GroupSample> groups =
        std::span(sample.further).subspan(v * further, further);
    uint64_t running_ns = sample.vcpus[v].time_running_ns;
    for (size_t g = 0; g < further; ++g) {
      if (g + 1 < core_pmus) {
        running_ns += groups[g].time_running_ns;
      } else if (core_pmus == 1 &&
                 never_ran(groups[g].time_enabled_ns, groups[g].time_running_ns)) {
        return true;
      }
    }
    if (never_ran(sample.vcpus[v].time_enabled_ns, running_ns)) return true;
  }
  return false;
}

size_t LargestGroup(const std::vector<kvm::GroupLayout>& layout) {
  size_t largest = 0;
  for (const kvm::GroupLayout& group : layout) largest = std::max(largest, group.events.size());
  return largest;
}

size_t NextDifferentRung(const std::vector<kvm::Rung>& ladder, size_t from, size_t largest_group,
                         const std::vector<kvm::AbsentEvent>& absent) {
  const std::vector<std::string> names = NamesLeft(ladder[from], absent);
  size_t next = from + 1;
  while (next < ladder.size() &&
         (ladder[next].multiplexed ? ladder[next].largest_group >= largest_group
                                   : NamesLeft(ladder[next], absent) == names)) {
    ++next;
  }
  return next;
}

}  // namespace vcpulse::recorder
