#include "kvm/bpf/bpf_host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kvm/base/text.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {

namespace {

// PROC_PID_INIT_INO of the kernel.
constexpr char kPidsOfTheHost[] = "pid:[4026531836]";
// The last number of uid_map where it maps all of them, as the first namespace does.
constexpr char kAllUsers[] = "4294967295";

constexpr char kOfAContainer[] = "run vcpulse outside of containers, or in one with --pid=host";

}  // namespace

BpfHost ReadBpfHost(const std::string& root) {
  BpfHost host{.rights = ReadOwnRights(root),
               .has_types = access((root + "/sys/kernel/btf/vmlinux").c_str(), R_OK) == 0,
               .lockdown = ParseLockdown(
                   ReadSmallFile(root + "/sys/kernel/security/lockdown").value_or(""))};
  std::error_code error;
  const auto pids = std::filesystem::read_symlink(root + "/proc/self/ns/pid", error);
  host.own_pids = !error && pids != kPidsOfTheHost;
  const std::string users = ReadSmallFile(root + "/proc/self/uid_map").value_or("");
  const std::vector<std::string> range =
      absl::StrSplit(users, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  host.own_users = !range.empty() && range.back() != kAllUsers;
  utsname names{};
  if (uname(&names) == 0) host.kernel_release = static_cast<const char*>(names.release);
  return host;
}

std::string ParseLockdown(std::string_view text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  const std::string_view mode = text.substr(open + 1, close - open - 1);
  return mode == "none" ? "" : std::string(mode);
}

std::string WhyNoBpf(const BpfHost& host) {
  const bool may_load = host.rights.MayLoadBpf();
  if (!may_load || !host.rights.MayMonitor()) {
    return absl::StrCat("this process lacks ", may_load ? "" : "CAP_BPF",
                        may_load || host.rights.MayMonitor() ? "" : " and ",
                        host.rights.MayMonitor() ? "" : "CAP_PERFMON",
                        ": run as root, or `setcap cap_bpf,cap_perfmon=ep $(which vcpulse)`");
  }
  if (host.own_users) {
    return "this process is root in a user namespace alone: run vcpulse as root of the host";
  }
  // The kernel's program knows threads by the host's numbers.
  if (host.own_pids) {
    return absl::StrCat("this process has PIDs of its own namespace: ", kOfAContainer);
  }
  if (!host.has_types) {
    return absl::StrCat("the kernel ", host.kernel_release,
                        " has no types to read (/sys/kernel/btf/vmlinux): it needs one with "
                        "CONFIG_DEBUG_INFO_BTF");
  }
  return "";
}

std::string WhyBpfWasRefused(const BpfHost& host, int error) {
  if (error == EPERM && host.lockdown == "confidentiality") {
    return absl::StrCat("the kernel is locked down (", host.lockdown,
                        " in /sys/kernel/security/lockdown)");
  }
  if (error == EPERM && host.rights.seccomp.value_or(0) != 0) {
    return "a seccomp filter, or a security module, forbids bpf(2): a container's runtime can "
           "allow it";
  }
  if (error == EPERM) return "a security module forbids bpf(2): its audit log names the rule";
  if (error == EACCES || error == EINVAL) {
    return absl::StrCat("the verifier of kernel ", host.kernel_release, " refuses the program");
  }
  if (error == ENOSYS) return "this kernel has no bpf(2): it needs one with CONFIG_BPF_SYSCALL";
  if (error == ENOMEM) {
    return "the kernel has no memory for its maps, about 5 MiB: raise the limit of its cgroup";
  }
  if (error == EMFILE) {
    return "too many open descriptors, of which BPF takes nine: raise `ulimit -n`";
  }
  return absl::StrCat("bpf(2): ", std::strerror(error));
}

}  // namespace vcpulse::kvm
