#include "kvm/bpf/thread_keeper.h"

#include <utility>

namespace vcpulse::kvm {
namespace {

// The program takes a microsecond or two to write a record. Beyond some, its CPU itself was taken
// away (a host that is a virtual machine).
constexpr int kTries = 1000;

// An acquire load: none of these moves past the second load of the sequence.
template <typename T>
void Load(const T& from, T& to) {
  to = __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}

bool CopyWhole(const KeptRecord& record, KeptRecord& copy) {
  Load(record.sequence, copy.sequence);
  if ((copy.sequence & 1) != 0) return false;
  Load(record.state, copy.state);
  Load(record.cpu, copy.cpu);
  Load(record.tid, copy.tid);
  Load(record.since_ns, copy.since_ns);
  Load(record.taken_ns, copy.taken_ns);
  Load(record.run_ns, copy.run_ns);
  Load(record.run_delay_ns, copy.run_delay_ns);
  Load(record.enabled_ns, copy.enabled_ns);
  Load(record.running_ns, copy.running_ns);
  for (int k = 0; k < kKeptEvents; ++k) Load(record.counts[k], copy.counts[k]);
  return __atomic_load_n(&record.sequence, __ATOMIC_RELAXED) == copy.sequence;
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

bool HeldThread::CopyTo(std::span<KeptRecord> copies) const {
  if (records_.empty()) return false;
  for (int i = 0; i < kTries; ++i) {
    if (!CopyAll(records_, copies)) continue;
    // After the copy: had another taken its place before, something may have gone there already.
    return is_current_->load(std::memory_order_acquire) && copies[0].taken_ns != 0;
  }
  return false;
}

bool HeldThread::IsStillAs(const KeptRecord& copy) const {
  return !records_.empty() && (copy.sequence & 1) == 0 &&
         __atomic_load_n(&records_.front().sequence, __ATOMIC_ACQUIRE) == copy.sequence &&
         is_current_->load(std::memory_order_acquire);
}

}  // namespace vcpulse::kvm
