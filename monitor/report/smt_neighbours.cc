#include "monitor/report/smt_neighbours.h"

#include <algorithm>
#include <functional>

namespace vcpulse::report {

std::vector<SmtNeighbours::Neighbour> SmtNeighbours::MostFirst() const {
  std::vector<Neighbour> all;
  all.reserve(by_vcpu_.size());
  for (const auto& [vcpu, readings] : by_vcpu_) all.push_back({.vcpu = vcpu, .readings = readings});
  std::ranges::stable_sort(all, std::greater(), &Neighbour::readings);
  return all;
}

}  // namespace vcpulse::report
