#include "monitor/calibrate/calibration.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <ranges>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "kvm/base/clock.h"
#include "monitor/metric/interval.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/replay/rejudge.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::calibrate {
namespace {

using core::Band;
using core::Classifier;

// So much of a scene's residency must have been measured: windows may lack a little of it.
constexpr double kWhole = 0.99;

// Windows of the timeline, judged by both classifiers, to the scenes that they lie in.
class Measurer {
 public:
  Measurer(std::span<const Scene> scenes, std::span<const Played> played,
           const core::Profile* values)
      : values_(values) {
    for (size_t i = 0; i < played.size(); ++i) {
      calibration_.scenes.push_back({.scene = scenes[i], .played = played[i]});
    }
  }

  absl::Status Take(const timeline::Entry& entry) {
    if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
      calibration_.session = *session;
    } else if (const auto* profile = std::get_if<v1::Profile>(&entry.record)) {
      kept_ = *profile;
    } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
      if (absl::Status status = Start(); !status.ok()) return status;
      for (replay::Rejudge& judge : judges_) judge.Take(*set);
    } else if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
      for (size_t i = 0; i < judges_.size(); ++i) verdicts_[i] = judges_[i].Judge(*tick);
    }
    return intervals_.Add(entry, [this](const metric::Interval& interval) {
      Add(interval);
      return absl::OkStatus();
    });
  }

  Calibration Finish() { return std::move(calibration_); }

 private:
  absl::Status Start() {
    if (!judges_.empty()) return absl::OkStatus();
    auto settings = replay::SettingsOf(calibration_.session, kept_ ? &*kept_ : nullptr);
    if (!settings.ok()) return settings.status();
    calibration_.profile = settings->profile.name;
    for (const auto choice :
         {core::ClassifierChoice::kIpcBands, core::ClassifierChoice::kEvidence}) {
      const core::Profile& values = values_ != nullptr ? *values_ : settings->profile.values;
      judges_.emplace_back(choice, values).Take(calibration_.session);
    }
    return absl::OkStatus();
  }

  static bool Touches(const metric::Interval& interval, const Played& played) {
    return interval.BeginNs() < played.end_ns && interval.EndNs() > played.begin_ns;
  }

  static void AddResidency(const metric::Interval& interval, SceneOutcome& outcome) {
    const auto residency = interval.Residency();
    if (!residency || interval.Vcpu().index() > 0) return;
    outcome.busy_ns += *residency * static_cast<double>(interval.delta.interval_ns);
    outcome.residency_known_ns += std::min(interval.EndNs(), outcome.played.end_ns) -
                                  std::max(interval.BeginNs(), outcome.played.begin_ns);
  }

  // On hybrid hosts there are cycles of more than one core PMU.
  static void AddCycles(const metric::Interval& interval, SceneOutcome& outcome) {
    if (interval.Vcpu().index() > 0) return;
    bool counted = false;
    for (const metric::EventPlace& event : interval.epoch.events) {
      const auto count = interval.CountOf(event).count;
      if (event.name != "cycles" || !count) continue;
      counted = true;
      outcome.cycles += static_cast<double>(*count);
    }
    if (counted) outcome.counted_ns += interval.delta.interval_ns;
  }

  void Add(const metric::Interval& interval) {
    const auto touched = std::ranges::count_if(
        calibration_.scenes,
        [&](const SceneOutcome& outcome) { return Touches(interval, outcome.played); });
    for (SceneOutcome& outcome : calibration_.scenes) {
      const Played& played = outcome.played;
      if (!Touches(interval, played)) continue;
      if (touched == 1) AddResidency(interval, outcome);
      if (interval.BeginNs() < played.begin_ns || interval.EndNs() > played.end_ns) continue;
      if (interval.Vcpu().index() >= outcome.scene.program->vcpus) continue;
      outcome.totals.Add(interval);
      AddCycles(interval, outcome);
      for (size_t i = 0; i < kClassifiers; ++i) {
        if (interval.column >= verdicts_[i].size()) continue;
        const Band band = verdicts_[i][interval.column].band;
        Said& said = outcome.said[i];
        said.band_ns[static_cast<size_t>(band)] += interval.delta.interval_ns;
        if (band == outcome.Truth() && !said.found_after_ns) {
          said.found_after_ns = interval.EndNs() - played.begin_ns;
        }
      }
    }
  }

  const core::Profile* values_;
  Calibration calibration_;
  std::optional<v1::Profile> kept_;
  std::vector<replay::Rejudge> judges_;  // by Classifier
  std::array<std::span<const core::Verdict>, kClassifiers> verdicts_{};
  metric::IntervalReader intervals_;
};

static_assert(static_cast<size_t>(Classifier::kIpcBands) == 0 &&
              static_cast<size_t>(Classifier::kEvidence) == 1);

}  // namespace

void Said::Add(const Said& other) {
  for (size_t i = 0; i < band_ns.size(); ++i) band_ns[i] += other.band_ns[i];
}

