#include "monitor/report/interval.h"

#include <algorithm>

#include "monitor/replay/rejudge.h"

namespace vcpulse::report {

GroupDeltas::GroupDeltas(const core::Sample& earlier, const core::Sample& later, size_t vcpu) {
  const core::VcpuSample& before = earlier.vcpus[vcpu];
  const core::VcpuSample& now = later.vcpus[vcpu];
  deltas_[0] = core::Subtract(before, now);
  const size_t further =
      std::min({earlier.FurtherGroups(), later.FurtherGroups(), core::kMaxGroups - 1});
  for (size_t g = 0; g < further; ++g) {
    deltas_[g + 1] =
        core::Subtract(core::WithGroup(before, earlier.further[vcpu * earlier.FurtherGroups() + g]),
                       core::WithGroup(now, later.further[vcpu * later.FurtherGroups() + g]));
  }
  count_ = further + 1;
}

core::VcpuDelta AddPmus(std::span<const core::VcpuDelta> pmus) {
  core::VcpuDelta sum = pmus.front();
  for (const core::VcpuDelta& other : pmus.subspan(1)) sum = core::AddPmu(sum, other);
  return sum;
}

void ResidencyMeter::Begin(const v1::Session& session) {
  by_time_enabled_ = session.residency_method() == v1::RESIDENCY_METHOD_TIME_ENABLED;
  estimator_ = core::ResidencyEstimator(replay::BasesOf(session));
}

std::optional<double> ResidencyMeter::Of(std::span<const core::VcpuDelta> pmus,
                                         const core::EventSlots& slots) {
  if (by_time_enabled_) {
    return std::min(1.0, static_cast<double>(pmus.front().time_enabled_ns) /
                             static_cast<double>(pmus.front().interval_ns));
  }
  for (size_t pmu = 0; pmu < pmus.size(); ++pmu) estimator_.Observe(pmus[pmu], slots, pmu);
  return core::Residency(pmus, slots, estimator_.bases());
}

core::Verdict WithinKnown(core::Verdict verdict) {
  const auto within = [](core::Band& band, core::Rule& rule) {
    if (static_cast<size_t>(band) >= core::kBands) band = core::Band::kNone;
    if (static_cast<size_t>(rule) >= core::kRules) rule = core::Rule::kNone;
  };
  within(verdict.band, verdict.rule);
  within(verdict.raw_band, verdict.raw_rule);
  return verdict;
}

}  // namespace vcpulse::report
