#pragma once

// What `measure_cpu1` of a lab scenario (tools/lab.d/steps) found.

#include <string>

namespace vcpulse::lab {

// Rates on the CPU that the vCPUs run on.
struct HostCost {
  double ipis_per_s = 0;          // function calls that other CPUs sent to it
  double instructions_per_s = 0;  // of the host's kernel
  double exits_per_s = 0;
  double switches_per_s = 0;
};

// Of `name` in the run `run` ("readers-1"). Fails the test if something is missing.
HostCost HostCostOf(const std::string& run, const std::string& name);

}  // namespace vcpulse::lab
