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
// A page for each vCPU: its mailbox, its stack below kStack, and the word that the program "queue"
// waits for at 0xf00.
inline constexpr uint64_t kMailboxes = 0x20000;
inline constexpr uint64_t kStack = 0xe00;
inline constexpr uint64_t kShared = 0x30000;  // words that all vCPUs share
inline constexpr size_t kSharedWords = 2;
inline constexpr uint64_t kData = 0x200000;
inline constexpr size_t kDataBytes = 256 << 20;
inline constexpr size_t kMemoryBytes = kData + kDataBytes;
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
  // Errors: ResourceExhausted.
  static absl::StatusOr<GuestMemory> Create();
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;
  ~GuestMemory();

  std::byte* begin() const { return begin_; }
  template <typename T>
  T* At(uint64_t address) const {
    return reinterpret_cast<T*>(begin_ + address);
  }
  Mailbox& MailboxOf(size_t vcpu) const { return *At<Mailbox>(kMailboxes + vcpu * 0x1000); }

  // Makes the first `bytes` (a power of two, of kDataBytes at most) of the data a round of all
  // their cache lines, each with the address of the next one, in an order that no prefetcher
  // foresees. They take that much of the host's memory from then on.
  void ChainData(size_t bytes) const;

 private:
  explicit GuestMemory(std::byte* begin) : begin_(begin) {}
  std::byte* begin_ = nullptr;
};

}  // namespace vcpulse::kvm::microguest