int64_t Said::TotalNs() const {
  return std::accumulate(band_ns.begin(), band_ns.end(), int64_t{0});
}

std::optional<double> Said::Share(Band band) const {
  const int64_t total_ns = TotalNs();
  if (total_ns == 0) return std::nullopt;
  return static_cast<double>(band_ns[static_cast<size_t>(band)]) / static_cast<double>(total_ns);
}

Band Said::Most() const {
  return static_cast<Band>(std::ranges::max_element(band_ns) - band_ns.begin());
}

std::optional<Band> SceneOutcome::Truth() const {
  if (scene.duty) return std::nullopt;
  switch (scene.program->truth) {
    case kvm::microguest::Truth::kHalted:
      return Band::kHalted;
    case kvm::microguest::Truth::kSpinning:
      return Band::kSpinning;
    case kvm::microguest::Truth::kProductive:
      return Band::kProductive;
    case kvm::microguest::Truth::kMixed:
    case kvm::microguest::Truth::kWaiting:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> SceneOutcome::Residency() const {
  if (!scene.duty) return totals.Value(metric::Metric::kResidency);
  const auto length_ns = static_cast<double>(played.end_ns - played.begin_ns);
  if (static_cast<double>(residency_known_ns) < kWhole * length_ns) return std::nullopt;
  return busy_ns / length_ns;
}

std::optional<double> SceneOutcome::InsideShare() const {
  if (Truth() == Band::kHalted || played.end_ns <= played.begin_ns) return std::nullopt;
  return static_cast<double>(played.inside_ns) /
         static_cast<double>(played.end_ns - played.begin_ns);
}

std::optional<double> SceneOutcome::TurnsPerSecond() const {
  if (Truth() == Band::kHalted || played.inside_ns <= 0) return std::nullopt;
  return static_cast<double>(played.turns) / ToSeconds(played.inside_ns);
}

std::optional<double> SceneOutcome::CyclesPerTurn() const {
  if (counted_ns == 0 || played.turns == 0) return std::nullopt;
  const auto length_ns = static_cast<double>(played.end_ns - played.begin_ns);
  return cycles / static_cast<double>(counted_ns) * length_ns / static_cast<double>(played.turns);
}

Said Calibration::Of(Classifier classifier, Band truth) const {
  Said all;
  for (const SceneOutcome& scene : scenes) {
    if (scene.Truth() == truth) all.Add(scene.said[static_cast<size_t>(classifier)]);
  }
  return all;
}

std::optional<double> Calibration::RightShare(Classifier classifier) const {
  if (IpcTellsProgramsApart() != true) return std::nullopt;
  double right_ns = 0;
  double all_ns = 0;
  for (const Band truth : {Band::kHalted, Band::kSpinning, Band::kProductive}) {
    const Said said = Of(classifier, truth);
    right_ns += static_cast<double>(said.band_ns[static_cast<size_t>(truth)]);
    all_ns += static_cast<double>(said.TotalNs());
  }
  if (all_ns == 0) return std::nullopt;
  return right_ns / all_ns;
}

const SceneOutcome* Calibration::Find(std::string_view name) const {
  const auto found = std::ranges::find(
      scenes, name, [](const SceneOutcome& outcome) { return outcome.scene.name; });
  return found != scenes.end() ? &*found : nullptr;
}

bool Calibration::MeasuredIsBetter() const {
  return measured.ok() && measured->right > RightShare(Classifier::kEvidence).value_or(0);
}

std::optional<double> Calibration::SmallestSeen(Classifier classifier) const {
  if (Of(classifier, Band::kHalted).Share(Band::kHalted).value_or(0) < 0.5) return std::nullopt;
  std::map<double, bool> seen;  // by share of time
  for (const SceneOutcome& scene : scenes) {
    const std::optional<double> share = scene.InsideShare();
    const auto halted = scene.said[static_cast<size_t>(classifier)].Share(Band::kHalted);
    if (scene.scene.duty && share && halted) seen[*share] = *halted < 0.5;
  }
  std::optional<double> smallest;
  for (const auto& [share, was_seen] : seen | std::views::reverse) {
    if (!was_seen) break;
    smallest = share;
  }
  return smallest;
}

std::optional<bool> Calibration::IpcTellsProgramsApart() const {
  std::vector<double> ipcs;
  for (const SceneOutcome& scene : scenes) {
    if (scene.Truth().value_or(Band::kHalted) == Band::kHalted) continue;
    if (scene.Ipc()) ipcs.push_back(*scene.Ipc());
  }
  if (ipcs.size() < 3) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(ipcs);
  return most > 1.1 * least;
}

absl::StatusOr<Calibration> Measure(std::span<const uint8_t> timeline,
                                    std::span<const Scene> scenes, std::span<const Played> played,
                                    const core::Profile* values) {
  Measurer measurer(scenes, played, values);
  const auto read = timeline::ReadTimelineBytes(
      timeline, [&](const timeline::Entry& entry) { return measurer.Take(entry); });
  if (!read.ok()) return read.status();
  return measurer.Finish();
}

}  // namespace vcpulse::calibrate
