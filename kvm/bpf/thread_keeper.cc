#include "kvm/bpf/thread_keeper.h"

#include <cstring>
#include <utility>

namespace vcpulse::kvm {
namespace {

// The program takes a microsecond or two to write a record. Beyond some, its CPU itself was taken
// away (a host that is a virtual machine).
constexpr int kTries = 1000;

bool CopyWhole(const KeptRecord& record, KeptRecord& copy) {
  const uint32_t before = __atomic_load_n(&record.sequence, __ATOMIC_ACQUIRE);
  if ((before & 1) != 0) return false;
  std::memcpy(&copy, &record, sizeof(copy));
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&record.sequence, __ATOMIC_RELAXED) == before;
}

// All of them, as they were written together.
bool CopyAll(std::span<const KeptRecord> records, std::span<KeptRecord> copies) {
  for (size_t g = 0; g < records.size(); ++g) {
    if (!CopyWhole(records[g], copies[g])) return false;
    if (copies[g].taken_ns != copies[0].taken_ns || copies[g].since_ns != copies[0].since_ns) {
      return false;
    }
  }
  return true;
}

}  // namespace

HeldThread::~HeldThread() {
  if (keeper_ != nullptr) keeper_->Release(*this);
}

HeldThread::HeldThread(HeldThread&& other) noexcept { *this = std::move(other); }

HeldThread& HeldThread::operator=(HeldThread&& other) noexcept {
  std::swap(keeper_, other.keeper_);
  std::swap(tid_, other.tid_);
  std::swap(records_, other.records_);
  std::swap(is_current_, other.is_current_);
  return *this;
}

HeldThread::Look HeldThread::CopyTo(std::span<KeptRecord> copies) const {
  if (records_.empty()) return Look::kNothing;
  for (int i = 0; i < kTries; ++i) {
    if (!CopyAll(records_, copies)) continue;
    // After the copy: had another taken its place before, something may have gone there already.
    if (!is_current_->load(std::memory_order_acquire)) return Look::kNothing;
    if (copies[0].state == KEPT_UNKNOWN) return Look::kNothingYet;
    return copies[0].taken_ns == 0 ? Look::kNothing : Look::kWhole;
  }
  return Look::kNothing;
}

}  // namespace vcpulse::kvm
