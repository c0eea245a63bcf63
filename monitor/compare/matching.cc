#include "monitor/compare/matching.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::compare {
namespace {

constexpr size_t kVmsListed = 8;  // names in one message

std::string LabelsOf(const std::vector<VmGroup>& groups) {
  std::vector<std::string> labels;
  labels.reserve(groups.size());
  for (const VmGroup& group : groups) labels.push_back(group.label);
  return labels.empty() ? "none" : Listed(labels, kVmsListed);
}

bool HasPid(const Recording& recording, const VmGroup& group, const std::string& pid) {
  return std::ranges::any_of(group.numbers, [&](uint32_t number) {
    return absl::StrCat(recording.timetable().vms().at(number).instance.pid()) == pid;
  });
}

// Those that are meant: by name; where none is called so, by UUID; else by PID.
std::vector<VmGroup> Wanted(const Recording& recording, const std::optional<std::string>& vm) {
  std::vector<VmGroup> all = recording.Groups();
  if (!vm) return all;
  const auto keep = [&all](const auto& is_meant) {
    std::vector<VmGroup> kept;
    std::ranges::copy_if(all, std::back_inserter(kept), is_meant);
    return kept;
  };
  std::vector<VmGroup> kept = keep([&](const VmGroup& g) { return g.name == *vm; });
  if (kept.empty()) {
    kept = keep([&](const VmGroup& g) { return absl::EqualsIgnoreCase(g.uuid, *vm); });
  }
  if (kept.empty()) kept = keep([&](const VmGroup& g) { return HasPid(recording, g, *vm); });
  return kept;
}

class Matching {
 public:
  Matching(std::vector<VmGroup> a, std::vector<VmGroup> b) : a_(std::move(a)), b_(std::move(b)) {}

  Matched Run() {
    const bool one_of_each = a_.size() == 1 && b_.size() == 1;
    TakePairs([](const VmGroup& g) { return g.name; });
    TakePairs([](const VmGroup& g) { return g.label; });  // with the PID where names are not enough
    TakePairs([](const VmGroup& g) { return absl::AsciiStrToLower(g.uuid); });
    if (one_of_each && !a_.empty()) {
      matched_.notes.push_back(absl::StrCat("VM ", a_[0].label, " of A is compared with ",
                                            b_[0].label, " of B, as each has no other"));
      Take(0, 0);
    }
    Complain("A", a_, "B");
    Complain("B", b_, "A");
    return std::move(matched_);
  }

 private:
  // Those of a key that one group of each has and is not empty.
  template <typename KeyOf>
  void TakePairs(const KeyOf& key_of) {
    for (size_t i = 0; i < a_.size();) {
      const std::string key = key_of(a_[i]);
      const auto same = [&](const VmGroup& g) { return key_of(g) == key; };
      const auto found = std::ranges::find_if(b_, same);
      const bool unique = !key.empty() && std::ranges::count_if(a_, same) == 1 &&
                          std::ranges::count_if(b_, same) == 1;
      if (unique) {
        Take(i, static_cast<size_t>(found - b_.begin()));
      } else {
        ++i;
      }
    }
  }

  void Take(size_t i, size_t j) {
    matched_.a.push_back(std::move(a_[i]));
    matched_.b.push_back(std::move(b_[j]));
    a_.erase(a_.begin() + static_cast<std::ptrdiff_t>(i));
    b_.erase(b_.begin() + static_cast<std::ptrdiff_t>(j));
  }

  void Complain(const char* side, const std::vector<VmGroup>& left, const char* other) {
    if (left.empty()) return;
    matched_.notes.push_back(absl::StrCat("not compared, as ", other,
                                          " has no one VM of that name or UUID: ", LabelsOf(left),
                                          " of ", side));
  }

  std::vector<VmGroup> a_;
  std::vector<VmGroup> b_;
  Matched matched_;
};

}  // namespace

absl::StatusOr<Matched> MatchVms(const Recording& a, const Recording& b,
                                 const std::optional<std::string>& vm) {
  for (const Recording* recording : {&a, &b}) {
    if (!Wanted(*recording, vm).empty()) continue;
    const std::vector<VmGroup> all = recording->Groups();
    return absl::NotFoundError(all.empty()
                                   ? absl::StrCat(recording->Name(), ": holds no sample of a vCPU")
                                   : absl::StrCat(recording->Name(), ": no VM is called '",
                                                  Printable(*vm), "'; there are: ", LabelsOf(all)));
  }
  Matched matched = Matching(Wanted(a, vm), Wanted(b, vm)).Run();
  if (!matched.a.empty()) return matched;
  return absl::NotFoundError(absl::StrCat("no VM of one name or UUID is in both: ", a.Name(),
                                          " has ", LabelsOf(a.Groups()), "; ", b.Name(), " has ",
                                          LabelsOf(b.Groups())));
}

}  // namespace vcpulse::compare
