#include "monitor/recorder/notices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace vcpulse::recorder {
namespace {

constexpr size_t kNamedVms = 3;

std::string Subject(const std::vector<std::string>& vms) {
  if (vms.size() == 1) return absl::StrCat("VM ", vms.front());
  const size_t named = std::min(kNamedVms, vms.size());
  std::string names = absl::StrJoin(vms.begin(), vms.begin() + static_cast<int>(named), ", ");
  if (vms.size() > named) absl::StrAppend(&names, " and ", vms.size() - named, " more");
  return absl::StrCat("VMs ", names);
}

}  // namespace

void Notices::Add(const std::string& vm, const std::string& text) {
  const auto same = std::ranges::find_if(notices_, [&](const Notice& notice) {
    return notice.text == text && notice.vms.empty() == vm.empty();
  });
  Notice& notice = same != notices_.end() ? *same : notices_.emplace_back(text);
  if (!vm.empty()) notice.vms.push_back(vm);
}

std::vector<std::string> Notices::Take() {
  std::vector<std::string> lines;
  for (const Notice& notice : std::exchange(notices_, {})) {
    lines.push_back(notice.vms.empty() ? notice.text
                                       : absl::StrCat(Subject(notice.vms), ": ", notice.text));
  }
  return lines;
}

}  // namespace vcpulse::recorder
