#pragma once

// Labelled samples and what a classifier said of each.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/core/classify.h"
#include "monitor/core/profile.h"
#include "monitor/core/verdict.h"
#include "monitor/import/table.h"
#include "monitor/profile/profile.h"
#include "tests/accuracy/loops.h"

namespace vcpulse::accuracy {

// A file of labelled samples.
struct LabelledFile {
  std::string name;  // of the CPU model
  std::optional<double> tsc_hz;
  std::optional<double> max_hz;
  profile::Profile profile;
  bool profile_missing = false;  // the generic one stands for that of its name
  importing::Table table;
  std::vector<Label> labels;  // by row
};

// Reads the file at `path`, NAME.csv. Its profile is `profile`, or where that is empty the one
// called NAME; its frequencies are those of the model, where NAME is one of CpuModels(). The
// columns named in `without` are left out. Errors: what the system, the import or profile::Load
// said, naming the file.
absl::StatusOr<LabelledFile> ReadLabelledFile(const std::string& path, const std::string& profile,
                                              std::span<const std::string_view> without = {});

struct JudgedRow {
  std::string_view cpu;
  std::string_view vm;
  std::string_view loop;
  std::string_view condition;
  Label label = Label::kHalted;
  bool pause_counted = false;  // the loop executes PAUSE, and the CPU counts it
  core::Verdict verdict;
};

// Judges every row, in the order of VMs and time; views are into `file`. `weak_below`, where given,
// takes the place of the profile's.
absl::StatusOr<std::vector<JudgedRow>> JudgeFile(const LabelledFile& file,
                                                 core::ClassifierChoice choice,
                                                 std::optional<double> weak_below = {});

}  // namespace vcpulse::accuracy
