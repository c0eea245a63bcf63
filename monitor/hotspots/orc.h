#pragma once

// How the x86-64 kernel of Linux says where each of its functions keeps its caller: the sections
// .orc_unwind_ip and .orc_unwind of a vmlinux (arch/x86/include/asm/orc_types.h). Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vcpulse::hotspots {

// Where the frame of a function begins (the stack pointer before it was called; the return address
// lies below it), and where the caller's frame register is kept.
struct OrcFrame {
  enum class Base : uint8_t { kStack, kFrame, kAtStack, kAtFrame };

  Base base = Base::kStack;  // kAt...: it is in memory there
  int16_t offset = 0;
  enum class Kept : uint8_t { kUnchanged, kBelowCaller, kAtFrame };
  Kept kept = Kept::kUnchanged;
  int16_t kept_offset = 0;

  bool operator==(const OrcFrame&) const = default;
};

class OrcTable {
 public:
  OrcTable() = default;  // knows nothing

  // `places` are 4 bytes each, relative to where they lie, of a section that begins at
  // `places_address`; `entries` are 6 bytes each. What has no pair is left out, and what lies
  // behind 4 Mi pairs. The format of 6.4 and newer differs in the numbers of types; it is
  // recognised by which number most entries have, as most are of ordinary calls.
  static OrcTable Parse(std::span<const uint8_t> places, uint64_t places_address,
                        std::span<const uint8_t> entries);

  // As Symbols::Move.
  void Move(uint64_t by) { moved_by_ = by; }
  bool empty() const { return places_.empty(); }

  // Nothing where the code there is not known, has no caller, or was interrupted (its caller is in
  // saved registers).
  std::optional<OrcFrame> Find(uint64_t address) const;

 private:
  struct Place {
    uint64_t address = 0;  // from here to the next one
    uint64_t entry = 0;    // as it lies in the file
  };

  std::vector<Place> places_;  // ascending
  uint64_t call_type_ = 0;
  uint64_t type_mask_ = 0;
  uint64_t moved_by_ = 0;
};

}  // namespace vcpulse::hotspots
