#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "monitor/core/verdict.h"
#include "tests/accuracy/judged_set.h"
#include "tests/accuracy/statistics.h"

namespace vcpulse::accuracy {

inline constexpr size_t kLabels = 4;

// Samples by the band that was shown. Band::kNone (no verdict yet) is counted and belongs to no
// share.
using BandCounts = std::array<uint64_t, core::kBands>;

// The band that a label calls for; kUnknown of mixtures.
core::Band BandOf(Label label);

uint64_t Judged(const BandCounts& counts);  // with a verdict

// What the judged rows come to. Precision is over the samples of one label: a mixture is neither.
struct Figures {
  std::array<BandCounts, kLabels> matrix{};
  std::array<BandCounts, 2> spins{};  // [1]: on CPUs that count PAUSE
  Delays delays;

  const BandCounts& Of(Label label) const { return matrix[static_cast<size_t>(label)]; }
  Share Recall(Label label) const;
  Share Precision(Label label) const;
  Share SpinRecall(bool pause_counted) const;
  Share ProductiveCalledSpinning() const;
  Share MixedCalledSpinning() const;
  Share UnknownOutsideMixtures() const;
};

// Rows of one VM follow each other in time.
Figures Summarize(std::span<const JudgedRow> rows);

// By the loop, or by anything else that `key` makes of a row: its verdicts.
struct Group {
  Label label = Label::kHalted;
  BandCounts bands{};
  std::map<core::Rule, uint64_t> rules;

  Share Right() const;
};
std::map<std::string, Group> ByLoop(std::span<const JudgedRow> rows);
std::map<std::string, Group> BySeries(std::span<const JudgedRow> rows);  // "CPU loop/condition"

}  // namespace vcpulse::accuracy
