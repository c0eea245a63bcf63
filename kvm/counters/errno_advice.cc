#include "kvm/counters/errno_advice.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace vcpulse::kvm {
namespace {

constexpr char kSetcap[] = "give vcpulse the right with `setcap cap_perfmon=ep $(which vcpulse)`";
constexpr int kSeccompFilter = 2;  // SECCOMP_MODE_FILTER

// EACCES and EPERM. The kernel itself answers EACCES (kernel/events/core.c, perf_allow_kernel and
// perf_check_permission); EPERM comes from a filter or a security module.
OpenAdvice ExplainPermission(const OpenFailure& failure, const OwnRights& own) {
  const std::string level = failure.paranoid ? absl::StrCat(*failure.paranoid) : "unreadable";
  const std::string refused =
      absl::StrCat("no permission to count in thread ", failure.tid,
                   failure.owner.empty() ? "" : absl::StrCat(" of ", failure.owner),
                   " (kernel.perf_event_paranoid is ", level, ")");
  if (failure.error == EPERM && own.seccomp == kSeccompFilter) {
    return {absl::StrCat(refused,
                         ", as the seccomp filter of this process, such as a container's, "
                         "refuses perf_event_open"),
            "allow that call in the filter's profile, or run vcpulse outside of it"};
  }
  if (failure.paranoid && *failure.paranoid > 2) {
    if (own.MayMonitor()) {
      return {
          absl::StrCat(refused, " even with CAP_PERFMON, as this kernel wants all of root above 2"),
          "run as root, or `sysctl kernel.perf_event_paranoid=2`"};
    }
    return {refused,
            absl::StrCat("run as root, or `sysctl kernel.perf_event_paranoid=2` and ", kSetcap)};
  }
  if (own.MayMonitor()) {
    return {absl::StrCat(refused,
                         " although vcpulse has CAP_PERFMON: a security module or a "
                         "seccomp filter refuses it, or Linux is older than 5.9 and wants "
                         "CAP_SYS_PTRACE too"),
            "run as root, outside of containers"};
  }
  if (failure.paranoid && *failure.paranoid < 2) {
    return {absl::StrCat(refused, ", a level that opens one's own processes only"),
            absl::StrCat("run as root or as the owner of the VM, or ", kSetcap)};
  }
  return {refused, absl::StrCat("run as root, or ", kSetcap)};
}

OpenAdvice ExplainDescriptors(const OwnRights& own) {
  const std::string limit = own.open_files ? absl::StrCat(*own.open_files) : "unknown";
  return {absl::StrCat("too many open descriptors: each vCPU takes one per event (per core PMU on "
                       "hybrid CPUs) and two more, and "
                       "vcpulse has raised its soft limit to the hard one already, which is ",
                       limit),
          "raise the hard limit as root, for example with `ulimit -Hn 65536` or LimitNOFILE= of "
          "the service"};
}

}  // namespace

OpenAdvice ExplainOpenFailure(const OpenFailure& failure, const OwnRights& own) {
  const std::string& event = failure.event;
  switch (failure.error) {
    case EACCES:
    case EPERM:
      return ExplainPermission(failure, own);
    case ENOENT:
      return {
          absl::StrCat("no '", event, "' event: this host has no PMU, or its PMU lacks the event"),
          "in a virtual machine, give it a vPMU (QEMU: -cpu host,pmu=on; clouds: metal "
          "instances); /sys/bus/event_source/devices/*/events lists the events of a PMU"};
    case ENODEV:
    case EOPNOTSUPP:
      return {absl::StrCat("the PMU or the feature that ", event,
                           " needs is absent, or a VM with a mediated vPMU is alive on this host"),
              "`vcpulse doctor` tells which"};
    case EINVAL:
      return {absl::StrCat(event, " does not fit into the group with the other events"),
              "choose fewer events, for example with --event-set min"};
    case ESRCH:
      return {absl::StrCat("thread ", failure.tid, " is gone"), "it ended, or its VM did"};
    case EMFILE:
      return ExplainDescriptors(own);
    case ENFILE:
      return {"this host's table of open files is full",
              "raise it as root with `sysctl fs.file-max=N`"};
    case EBUSY:
      return {"the PMU has an exclusive user",
              "end the other profiler, or free the NMI watchdog's counter with `sysctl "
              "kernel.nmi_watchdog=0`"};
    case E2BIG:
      return {absl::StrCat("the kernel refuses the attributes of ", event, " as too large"),
              "please report this as a bug of vcpulse"};
    default:
      return {absl::StrCat("opening ", event, " on thread ", failure.tid,
                           " failed: ", std::strerror(failure.error)),
              ""};
  }
}

std::string AdviseOnOpenFailure(const OpenFailure& failure) {
  const OpenAdvice advice = ExplainOpenFailure(failure, ReadOwnRights(""));
  return advice.remedy.empty() ? advice.cause : absl::StrCat(advice.cause, ": ", advice.remedy);
}

}  // namespace vcpulse::kvm
