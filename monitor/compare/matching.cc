#include "monitor/compare/matching.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/check/subjects.h"
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

bool IsAmong(const std::vector<VmGroup>& groups, const VmGroup& group) {
  return std::ranges::find(groups, group.numbers, &VmGroup::numbers) != groups.end();
}

VmGroup GroupOf(const v1::VmInstance& vm) {
  return {.label = vm.name().empty() ? absl::StrCat("pid-", vm.pid()) : Printable(vm.name()),
          .name = vm.name(),
          .uuid = vm.uuid(),
          .numbers = {}};
}

// Those that are meant: by name; where none is called so, by UUID; else by PID; else by
// number.
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
  if (kept.empty()) {
    kept = keep([&](const VmGroup& g) {
      return std::ranges::any_of(g.numbers, [&](uint32_t n) { return absl::StrCat(n) == *vm; });
    });
  }
  return kept;
}

class Matching {
 public:
  Matching(const Recording& a, const Recording& b, const std::optional<std::string>& vm)
      : in_a_(a.label()), in_b_(b.label()), a_(Wanted(a, vm)), b_(Wanted(b, vm)) {}

  struct Pairs {
    std::vector<VmGroup> a;  // in the same order
    std::vector<VmGroup> b;
    std::vector<std::string> notes;
  };

