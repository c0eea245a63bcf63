#pragma once

#include <cstdint>
#include <random>
#include <string_view>

namespace vcpulse::accuracy {

// The same numbers on every machine: the engine is the standard's, the distributions are ours, as
// those of the standard library differ between libraries. No function of <cmath> is used.
class RandomSource {
 public:
  // A stream of its own for each name (FNV-1a of it is the seed).
  explicit RandomSource(std::string_view name) : engine_(Seed(name)) {}

  double Uniform(double from, double to) {
    return from + (to - from) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }

  // Around 1 with this standard deviation; a sum of twelve uniforms is normal enough, and ends at
  // six deviations. At least 0.
  double Around1(double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform(0, 1);
    const double value = 1 + sum * deviation;
    return value > 0 ? value : 0;
  }

 private:
  static uint64_t Seed(std::string_view name) {
    uint64_t hash = 14695981039346656037u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return hash;
  }

  std::mt19937_64 engine_;
};

}  // namespace vcpulse::accuracy
