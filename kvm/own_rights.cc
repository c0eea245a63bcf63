#include "kvm/own_rights.h"

#include <sys/resource.h>

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

}  // namespace vcpulse::kvm
