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

// Pieces of code by address. Where two overlap, the one that begins later is looked at.
class KnownCode {
 public:
  // Another piece that begins at the same address takes the place of the first one.
  void Add(kvm::GuestCode code);
  // As Symbols::Move.
  void Move(uint64_t by) { moved_by_ = by; }

  // By how much this code was moved when it was loaded (KASLR), where `loaded` was read from
  // memory: that of which most of it is found here, each once and by whole pages. Nothing where
  // none is, or Move was called. Looks through all pieces: about 10 ms for each of `loaded`.
  std::optional<uint64_t> LoadOffset(std::span<const kvm::GuestCode> loaded) const;

  // Whether the code at `address` waits in place (kvm::IsInWaitLoop, of kvm::kCodeAround); nothing
  // where the code there is not known.
  std::optional<bool> WaitsAt(uint64_t address) const;

  // The code around it, as far as it is known in one piece; where it lies after Move.
  std::optional<kvm::GuestCode> Around(uint64_t address) const;

  size_t pieces() const { return pieces_.size(); }
  bool empty() const { return pieces_.empty(); }

 private:
  struct Piece {
    std::vector<uint8_t> bytes;
    kvm::Isa isa = kvm::kHostIsa;
  };

  // Where the piece that holds an address begins, and what of it is around that; no bytes: none.
  struct Part {
    uint64_t begin = 0;
    std::span<const uint8_t> bytes;
    kvm::Isa isa = kvm::kHostIsa;
  };
  Part PartAround(uint64_t address) const;
  // Where these bytes begin; nothing where nowhere or in several places.
  std::optional<uint64_t> OnlyPlaceOf(std::span<const uint8_t> bytes) const;

  std::map<uint64_t, Piece> pieces_;
  uint64_t moved_by_ = 0;
};

}  // namespace vcpulse::hotspots