  Pairs Run() {
    const bool one_of_each = a_.size() == 1 && b_.size() == 1;
    TakePairs([](const VmGroup& g) { return g.name; });
    TakePairs([](const VmGroup& g) { return g.label; });  // with the PID where names are not enough
    TakePairs([](const VmGroup& g) { return absl::AsciiStrToLower(g.uuid); });
    if (one_of_each && !a_.empty()) {
      matched_.notes.push_back(absl::StrCat("VM ", a_[0].label, " of ", in_a_, " is compared with ",
                                            b_[0].label, " of ", in_b_, ", as each has no other"));
      Take(0, 0);
    }
    Complain(in_a_, a_, in_b_);
    Complain(in_b_, b_, in_a_);
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

  void Complain(const std::string& side, const std::vector<VmGroup>& left,
                const std::string& other) {
    if (left.empty()) return;
    matched_.notes.push_back(absl::StrCat("not compared, as ", other,
                                          " has no one VM of that name or UUID: ", LabelsOf(left),
                                          " of ", side));
  }

  const std::string& in_a_;
  const std::string& in_b_;
  std::vector<VmGroup> a_;
  std::vector<VmGroup> b_;
  Pairs matched_;
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

// A line for each setting that is not the same in all recordings.
class Differences {
 public:
  explicit Differences(std::span<const Recording> recordings) : recordings_(recordings) {}

  // `of(i)` is what recording i has.
  template <typename Of>
  void Add(const char* what, const Of& of, const char* so) {
    std::vector<std::pair<std::string, std::vector<std::string>>> values;  // and who has them
    for (size_t i = 0; i < recordings_.size(); ++i) {
      std::string value = of(i);
      auto found = std::ranges::find(values, value, [](const auto& known) { return known.first; });
      if (found == values.end()) {
        found = values.insert(found, {std::move(value), {}});
      }
      found->second.push_back(recordings_[i].label());
    }
    if (values.size() < 2) return;
    std::vector<std::string> shown;
    shown.reserve(values.size());
    for (const auto& [value, labels] : values) {
      shown.push_back(absl::StrCat(value.empty() ? "not known" : Printable(value), " in ",
                                   absl::StrJoin(labels, " and ")));
    }
    lines_.push_back(absl::StrCat(what, " differ: ", absl::StrJoin(shown, ", "), so));
  }
  void AddLine(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::span<const Recording> recordings_;
  std::vector<std::string> lines_;
};

}  // namespace

absl::StatusOr<Matched> MatchVms(std::span<const Recording> recordings,
                                 const std::optional<std::string>& vm) {
  for (const Recording& recording : recordings) {
    if (!Wanted(recording, vm).empty()) continue;
    const std::vector<VmGroup> all = recording.Groups();
    return absl::NotFoundError(all.empty()
                                   ? absl::StrCat(recording.Name(), ": holds no sample of a vCPU")
                                   : absl::StrCat(recording.Name(), ": no VM is called '",
                                                  Printable(*vm), "'; VMs are: ", LabelsOf(all)));
  }
  const Recording& first = recordings.front();
  Matched matched{.groups = {recordings.size(), std::vector<VmGroup>()}};
  for (size_t i = 1; i < recordings.size(); ++i) {
    Matching::Pairs pairs = Matching(first, recordings[i], vm).Run();
    if (pairs.a.empty()) {
      return absl::NotFoundError(absl::StrCat(
          "no VM of one name or UUID is in both: ", first.Name(), " has ", LabelsOf(first.Groups()),
          "; ", recordings[i].Name(), " has ", LabelsOf(recordings[i].Groups())));
    }
    std::ranges::move(pairs.notes, std::back_inserter(matched.notes));
    if (i == 1) matched.groups[0] = pairs.a;
    // Those of the first that this one lacks are compared with nobody.
    for (size_t k = 0; k < matched.groups[0].size();) {
      const auto found =
          std::ranges::find(pairs.a, matched.groups[0][k].numbers, &VmGroup::numbers);
      if (found != pairs.a.end()) {
        matched.groups[i].push_back(pairs.b[static_cast<size_t>(found - pairs.a.begin())]);
        ++k;
        continue;
      }
      for (size_t j = 0; j < i; ++j) {
        matched.groups[j].erase(matched.groups[j].begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
  }
  if (matched.groups[0].empty()) {
    return absl::NotFoundError("no VM of one name or UUID is in all of the recordings");
  }
  return matched;
}

std::vector<LeftOut> FindLeftOut(std::span<const Recording> recordings, const Matched& matched,
                                 const std::optional<std::string>& vm,
                                 std::span<const std::optional<std::string>> phases) {
  std::vector<LeftOut> all;
  for (size_t i = 0; i < recordings.size(); ++i) {
    const check::Timetable& timetable = recordings[i].timetable();
    const auto add = [&](const VmGroup& group, std::span<const check::TimeRange> windows,
                         const std::string& why) {
      for (const auto& phase : phases) {
        const auto is_it = [&](const LeftOut& other) {
          return other.phase == phase && other.vm.label == group.label;
        };
        if (check::Common(timetable.Spans(phase, 0), windows).empty()) continue;
        if (std::ranges::none_of(all, is_it)) {
          all.push_back({.vm = group, .phase = phase, .why = why});
        }
      }
    };
    for (const VmGroup& group : Wanted(recordings[i], vm)) {
      if (IsAmong(matched.groups[i], group)) continue;
      std::vector<check::TimeRange> windows;
      for (const uint32_t number : group.numbers) {
        std::ranges::move(timetable.SampledWindows(number), std::back_inserter(windows));
      }
      add(group, check::Joined(std::move(windows)),
          absl::StrCat("in ", recordings[i].label(), ", but not in all recordings"));
    }
    for (const check::SkippedVm& skipped : timetable.skipped()) {
      const VmGroup group = GroupOf(skipped.instance);
      const bool meant = !vm || group.name == *vm || absl::EqualsIgnoreCase(group.uuid, *vm) ||
                         absl::StrCat(skipped.instance.pid()) == *vm;
      if (!meant) continue;
      add(group, check::Joined({timetable.WindowOf(skipped)}),
          absl::StrCat("not recorded in ", recordings[i].label(), ": ", Printable(skipped.reason)));
    }
  }
  return all;
}

Described Describe(const Recording& recording, const Measured& measured) {
  const v1::Session session = SessionOf(recording);
  return {.label = recording.label(),
          .file = recording.Name(),
          .host_name = session.host_name(),
          .kernel_release = session.kernel_release(),
          .cpu_model = session.cpu_model(),
          .start_realtime_ns = recording.timetable().StartRealtimeNs(),
          .duration_ns = recording.timetable().Recording().Length(),
          .interval_ns = session.interval_ns(),
          .classifiers = absl::StrJoin(measured.classifiers, ", "),
          .profile = session.classifier().profile(),
          .residency_method = MethodOf(session),
          .degraded = check::DegradedText(recording.timetable()),
          .loss = report::DescribeLoss(recording.read(), measured.unusable_ticks,
                                       recording.read().ended_in_order)};
}

std::vector<std::string> DifferingSettings(std::span<const Recording> recordings,
                                           std::span<const Measured> measured) {
  std::vector<v1::Session> sessions;
  for (const Recording& recording : recordings) sessions.push_back(SessionOf(recording));
  Differences differ(recordings);
  if (recordings.size() == 2 && !sessions[0].stream_id().empty() &&
      sessions[0].stream_id() == sessions[1].stream_id()) {
    differ.AddLine("both are the same recording");
  }
  const char* const judged = ": bands may differ for that (`vcpulse classify` judges one anew)";
  const auto add = [&](const char* what, const auto& of_session, const char* so) {
    differ.Add(what, [&](size_t i) { return std::string(of_session(sessions[i])); }, so);
  };
  differ.Add(
      "classifiers", [&](size_t i) { return absl::StrJoin(measured[i].classifiers, ", "); },
      judged);
  add("profiles", [](const v1::Session& s) { return s.classifier().profile(); }, judged);
  add("thresholds", ThresholdsOf, judged);
  differ.Add(
      "event sets", [&](size_t i) { return absl::StrJoin(measured[i].event_sets, ", "); },
      ": bands may differ for that");
  add(
      "tick intervals", [](const v1::Session& s) { return DurationOf(s.interval_ns()); },
      ": a longer tick mixes more into one band");
  add(
      "verdict windows", [](const v1::Session& s) { return DurationOf(s.verdict_window_ns()); },
      "");
  add("residency methods", MethodOf, ": residency and HALTED may differ for that");
  add(
      "CPU models", [](const v1::Session& s) { return s.cpu_model(); },
      ": IPC may differ for that");
  std::vector<std::string> degraded;
  for (size_t i = 0; i < recordings.size(); ++i) {
    if (measured[i].degraded) degraded.push_back(recordings[i].label());
  }
  if (!degraded.empty() && degraded.size() < recordings.size()) {
    differ.AddLine(absl::StrCat(absl::StrJoin(degraded, " and "),
                                degraded.size() == 1 ? " was" : " were",
                                " recorded degraded, without counters: no IPC, and all that was "
                                "not HALTED is UNKNOWN"));
  }
  return differ.Take();
}

}  // namespace vcpulse::compare
