#include "monitor/compare/matching.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"

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

std::string DurationOf(uint64_t ns) {
  return absl::FormatDuration(absl::Nanoseconds(static_cast<int64_t>(ns)));
}

v1::Session SessionOf(const Recording& recording) {
  return recording.timetable().session().value_or(v1::Session());
}

std::string MethodOf(const v1::Session& session) {
  return std::string(reading::ResidencyMethodName(session.residency_method()).value_or(""));
}

// The numbers that both classifiers use; those of a profile have its name.
std::string ThresholdsOf(const v1::Session& session) {
  const v1::ClassifierSettings& c = session.classifier();
  return absl::StrFormat("%g/%g/%g/%g", c.halted_enter(), c.halted_leave(), c.spinning_below(),
                         c.productive_from());
}

class Differences {
 public:
  void Add(const char* what, const std::string& a, const std::string& b, const char* so) {
    if (a == b) return;
    const auto shown = [](const std::string& text) {
      return text.empty() ? std::string("not known") : Printable(text);
    };
    lines_.push_back(absl::StrCat(what, " differ: ", shown(a), " in A, ", shown(b), " in B", so));
  }
  void AddLine(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
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

Described Describe(const Recording& recording, const Measured& measured) {
  const v1::Session session = SessionOf(recording);
  return {.file = recording.Name(),
          .host_name = session.host_name(),
          .kernel_release = session.kernel_release(),
          .cpu_model = session.cpu_model(),
          .start_realtime_ns = recording.timetable().StartRealtimeNs(),
          .duration_ns = recording.timetable().Recording().Length(),
          .interval_ns = session.interval_ns(),
          .classifiers = absl::StrJoin(measured.classifiers, ", "),
          .profile = session.classifier().profile(),
          .residency_method = MethodOf(session),
          .loss = report::DescribeLoss(recording.read(), measured.unusable_ticks,
                                       recording.read().ended_in_order)};
}

std::vector<std::string> DifferingSettings(const Recording& a, const Measured& of_a,
                                           const Recording& b, const Measured& of_b) {
  const v1::Session in_a = SessionOf(a);
  const v1::Session in_b = SessionOf(b);
  Differences differ;
  if (!in_a.stream_id().empty() && in_a.stream_id() == in_b.stream_id()) {
    differ.AddLine("both are the same recording");
  }
  const char* const judged = ": bands may differ for that (`vcpulse classify` judges one anew)";
  differ.Add("classifiers", absl::StrJoin(of_a.classifiers, ", "),
             absl::StrJoin(of_b.classifiers, ", "), judged);
  differ.Add("profiles", in_a.classifier().profile(), in_b.classifier().profile(), judged);
  differ.Add("thresholds", ThresholdsOf(in_a), ThresholdsOf(in_b), judged);
  differ.Add("event sets", absl::StrJoin(of_a.event_sets, ", "),
             absl::StrJoin(of_b.event_sets, ", "), ": bands may differ for that");
  differ.Add("tick intervals", DurationOf(in_a.interval_ns()), DurationOf(in_b.interval_ns()),
             ": a longer tick mixes more into one band");
  differ.Add("verdict windows", DurationOf(in_a.verdict_window_ns()),
             DurationOf(in_b.verdict_window_ns()), "");
  differ.Add("residency methods", MethodOf(in_a), MethodOf(in_b),
             ": residency and HALTED may differ for that");
  differ.Add("CPU models", in_a.cpu_model(), in_b.cpu_model(), ": IPC may differ for that");
  if (of_a.degraded != of_b.degraded) {
    differ.AddLine(
        absl::StrCat(of_a.degraded ? "A" : "B",
                     " was recorded degraded, without counters: no IPC, and all that was "
                     "not HALTED is UNKNOWN"));
  }
  return differ.Take();
}

}  // namespace vcpulse::compare
