#pragma once

// Series of samples of one vCPU each, with what it did.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/accuracy/cpu_models.h"
#include "tests/accuracy/loops.h"

namespace vcpulse::accuracy {

// One sample, as a row of the import has it.
struct LabelledRow {
  uint64_t t_ns = 0;
  uint64_t dt_ns = 0;
  Counts counts;
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  uint64_t run_delay_ns = 0;
  bool blocked = false;  // the thread's state was read, and is that
  Label label = Label::kHalted;
  std::string loop;
};

struct LabelledSeries {
  std::string name;  // of the VM
  std::string condition;
  std::vector<LabelledRow> rows;
};

// Loops, idleness, mixtures and phases under all conditions.
std::vector<LabelledSeries> LabelledSet(const CpuModel& cpu);

// Loops that no threshold was chosen by, under all conditions.
std::vector<LabelledSeries> HeldApartSet(const CpuModel& cpu);

// What is known to be judged wrong.
std::vector<LabelledSeries> BlindSpotSet(const CpuModel& cpu);

// As CSV text with a header.
std::string ToCsv(const CpuModel& cpu, const std::vector<LabelledSeries>& set);

}  // namespace vcpulse::accuracy
