#include "kvm/counters/event_page.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace vcpulse::kvm {

EventPage::EventPage(const uint32_t* lock, std::function<void()> unmap)
    : lock_(lock, {std::move(unmap)}) {}

EventPage EventPage::Of(int fd) {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return {};
  return {&static_cast<const perf_event_mmap_page*>(page)->lock,
          [page, size] { munmap(page, size); }};
}

std::optional<uint32_t> EventPage::Changes() const {
  if (!lock_) return std::nullopt;
  return __atomic_load_n(lock_.get(), __ATOMIC_ACQUIRE);
}

}  // namespace vcpulse::kvm
