#pragma once

// What a timeline of played scenes says of the classifiers.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/calibrate/scene.h"
#include "monitor/core/classify.h"
#include "monitor/core/verdict.h"
#include "monitor/metric/metric.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::calibrate {

inline constexpr size_t kClassifiers = 2;  // by core::Classifier

// What one classifier said of some time.
struct Said {
  std::array<int64_t, core::kBands> band_ns{};  // by core::Band; kNone: no verdict
  // From the scene's begin to the end of the first window with the right band.
  std::optional<int64_t> found_after_ns;

  void Add(const Said& other);
  int64_t TotalNs() const;  // with a verdict
  // Nothing where there was no verdict.
  std::optional<double> Share(core::Band band) const;
  // The band of most of that time; kNone where there was no verdict.
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
  // In guest code, of the first vCPU, by residency: of all windows that touch the scene, which is
  // alone in them. Nothing where residency was not measured.
  std::optional<double> busy_ns;

  // Nothing of a mixture.
  std::optional<core::Band> Truth() const;
  std::optional<double> Ipc() const { return totals.Value(metric::Metric::kIpc); }
  // Of all vCPUs that ran it; with a duty, of the scene from its begin to its end.
  std::optional<double> Residency() const;
  // Of the first vCPU. Nothing where cycles were not counted, or no turn was made.
  std::optional<double> CyclesPerTurn() const;
};

struct Calibration {
  v1::Session session{};
  std::string profile{};  // its name
  std::vector<SceneOutcome> scenes{};

  // What was said of all scenes of this truth.
  Said Of(core::Classifier classifier, core::Band truth) const;
  // The share of time of all scenes with a truth in which it said the right band. Nothing without
  // verdicts, and where IPC does not distinguish programs.
  std::optional<double> RightShare(core::Classifier classifier) const;

  // Of a scene with a duty: what its residency had to be, by turns, in proportion to the whole
  // loop's. Nothing where that was not measured.
  std::optional<double> ResidencyByTurns(const SceneOutcome& scene) const;
  // The least share of time, by turns, whose windows were HALTED for less than half of it.
  std::optional<double> SmallestSeen(core::Classifier classifier) const;
  // Whether instructions per cycle differ between programs that any real CPU runs at different
  // ones. Nothing where fewer than three were measured.
  std::optional<bool> IpcTellsProgramsApart() const;
  const SceneOutcome* Find(std::string_view name) const;
};

// The scenes are those that were played, in order. Errors: of reading; InvalidArgument where the
// timeline has no session or its classifier is not known.
absl::StatusOr<Calibration> Measure(std::span<const uint8_t> timeline,
                                    std::span<const Scene> scenes, std::span<const Played> played);

// For people, and for programs: neither has the host's name, an address or a user in it.
std::string ToText(const Calibration& calibration);
std::string ToJson(const Calibration& calibration);

}  // namespace vcpulse::calibrate
