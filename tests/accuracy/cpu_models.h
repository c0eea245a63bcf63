#pragma once

// tests/accuracy measures how often the classifiers are right, on a labelled set that is computed
// from published and measured numbers (tests/data/labelled/README.md). No recording of a guest is
// in it: it shows what the rules make of such numbers, not what a given host will show.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vcpulse::accuracy {

// How a CPU counts PAUSE.
enum class PauseEvent : uint8_t { kNone, kInstructions, kCycles };

// What `cache-misses` counts.
enum class CacheMisses : uint8_t { kLastLevel, kL2, kL1d };

struct CpuModel {
  std::string_view name;         // of its profile and of its file
  double core_hz = 0;            // under load
  std::optional<double> tsc_hz;  // absent: no ref-cycles
  double pause_cycles = 0;       // 0: an Arm, which has yield and isb instead
  PauseEvent pause = PauseEvent::kNone;
  CacheMisses cache_misses = CacheMisses::kLastLevel;
  double width = 0;    // instructions that it can begin in a cycle
  double l1d_kib = 0;  // its first-level data cache

  bool IsArm() const { return pause_cycles == 0; }
};

std::span<const CpuModel> CpuModels();

// Null where there is none of that name.
const CpuModel* FindCpuModel(std::string_view name);

}  // namespace vcpulse::accuracy
