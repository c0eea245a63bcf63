#pragma once

// Sections of ORC, for tests.

#include <cstdint>
#include <cstring>
#include <vector>

namespace vcpulse::hotspots {

inline constexpr uint64_t kOrcPlaces = 0xffffffff82000000;  // where .orc_unwind_ip begins

struct OrcBytes {
  std::vector<uint8_t> places;
  std::vector<uint8_t> entries;

  // `registers` and `type` as orc_types.h numbers them: register of the stack | that of the frame
  // << 4.
  void Add(uint64_t address, int16_t offset, int16_t kept_offset, uint8_t registers, uint8_t type) {
    const auto distance = static_cast<int32_t>(address - (kOrcPlaces + places.size()));
    Append(places, distance);
    Append(entries, offset);
    Append(entries, kept_offset);
    entries.push_back(registers);
    entries.push_back(type);
  }

 private:
  template <typename T>
  static void Append(std::vector<uint8_t>& to, T value) {
    to.resize(to.size() + sizeof(value));
    std::memcpy(to.data() + to.size() - sizeof(value), &value, sizeof(value));
  }
};

}  // namespace vcpulse::hotspots
