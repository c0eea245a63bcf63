#include "kvm/tracing/sample_ring.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

namespace vcpulse::kvm {
namespace {

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

int ErrnoOf(int result) { return result == 0 ? 0 : errno; }

}  // namespace

OrErrno<SampleRing> SampleRing::Open(PerfEvents& perf, perf_event_attr attr, pid_t tid) {
  attr.disabled = 1;
  return Of(perf.Open(attr, tid, -1));
}

OrErrno<SampleRing> SampleRing::OpenOnCpu(PerfEvents& perf, perf_event_attr attr, int cpu) {
  attr.disabled = 1;
  return Of(perf.OpenOnCpu(attr, cpu));
}

OrErrno<SampleRing> SampleRing::Of(OrErrno<Fd> fd) {
  if (!fd.ok()) return {.error = fd.error};
  SampleRing ring;
  ring.fd_ = std::move(fd.value);
  return {.value = std::move(ring)};
}

int SampleRing::Map(size_t pages) {
  data_pages_ = pages;
  void* const mapped =
      ::mmap(nullptr, MappedBytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (mapped == MAP_FAILED) return errno;
  pages_ = mapped;
  return 0;
}

SampleRing& SampleRing::operator=(SampleRing&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_pages_, other.data_pages_);
  std::swap(pages_, other.pages_);
  std::swap(copy_, other.copy_);
  return *this;
}

SampleRing::~SampleRing() {
  if (pages_ != nullptr) ::munmap(pages_, MappedBytes());
}

size_t SampleRing::MappedBytes() const { return (data_pages_ + 1) * PageBytes(); }

int SampleRing::SetFilter(std::string_view filter) const {
  return ErrnoOf(::ioctl(fd_.get(), PERF_EVENT_IOC_SET_FILTER, std::string(filter).c_str()));
}

int SampleRing::WriteTo(const SampleRing& other) const {
  return ErrnoOf(::ioctl(fd_.get(), PERF_EVENT_IOC_SET_OUTPUT, other.fd_.get()));
}

int SampleRing::Enable() const { return ErrnoOf(::ioctl(fd_.get(), PERF_EVENT_IOC_ENABLE, 0)); }

int SampleRing::Disable() const { return ErrnoOf(::ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0)); }

void SampleRing::Take(absl::FunctionRef<void(std::span<const uint8_t>)> records) {
  auto* const control = static_cast<perf_event_mmap_page*>(pages_);
  const auto* const data = static_cast<const uint8_t*>(pages_) + PageBytes();
  const size_t size = data_pages_ * PageBytes();
  std::atomic_ref<__u64> head_of(control->data_head);
  const uint64_t head = head_of.load(std::memory_order_acquire);
  const uint64_t tail = control->data_tail;
  // Records wrap round the end of the ring: so they lie in one piece.
  copy_.resize(static_cast<size_t>(head - tail));
  for (size_t i = 0; i < copy_.size();) {
    const size_t at = (tail + i) % size;
    const size_t piece = std::min(copy_.size() - i, size - at);
    std::copy_n(data + at, piece, copy_.begin() + static_cast<ptrdiff_t>(i));
    i += piece;
  }
  std::atomic_ref<__u64>(control->data_tail).store(head, std::memory_order_release);
  records(copy_);
}

}  // namespace vcpulse::kvm
