#pragma once

// Scenes as they were played, with a recording that is drawn.

#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "monitor/calibrate/calibration.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::calibrate {

using check::DrawnRecording;
using check::kDrawnStart_ns;
using check::kDrawnTick_ns;
using kvm::microguest::Program;
using kvm::microguest::Truth;

inline constexpr std::array<Program, 5> kPrograms = {{
    {.name = "halt", .truth = Truth::kHalted},
    {.name = "loop", .truth = Truth::kSpinning},
    {.name = "alu", .truth = Truth::kProductive},
    {.name = "pause", .truth = Truth::kSpinning},
    {.name = "lock", .truth = Truth::kSpinning, .vcpus = 2},
}};

// What was played, and the timeline of it.
class Recorded {
 public:
  Recorded() { drawing_.Begin(1, {.vcpus = {0, 1}}); }

  // A scene of as many ticks as letters, and what each vCPU did in them; it begins with a tick's
  // read, at the middle of which a window ends.
  void Draw(const Program& program, const std::string& first, const std::string& second,
            uint64_t turns = 0, std::optional<double> duty = std::nullopt) {
    scenes_.push_back({.name = duty ? "duty" : std::string(program.name),
                       .what = "",
                       .program = &program,
                       .duty = duty});
    const int64_t begin_ns = now_ns_;
    Rest(first, second);
    const double inside = duty.value_or(1) * static_cast<double>(now_ns_ - begin_ns);
    played_.push_back({.begin_ns = begin_ns,
                       .end_ns = now_ns_,
                       .turns = turns,
                       .inside_ns = static_cast<int64_t>(inside)});
  }

  // Between scenes.
  void Rest(const std::string& first, const std::string& second) {
    now_ns_ += static_cast<int64_t>(first.size()) * kDrawnTick_ns;
    first_ += first;
    second_ += second;
  }

  // All scenes began and ended so much later.
  void Shift(int64_t ns) {
    for (Played& played : played_) {
      played.begin_ns += ns;
      played.end_ns += ns;
    }
  }

  // By the timeline's profile, or by these numbers.
  Calibration Measured(const core::Profile* values = nullptr) {
    if (timeline_.empty()) {
      drawing_.Draw(std::vector<std::string>{first_, second_});
      std::ifstream file(drawing_.Finish(), std::ios::binary);
      timeline_.assign(std::istreambuf_iterator<char>(file), {});
    }
    auto calibration = Measure(timeline_, scenes_, played_, values);
    EXPECT_TRUE(calibration.ok()) << calibration.status();
    return calibration.ok() ? *std::move(calibration) : Calibration{};
  }

 private:
  DrawnRecording drawing_;
  std::string first_;
  std::string second_;
  int64_t now_ns_ = kDrawnStart_ns;
  std::vector<Scene> scenes_;
  std::vector<Played> played_;
  std::vector<uint8_t> timeline_;
};

}  // namespace vcpulse::calibrate
