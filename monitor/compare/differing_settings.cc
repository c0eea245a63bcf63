#include "monitor/compare/differing_settings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/loss_text.h"

namespace vcpulse::compare {
namespace {

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
