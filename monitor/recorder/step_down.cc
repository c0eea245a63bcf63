#include "monitor/recorder/step_down.h"

#include <algorithm>
#include <cstdint>
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
  const size_t groups = 1 + sample.FurtherGroups();
  const size_t pmus = std::clamp<size_t>(core_pmus, 1, groups);
  const bool take_turns = multiplexed && groups > pmus;
  const uint64_t patience_ns = take_turns ? kNeverRanRotating_ns : kNeverRanEnabled_ns;
  for (size_t v = 0; v < sample.vcpus.size(); ++v) {
    const core::VcpuSample& main = sample.vcpus[v];
    const auto group = [&](size_t g) {
      return g == 0 ? core::GroupSample{main.time_enabled_ns, main.time_running_ns, {}}
                    : sample.further[v * (groups - 1) + g - 1];
    };
    for (size_t first = 0; first < groups; first += pmus) {
      uint64_t running_ns = 0;
      for (size_t g = first; g < std::min(first + pmus, groups); ++g) {
        running_ns += group(g).time_running_ns;
      }
      if (group(first).time_enabled_ns >= patience_ns && running_ns == 0) return true;
    }
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
