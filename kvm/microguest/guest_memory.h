#pragma once

// The memory of a microguest. Guest-physical addresses; virtual ones are the same.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kvm/microguest/program.h"

namespace vcpulse::kvm::microguest {

inline constexpr size_t kMostVcpus = 16;

inline constexpr uint64_t kPageTables = 0x1000;  // up to kTables
inline constexpr uint64_t kTables = 0x8000;      // of segments and interrupts (x86), up to kCode
inline constexpr uint64_t kCode = 0x10000;
// A page for each vCPU: its mailbox, its stack below kStack, and a node of the program "queue" at
// kNode. The queue begins with one more node, in the page at 0.
inline constexpr uint64_t kMailboxes = 0x20000;
inline constexpr uint64_t kStack = 0xe00;
inline constexpr uint64_t kNode = 0xf00;
inline constexpr uint64_t kShared = 0x30000;  // words that all vCPUs share
inline constexpr size_t kSharedWords = 2;
inline constexpr uint64_t kData = 0x200000;
inline constexpr size_t kDataBytes = 8 << 20;  // what the programs need
inline constexpr size_t kMostDataBytes = 256 << 20;
// Nothing is there: a store leaves the guest (arm64).
inline constexpr uint64_t kNowhere = 0x40000000;

// What a vCPU and its VMM tell each other. The offsets are those of programs_*.S.
struct Mailbox {
  uint64_t turns;      // at the program's end, by the guest
  uint64_t limit;      // it ends after so many turns; may fall at any time
  uint64_t looks;      // as turns
  uint64_t spin_bits;  // PhaseBits, for the program "phases"
};
static_assert(sizeof(Mailbox) == 32);

// Anonymous memory of this process, zero at first.
class GuestMemory {
 public:
  // With so much data, kDataBytes at least and kMostDataBytes at most. Errors: ResourceExhausted.
  static absl::StatusOr<GuestMemory> Create(size_t data_bytes = kDataBytes);
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;
  ~GuestMemory();

  std::byte* begin() const { return begin_; }
  size_t bytes() const { return kData + data_bytes_; }
  size_t data_bytes() const { return data_bytes_; }
  template <typename T>
  T* At(uint64_t address) const {
    return reinterpret_cast<T*>(begin_ + address);
  }
  Mailbox& MailboxOf(size_t vcpu) const { return *At<Mailbox>(kMailboxes + vcpu * 0x1000); }

  // Every lock is free again.
  void FreeLocks() const;

  // Makes the first `bytes` (a power of two, of data_bytes() at most) of the data a round of all
  // their cache lines, each with the address of the next one, in an order that no prefetcher
  // foresees. They take that much of the host's memory from then on.
  void ChainData(size_t bytes) const;

 private:
  GuestMemory(std::byte* begin, size_t data_bytes) : begin_(begin), data_bytes_(data_bytes) {}
  std::byte* begin_ = nullptr;
  size_t data_bytes_ = 0;
};

}  // namespace vcpulse::kvm::microguest
