#include "kvm/counters/perf_events.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace vcpulse::kvm {

namespace {

OrErrno<Fd> OpenEvent(perf_event_attr& attr, pid_t tid, int cpu, int group_fd) {
  const long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return {.error = errno};
  return {.value = Fd(static_cast<int>(fd))};
}

}  // namespace

OrErrno<Fd> KernelPerfEvents::Open(perf_event_attr& attr, pid_t tid, int group_fd) {
  return OpenEvent(attr, tid, /*cpu=*/-1, group_fd);
}

OrErrno<Fd> KernelPerfEvents::OpenOnCpu(perf_event_attr& attr, int cpu) {
  return OpenEvent(attr, /*tid=*/-1, cpu, /*group_fd=*/-1);
}

OrErrno<uint64_t> KernelPerfEvents::Id(int fd) {
  uint64_t id = 0;
  if (ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0) return {.error = errno};
  return {.value = id};
}

int KernelPerfEvents::EnableGroup(int leader_fd) {
  return ioctl(leader_fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) == 0 ? 0 : errno;
}

OrErrno<size_t> KernelPerfEvents::Read(int leader_fd, std::span<uint64_t> words) {
  const ssize_t got = ::read(leader_fd, words.data(), words.size_bytes());
  if (got < 0) return {.error = errno};
  return {.value = static_cast<size_t>(got) / sizeof(uint64_t)};
}

EventPage KernelPerfEvents::Page(int leader_fd) { return EventPage::Of(leader_fd); }

}  // namespace vcpulse::kvm
