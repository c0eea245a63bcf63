#include "kvm/drop_rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace vcpulse::kvm {
namespace {

constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

}  // namespace

uint64_t RightsToKeep(const KeptRights& kept, bool is_root) {
  uint64_t rights = 0;
  if (is_root) {
    rights |= Bit(CAP_CHOWN) | Bit(CAP_DAC_OVERRIDE) | Bit(CAP_DAC_READ_SEARCH) | Bit(CAP_FOWNER);
  }
  if (kept.low_ports) rights |= Bit(CAP_NET_BIND_SERVICE);
  return rights;
}

absl::Status DropRights(const KeptRights& kept) {
  // libc has no wrapper for these two.
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};  // the lower half first
  if (syscall(SYS_capget, &header, data.data()) != 0) {
    return absl::ErrnoToStatus(errno, "reading the own capabilities");
  }
  const uint64_t rights = RightsToKeep(kept, geteuid() == 0);
  for (size_t half = 0; half < data.size(); ++half) {
    const auto wanted = static_cast<uint32_t>(rights >> (32 * half));
    data.at(half).permitted &= wanted;
    data.at(half).effective &= wanted;
    data.at(half).inheritable = 0;
  }
  if (syscall(SYS_capset, &header, data.data()) != 0) {
    return absl::ErrnoToStatus(errno, "dropping capabilities");
  }
  // Root would have them back with exec.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return absl::ErrnoToStatus(errno, "setting no_new_privs");
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::kvm
