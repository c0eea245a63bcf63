#include "kvm/own_rights.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "kvm/proc_files.h"
#include "kvm/text.h"

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

OwnRights ParseOwnRights(std::string_view status, std::string_view limits) {
  OwnRights rights;
  rights.effective = NumberAt<uint64_t>(WordsAfter(status, "CapEff:"), 0, 16);
  rights.seccomp = NumberAt<int>(WordsAfter(status, "Seccomp:"), 0);
  rights.effective_uid = NumberAt<unsigned>(WordsAfter(status, "Uid:"), 1);
  // Soft limit, hard limit, unit.
  rights.open_files = NumberAt<uint64_t>(WordsAfter(limits, "Max open files"), 1);
  return rights;
}

OwnRights ReadOwnRights(const std::string& root) {
  return ParseOwnRights(ReadSmallFile(root + "/proc/self/status").value_or(""),
                        ReadSmallFile(root + "/proc/self/limits").value_or(""));
}

}  // namespace vcpulse::kvm
