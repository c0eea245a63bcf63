#include "tests/accuracy/cpu_models.h"

#include <algorithm>
#include <array>

namespace vcpulse::accuracy {
namespace {

// PAUSE costs and events as in docs/bands.md. Frequencies are of common parts; no verdict depends
// on them but through residency.
constexpr std::array<CpuModel, 9> kModels = {{
    {.name = "intel-haswell-broadwell",
     .core_hz = 2.9e9,
     .tsc_hz = 2.3e9,
     .pause_cycles = 10,
     .width = 4,
     .l1d_kib = 32},
    {.name = "intel-skylake-client",
     .core_hz = 4.0e9,
     .tsc_hz = 3.6e9,
     .pause_cycles = 140,
     .width = 4,
     .l1d_kib = 32},
    {.name = "intel-skylake-sp",
     .core_hz = 2.8e9,
     .tsc_hz = 2.1e9,
     .pause_cycles = 140,
     .pause = PauseEvent::kInstructions,
     .width = 4,
     .l1d_kib = 32},
    {.name = "intel-cascade-lake-sp",
     .core_hz = 3.1e9,
     .tsc_hz = 2.5e9,
     .pause_cycles = 40,
     .pause = PauseEvent::kInstructions,
     .width = 4,
     .l1d_kib = 32},
    {.name = "intel-ice-lake-sp",
     .core_hz = 3.1e9,
     .tsc_hz = 2.6e9,
     .pause_cycles = 37,
     .pause = PauseEvent::kInstructions,
     .width = 5,
     .l1d_kib = 48},
    {.name = "intel-alder-raptor-lake-p",
     .core_hz = 5.0e9,
     .tsc_hz = 3.0e9,
     .pause_cycles = 184,
     .pause = PauseEvent::kCycles,
     .width = 6,
     .l1d_kib = 48},
    {.name = "intel-granite-rapids",
     .core_hz = 3.5e9,
     .tsc_hz = 2.3e9,
     .pause_cycles = 39,
     .pause = PauseEvent::kCycles,
     .width = 6,
     .l1d_kib = 48},
    {.name = "amd-zen4",
     .core_hz = 3.7e9,
     .tsc_hz = 2.4e9,
     .pause_cycles = 64,
     .cache_misses = CacheMisses::kL2,
     .width = 6,
     .l1d_kib = 32},
    {.name = "arm-neoverse-n1",
     .core_hz = 3.0e9,
     .tsc_hz = {},
     .cache_misses = CacheMisses::kL1d,
     .width = 4,
     .l1d_kib = 64},
}};

}  // namespace

std::span<const CpuModel> CpuModels() { return kModels; }

const CpuModel* FindCpuModel(std::string_view name) {
  const auto* found = std::ranges::find(kModels, name, &CpuModel::name);
  return found == kModels.end() ? nullptr : found;
}

}  // namespace vcpulse::accuracy
