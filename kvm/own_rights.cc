#include "kvm/own_rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "absl/strings/str_split.h"
#include "kvm/base/text.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

// The words of the first line that begins with `label`, without it.
std::vector<std::string> WordsAfter(std::string_view text, std::string_view label) {
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    const std::string_view known = ToStd(line);
    if (!known.starts_with(label)) continue;
    return absl::StrSplit(ToAbsl(known.substr(label.size())), absl::ByAnyChar(" \t"),
                          absl::SkipEmpty());
  }
  return {};
}

template <typename T>
std::optional<T> NumberAt(const std::vector<std::string>& words, size_t index, int base = 10) {
  if (index >= words.size()) return std::nullopt;
  return ParseNumber<T>(words[index], base);
}

constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

}  // namespace

OwnRights ParseOwnRights(std::string_view status) {
  OwnRights rights;
  rights.effective = NumberAt<uint64_t>(WordsAfter(status, "CapEff:"), 0, 16);
  rights.seccomp = NumberAt<int>(WordsAfter(status, "Seccomp:"), 0);
  rights.effective_uid = NumberAt<unsigned>(WordsAfter(status, "Uid:"), 1);
  return rights;
}

OwnRights ReadOwnRights(const std::string& root) {
  OwnRights rights = ParseOwnRights(ReadSmallFile(root + "/proc/self/status").value_or(""));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
    rights.open_files = limit.rlim_max;
  }
  return rights;
}

bool PidsAreOurs(const std::string& root) {
  // The NSpid line shows this process in each namespace from that of the mount down to its own.
  const auto status = ReadSmallFile(root + "/proc/self/status");
  return status && ParseNsPids(*status).size() <= 1;
}

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
