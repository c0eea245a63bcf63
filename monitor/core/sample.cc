#include "monitor/core/sample.h"

namespace vcpulse::core {

VcpuSample WithGroup(const VcpuSample& vcpu, const GroupSample& group) {
  VcpuSample sample = vcpu;
  sample.time_enabled_ns = group.time_enabled_ns;
  sample.time_running_ns = group.time_running_ns;
  sample.counts = group.counts;
  return sample;
}

}  // namespace vcpulse::core
