#pragma once

// Code of a guest that is at hand, and whether it waits in place. Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kvm/hotspots/guest_code.h"
#include "kvm/hotspots/wait_loops.h"

namespace vcpulse::hotspots {

// Pieces of code by address; they may overlap.
class KnownCode {
 public:
  // Another piece that begins at the same address takes the place of the first one.
  void Add(kvm::GuestCode code);
  // As Symbols::Move.
  void Move(uint64_t by) { moved_by_ = by; }

  // Where the code of a running guest is found in this one.
  struct Place {
    enum class Found {
      kNotCompared,  // no code of its kernel was given, or none of this is known
      kHere,         // as this was moved
      kMoved,        // by `moved_by` instead, whole pages; only where Move was not called
      kNowhere,      // it is another kernel's, or lies elsewhere than Move says
    };
    Found found = Found::kNotCompared;
    uint64_t moved_by = 0;
  };
  // `running` was read from the guest's memory; only code of its kernel is compared. Looking for it
  // takes about 10 ms for each 16 bytes, of which at most 1 KiB is looked for.
  Place Locate(std::span<const kvm::GuestCode> running) const;

  // Whether the code at `address` waits in place (kvm::IsInWaitLoop, of kvm::kCodeAround) in any
  // piece; nothing where the code there is not known.
  std::optional<bool> WaitsAt(uint64_t address) const;

  // The code around it, as far as it is known in one piece; where it lies after Move.
  std::optional<kvm::GuestCode> Around(uint64_t address) const;

  bool empty() const { return pieces_.empty(); }

 private:
  struct Piece {
    std::vector<uint8_t> bytes;
    kvm::Isa isa = kvm::kHostIsa;
  };

  // Calls take(part) with what each piece has around the address, as long as it returns true.
  template <typename Take>
  void ForEachPartAround(uint64_t address, Take take) const;
  // Whether these bytes lie there; nothing where the code there is not known.
  std::optional<bool> IsAt(uint64_t address, std::span<const uint8_t> bytes) const;
  // Where these bytes begin; nothing where nowhere or in several places.
  std::optional<uint64_t> OnlyPlaceOf(std::span<const uint8_t> bytes) const;

  std::map<uint64_t, Piece> pieces_;
  uint64_t moved_by_ = 0;
};

}  // namespace vcpulse::hotspots
