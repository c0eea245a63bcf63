#include "kvm/bpf/thread_keeper.h"

#include <cstring>
#include <utility>

namespace vcpulse::kvm {
namespace {

// The program takes a microsecond or two to write a record. Beyond some, its CPU itself was taken away
// (a host that is a virtual machine).
constexpr int kTries = 1000;

bool CopyWhole(const KeptRecord& record, KeptRecord& copy) {
  for (int i = 0; i < kTries; ++i) {
    const uint32_t before = __atomic_load_n(&record.sequence, __ATOMIC_ACQUIRE);
    if ((before & 1) != 0) continue;
    std::memcpy(&copy, &record, sizeof(copy));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&record.sequence, __ATOMIC_RELAXED) != before) continue;
    copy.sequence = before;
    return true;
  }
  return false;
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
    bool same = true;
    for (size_t g = 0; g < records_.size(); ++g) {
      if (!CopyWhole(records_[g], copies[g])) return Look::kNothing;
      same = same && copies[g].taken_ns == copies[0].taken_ns &&
             copies[g].since_ns == copies[0].since_ns;
    }
    if (!same) continue;  // they are written one after the other
    // After the copy: had another taken its place before, something may have gone there already.
    if (!is_current_->load(std::memory_order_acquire)) return Look::kNothing;
    if (copies[0].sequence == 0) return Look::kNothingYet;
    return copies[0].taken_ns == 0 ? Look::kNothing : Look::kWhole;
  }
  return Look::kNothing;
}

}  // namespace vcpulse::kvm
