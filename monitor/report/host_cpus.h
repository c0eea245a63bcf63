#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace vcpulse::report {

// On which CPUs of the host the thread of one vCPU was, by the readings of the scheduler (about one
// a second: what it did between two of them is not seen; `migrations` counts all). Bounded.
class HostCpus {
 public:
  struct Move {
    int64_t at_ns = 0;  // CLOCK_MONOTONIC, of the reading that found it there first
    uint32_t cpu = 0;
  };
  static constexpr size_t kMostCpus = 8192;  // others are left out
  static constexpr size_t kMostMoves = 500;  // later ones are counted alone

  // In the order of time.
  void Add(int64_t at_ns, uint32_t cpu);

  const std::map<uint32_t, uint64_t>& readings() const { return readings_; }  // by CPU
  uint64_t AllReadings() const { return all_readings_; }
  // Where it was found first, then each reading that found it elsewhere than the one before.
  const std::vector<Move>& moves() const { return moves_; }
  uint64_t moves_omitted() const { return moves_omitted_; }

 private:
  std::map<uint32_t, uint64_t> readings_;
  uint64_t all_readings_ = 0;
  uint32_t latest_ = 0;
  std::vector<Move> moves_;
  uint64_t moves_omitted_ = 0;
};

}  // namespace vcpulse::report
