#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace vcpulse::kvm {

// The page that the kernel maps for an event (perf_event_open(2), perf_event_mmap_page). Its `lock`
// grows whenever the event goes onto a CPU's PMU, and for hardware events when it leaves it: a
// thread that is not on a CPU has not run while it stays the same, if its group always gets its
// place on the PMU. Reading it is a load, where read(2) is a system call.
class EventPage {
 public:
  EventPage() = default;
  // What `lock` is of; `unmap` is called at the end.
  EventPage(const uint32_t* lock, std::function<void()> unmap);

  // That of an event's descriptor; nothing where the kernel maps none (RLIMIT_MEMLOCK and
  // kernel.perf_event_mlock_kb without CAP_IPC_LOCK, an event that others write to).
  static EventPage Of(int fd);

  // Nothing where there is no page. Any thread.
  std::optional<uint32_t> Changes() const;

 private:
  struct Unmap {
    std::function<void()> unmap;
    void operator()(const uint32_t*) const {
      if (unmap) unmap();
    }
  };
  std::unique_ptr<const uint32_t, Unmap> lock_;
};

}  // namespace vcpulse::kvm
