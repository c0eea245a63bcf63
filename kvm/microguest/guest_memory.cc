#include "kvm/microguest/guest_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace vcpulse::kvm::microguest {

absl::StatusOr<GuestMemory> GuestMemory::Create(size_t data_bytes) {
  void* const begin = mmap(nullptr, kData + data_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return absl::ErrnoToStatus(errno, "no memory for a guest");
  GuestMemory memory(static_cast<std::byte*>(begin), data_bytes);
  std::ranges::copy(AllCode(), memory.begin() + kCode);
  return memory;
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), data_bytes_(other.data_bytes_) {}

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(data_bytes_, other.data_bytes_);
  return *this;
}

GuestMemory::~GuestMemory() {
  if (begin_ != nullptr) munmap(begin_, bytes());
}

void GuestMemory::FreeLocks() const {
  std::ranges::fill(std::span(At<uint64_t>(kShared), kSharedWords), 0);
  *At<uint64_t>(kNode) = 0;
  for (size_t i = 0; i < kMostVcpus; ++i) *At<uint64_t>(kMailboxes + i * 0x1000 + kNode) = 0;
}

void GuestMemory::ChainData(size_t bytes) const {
  // A linear congruential generator of full period visits every cache line once.
  constexpr size_t kLine = 64;
  const size_t lines = bytes / kLine;
  size_t line = 0;
  for (size_t i = 0; i < lines; ++i) {
    const size_t next = (line * 0x5851f42d + 0x14057b7f) % lines;
    *At<uint64_t>(kData + line * kLine) = kData + next * kLine;
    line = next;
  }
}

}  // namespace vcpulse::kvm::microguest
