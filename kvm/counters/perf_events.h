#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvm/base/fd.h"
#include "kvm/counters/event_page.h"

namespace vcpulse::kvm {

// A value, or the errno that says why there is none (0: there is one).
template <typename T>
struct OrErrno {
  T value{};
  int error = 0;

  bool ok() const { return error == 0; }
};

// The system calls of perf events and nothing more: production below, a fake in tests/fakes. All
// members may be called from any thread; the reads allocate nothing.
class PerfEvents {
 public:
  virtual ~PerfEvents() = default;

  // perf_event_open(attr, tid, any CPU, group_fd, PERF_FLAG_FD_CLOEXEC). group_fd -1 makes a
  // leader.
  virtual OrErrno<Fd> Open(perf_event_attr& attr, pid_t tid, int group_fd) = 0;
  // perf_event_open(attr, any thread, cpu, no group, PERF_FLAG_FD_CLOEXEC).
  virtual OrErrno<Fd> OpenOnCpu(perf_event_attr& attr, int cpu) = 0;
  // PERF_EVENT_IOC_ID.
  virtual OrErrno<uint64_t> Id(int fd) = 0;
  // PERF_EVENT_IOC_ENABLE with PERF_IOC_FLAG_GROUP. Returns 0 or errno.
  virtual int EnableGroup(int leader_fd) = 0;
  // One read(2) of the leader. Gives the number of 64-bit words read.
  virtual OrErrno<size_t> Read(int leader_fd, std::span<uint64_t> words) = 0;
  // mmap(2) of the leader's page; empty where there is none.
  virtual EventPage Page(int /*leader_fd*/) { return {}; }
};

// The kernel.
class KernelPerfEvents final : public PerfEvents {
 public:
  OrErrno<Fd> Open(perf_event_attr& attr, pid_t tid, int group_fd) override;
  OrErrno<Fd> OpenOnCpu(perf_event_attr& attr, int cpu) override;
  OrErrno<uint64_t> Id(int fd) override;
  int EnableGroup(int leader_fd) override;
  OrErrno<size_t> Read(int leader_fd, std::span<uint64_t> words) override;
  EventPage Page(int leader_fd) override;
};

}  // namespace vcpulse::kvm
