#pragma once

#include <string>
#include <vector>

#include "monitor/hotspots/hotspots.h"

namespace vcpulse::hotspots {

// A profile as pprof and many viewers read it (pprof_subset.proto; not compressed, which they take
// as well): a sample per stack of each vCPU, with callers where they are known, labelled "vm",
// "vcpu", "mode" and "source". Those whose place was left out have a frame that says so.
std::string PprofOf(const std::vector<VcpuHotspots>& vcpus);

}  // namespace vcpulse::hotspots
