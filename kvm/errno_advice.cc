#include "kvm/errno_advice.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace vcpulse::kvm {
namespace {

std::string PermissionAdvice(const OpenFailure& failure) {
  const std::string level = failure.paranoid ? absl::StrCat(*failure.paranoid) : "unreadable";
  std::string advice =
      absl::StrCat("no permission to count in thread ", failure.tid,
                   failure.owner.empty() ? "" : absl::StrCat(" of ", failure.owner),
                   " (kernel.perf_event_paranoid is ", level, "): run as root, or ");
  if (failure.paranoid && *failure.paranoid > 2) {
    absl::StrAppend(&advice, "`sysctl kernel.perf_event_paranoid=2` and ");
  }
  absl::StrAppend(&advice, "give vcpulse the right with `setcap cap_perfmon=ep $(which vcpulse)`");
  return advice;
}

}  // namespace

std::string AdviseOnOpenFailure(const OpenFailure& failure) {
  switch (failure.error) {
    case EACCES:
    case EPERM:
      return PermissionAdvice(failure);
    case ENOENT:
      return absl::StrCat("this CPU's PMU has no event ", failure.event,
                          ", or there is no PMU (a virtual machine without vPMU); "
                          "/sys/bus/event_source/devices/*/events lists what exists");
    case ENODEV:
    case EOPNOTSUPP:
      return absl::StrCat("the PMU or the feature that ", failure.event,
                          " needs is absent, or a VM with a mediated vPMU is alive on this host");
    case EINVAL:
      return absl::StrCat(failure.event, " does not fit into the group with the other events");
    case ESRCH:
      return absl::StrCat("thread ", failure.tid, " is gone");
    case EMFILE:
      return "too many open descriptors (up to 8 for each vCPU): raise the hard limit, for example "
             "`ulimit -Hn 65536` or LimitNOFILE= of the service";
    case EBUSY:
      return "the PMU has an exclusive user: another profiler, or the NMI watchdog (`sysctl "
             "kernel.nmi_watchdog=0` frees its counter)";
    case E2BIG:
      return absl::StrCat("the kernel refuses the attributes of ", failure.event,
                          " as too large: please report this as a bug of vcpulse");
    default:
      return absl::StrCat("opening ", failure.event, " on thread ", failure.tid,
                          " failed: ", std::strerror(failure.error));
  }
}

}  // namespace vcpulse::kvm
