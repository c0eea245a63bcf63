#include "monitor/metric/core_neighbours.h"

namespace vcpulse::metric {

std::optional<std::vector<VcpuId>> CoreNeighbours::Add(VcpuId vcpu, uint32_t cpu, int64_t mono_ns,
                                                       uint64_t run_ns) {
  const auto core_of = [this](uint32_t of) { return of < cpu_cores_.size() ? cpu_cores_[of] : 0; };
  const uint32_t core = core_of(cpu);
  if (core == 0) return std::nullopt;
  const auto [place, is_first] = latest_.try_emplace(vcpu);
  Reading& latest = place->second;
  const Reading before = latest;
  // Numbers of a damaged file may be any.
  const auto time_ns = static_cast<double>(mono_ns) - static_cast<double>(before.mono_ns);
  const auto ran_ns = static_cast<double>(run_ns) - static_cast<double>(before.run_ns);
  const bool ran = !is_first && time_ns > 0 && ran_ns >= kRan * time_ns;
  latest = {.cpu = cpu, .mono_ns = mono_ns, .run_ns = run_ns, .ran = ran};
  if (!is_first) on_core_[core_of(before.cpu)].erase(vcpu);
  std::set<VcpuId>& all = on_core_[core];
  all.insert(vcpu);
  if (!ran) return std::nullopt;
  std::vector<VcpuId> neighbours;
  for (const VcpuId& other : all) {
    const Reading& theirs = latest_[other];
    const double apart_ns = static_cast<double>(mono_ns) - static_cast<double>(theirs.mono_ns);
    if (theirs.cpu != cpu && theirs.ran && apart_ns >= 0 && apart_ns <= double{kSameTime_ns}) {
      neighbours.push_back(other);
    }
  }
  return neighbours;
}

}  // namespace vcpulse::metric
