#pragma once

// What a timeline of played scenes says of the classifiers.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/host.h"
#include "monitor/calibrate/scene.h"
#include "monitor/core/classify.h"
#include "monitor/core/verdict.h"
#include "monitor/metric/metric.h"
#include "monitor/profile/profile.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::calibrate {

inline constexpr size_t kClassifiers = 2;  // by core::Classifier

// What one classifier said of some time. No verdict (Band::kNone) is an answer like others: a right
// one is never given for it.
struct Said {
  std::array<int64_t, core::kBands> band_ns{};  // by core::Band
  // From the scene's begin to the end of the first window with the right band.
  std::optional<int64_t> found_after_ns;

  void Add(const Said& other);
  int64_t TotalNs() const;
  // Nothing of no time.
  std::optional<double> Share(core::Band band) const;
  // The band of most of that time.
  core::Band Most() const;
};

struct SceneOutcome {
  Scene scene;
  Played played;
  // Windows that lie in the scene as a whole, of the vCPUs that ran it.
  std::array<Said, kClassifiers> said{};
  metric::Totals totals{};  // as recorded
  double cycles = 0;        // of the guest; counted in `counted_ns`
  int64_t counted_ns = 0;
  // In guest code, of the first vCPU, by residency: of all windows that touch the scene, where it
  // is alone in them; they cover `residency_known_ns` of it.
  double busy_ns = 0;
  int64_t residency_known_ns = 0;

  // Nothing of a mixture, and of waits that may halt or spin.
  std::optional<core::Band> Truth() const;
  std::optional<double> Ipc() const { return totals.Value(metric::Metric::kIpc); }
  // Of all vCPUs that ran it; with a duty, of the scene from its begin to its end, and nothing
  // where that was not measured as a whole.
  std::optional<double> Residency() const;
  // The share of time that the first vCPU was in KVM_RUN: what residency has to be, but for what
  // KVM itself takes there. Nothing of what halts, where KVM may wait in it.
  std::optional<double> InsideShare() const;
  // Of the first vCPU, in KVM_RUN. Nothing where it made none.
  std::optional<double> TurnsPerSecond() const;
  // Of the first vCPU. Nothing where cycles were not counted, or no turn was made.
  std::optional<double> CyclesPerTurn() const;
};

// A profile of the numbers that were measured, and how right it would have been (RightShare of
// evidence).
struct Measured {
  profile::Profile profile;
  double right = 0;
};

struct Calibration {
  v1::Session session{};
  std::string profile{};  // its name
  kvm::CpuIdentity cpu{};
  std::vector<int> on_cpus{};  // the guests were kept to them; empty: to none
  std::vector<SceneOutcome> scenes{};
  std::vector<std::string> left_out{};  // "NAME: WHY" of scenes that cannot be played here
  absl::StatusOr<Measured> measured = absl::UnknownError("not tried");

  // What was said of all scenes of this truth.
  Said Of(core::Classifier classifier, core::Band truth) const;
  // The share of time of all scenes with a truth in which it said the right band. Nothing where it
  // is not known that IPC distinguishes programs here.
  std::optional<double> RightShare(core::Classifier classifier) const;

  // The least share of time in the guest of a scene that was HALTED for less than half of it, as
  // were all with larger shares. Nothing where there is none, or a halted guest was not HALTED.
  std::optional<double> SmallestSeen(core::Classifier classifier) const;
  // Whether instructions per cycle differ between programs that any real CPU runs at different
  // ones, halted ones apart. Nothing where fewer than three were measured.
  std::optional<bool> IpcTellsProgramsApart() const;
  const SceneOutcome* Find(std::string_view name) const;
  // Whether evidence is more often right with the measured profile.
  bool MeasuredIsBetter() const;
};

// The scenes are those that were played, in order. Judged by the profile of the timeline, or by
// `values` where there are any. Errors: of reading; InvalidArgument where the timeline has no
// session or its classifier is not known.
absl::StatusOr<Calibration> Measure(std::span<const uint8_t> timeline,
                                    std::span<const Scene> scenes, std::span<const Played> played,
                                    const core::Profile* values = nullptr);

// For people, and for programs: neither has the host's name, an address or a user in it.
std::string ToText(const Calibration& calibration);
std::string ToJson(const Calibration& calibration);

}  // namespace vcpulse::calibrate
