#include "monitor/metric/core_neighbours.h"

#include <algorithm>

namespace vcpulse::metric {

std::optional<std::vector<VcpuId>> CoreNeighbours::Add(VcpuId vcpu, uint32_t cpu, int64_t mono_ns,
                                                       uint64_t run_ns) {
  if (cpu_cores_.empty()) return std::nullopt;
  const auto core_of = [this](uint32_t of) { return of < cpu_cores_.size() ? cpu_cores_[of] : 0; };
  const auto [place, is_first] = latest_.try_emplace(vcpu);
  const Reading before = place->second;
  // Numbers of a damaged file may be any.
  const auto time_ns = static_cast<double>(mono_ns) - static_cast<double>(before.mono_ns);
  const auto ran_ns = static_cast<double>(run_ns) - static_cast<double>(before.run_ns);
  const bool ran = !is_first && time_ns > 0 && ran_ns >= kRan * time_ns;
  place->second = {.cpu = cpu, .mono_ns = mono_ns, .run_ns = run_ns, .ran = ran};
  if (!is_first) on_core_[core_of(before.cpu)].erase(vcpu);
  const uint32_t core = core_of(cpu);
  if (core == 0) return std::nullopt;
  std::set<VcpuId>& all = on_core_[core];
  const double longest_ns = std::max(kSameTime_ns, is_first ? 0 : 1.5 * time_ns);
  std::vector<VcpuId> neighbours;
  for (auto other = all.begin(); other != all.end();) {
    const Reading& theirs = latest_.at(*other);
    const double apart_ns = static_cast<double>(mono_ns) - static_cast<double>(theirs.mono_ns);
    if (apart_ns > longest_ns) {
      other = all.erase(other);
      continue;
    }
    if (theirs.cpu != cpu && theirs.ran && apart_ns >= 0) neighbours.push_back(*other);
    ++other;
  }
  if (all.size() < kMostPerCore) all.insert(vcpu);
  if (!ran) return std::nullopt;
  return neighbours;
}

void CoreNeighbours::Forget(uint32_t vm) {
  const auto is_its = [vm](const auto& entry) { return entry.first.vm == vm; };
  for (auto& [core, vcpus] : on_core_) {
    std::erase_if(vcpus, [vm](const VcpuId& vcpu) { return vcpu.vm == vm; });
  }
  std::erase_if(latest_, is_its);
}

}  // namespace vcpulse::metric
