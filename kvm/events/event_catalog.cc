#include "kvm/events/event_catalog.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Folders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code unknown;
    if (it->is_directory(unknown)) names.push_back(it->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// Where tracefs is mounted, and where debugfs shows it on older systems.
std::string TracepointFolder(const std::string& root) {
  for (const char* mounted : {"sys/kernel/tracing", "sys/kernel/debug/tracing"}) {
    std::string folder = absl::StrCat(root, root.ends_with('/') ? "" : "/", mounted, "/events");
    std::error_code error;
    fs::directory_iterator it(folder, error);
    if (!error) return folder;
  }
  return "";
}

// Names become parts of a path: letters, digits, "_" and "-" cannot lead elsewhere.
bool IsTracepointName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-';
  });
}

}  // namespace

EventCatalog::EventCatalog(const std::string& root)
    : pmus_(ReadPmus(root)), core_pmus_(CorePmus(pmus_)), tracepoints_(TracepointFolder(root)) {}

const Pmu* EventCatalog::FindPmu(std::string_view name) const {
  const auto found = std::ranges::find(pmus_, name, &Pmu::name);
  return found == pmus_.end() ? nullptr : &*found;
}

absl::StatusOr<uint64_t> EventCatalog::TracepointId(std::string_view system,
                                                    std::string_view name) const {
  if (tracepoints_.empty()) {
    return absl::FailedPreconditionError(
        "the tracepoints of this host cannot be read: /sys/kernel/tracing is not mounted "
        "(`mount -t tracefs tracefs /sys/kernel/tracing`) or not readable (run as root)");
  }
  std::optional<uint64_t> id;
  if (IsTracepointName(system) && IsTracepointName(name)) {
    const auto text =
        ReadSmallFile(absl::StrCat(tracepoints_, "/", ToAbsl(system), "/", ToAbsl(name), "/id"));
    if (text) id = ParseNumber<uint64_t>(ToStd(absl::StripAsciiWhitespace(*text)));
  }
  if (!id) {
    return absl::NotFoundError("this host has no such tracepoint, or its id may not be read");
  }
  return *id;
}

std::vector<std::string> EventCatalog::Tracepoints() const {
  std::vector<std::string> names;
  if (tracepoints_.empty()) return names;
  for (const std::string& system : Folders(tracepoints_)) {
    for (const std::string& name : Folders(absl::StrCat(tracepoints_, "/", system))) {
      names.push_back(absl::StrCat(system, ":", name));
    }
  }
  return names;
}

}  // namespace vcpulse::kvm
