#pragma once

// What each vCPU did, slot by slot of time, for a strip of characters under the tables. Memory is
// bounded however long the recording is: where it outgrows its slots, all of them double in width.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/core/verdict.h"
#include "monitor/report/report.h"
#include "monitor/timeline/entry.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::report {

// ns in one slot: by band (kNone: sampled, no verdict), and thereof starved.
struct StripSlot {
  std::array<float, core::kBands> band_ns{};
  float starved_ns = 0;

  void operator+=(const StripSlot& other);
  float SampledNs() const;
};

// The slots of one vCPU, from the strips' start on: as many as were used.
class Strip {
 public:
  static constexpr size_t kSlots = 512;

  // Slots are 2^level times as wide as at first.
  void WidenTo(unsigned level);
  // `begin_ns` and `end_ns` after the strips' start, within the slots of that width.
  void Add(int64_t begin_ns, int64_t end_ns, int64_t slot_ns, const core::Verdict& verdict);
  // Empty beyond those that were used.
  StripSlot At(size_t slot) const { return slot < slots_.size() ? slots_[slot] : StripSlot(); }

 private:
  std::vector<StripSlot> slots_;
  unsigned level_ = 0;
};

// Of all vCPUs. Takes the records of one stream in order. One thread.
class Strips {
 public:
  void Add(const timeline::Entry& entry);
  // After the last record: all strips have slots of slot_ns().
  void Finish();

  // By vCPU index; null for a VM without one.
  const std::map<uint32_t, Strip>* Find(uint32_t vm) const;
  // CLOCK_MONOTONIC of the first slot's beginning: the first sample. Nothing without a sample.
  std::optional<int64_t> start_mono_ns() const { return start_ns_; }
  int64_t slot_ns() const { return slot_ns_ << level_; }
  // How many slots lie before the end of the last sample, at most Strip::kSlots.
  size_t UsedSlots() const;

 private:
  using Columns = std::vector<Strip*>;

  void AddTick(const timeline::TickEntry& tick);
  Columns* Find(uint32_t vm, uint32_t epoch);

  std::map<uint32_t, std::map<uint32_t, Strip>> strips_;      // by VM, by vCPU
  std::map<std::pair<uint32_t, uint32_t>, Columns> columns_;  // by (VM, epoch)
  std::pair<uint32_t, uint32_t> last_key_;
  Columns* last_ = nullptr;  // columns_ of last_key_
  std::optional<int64_t> start_ns_;
  int64_t slot_ns_ = 100'000'000;  // at first
  unsigned level_ = 0;
  int64_t end_ns_ = 0;  // of the last sample, after the start
};

// The character for what lies in a slot of time of that length: the band that takes most of it as
// reading::BandLetter has it, 's' where another one does and a twentieth is SPINNING, '_' where
// next to nothing was sampled.
char StripLetter(const StripSlot& slot, double slot_ns);

inline constexpr size_t kNarrowestStrips = 40;

struct StripOptions {
  size_t width = 100;   // of the whole line, columns; at least kNarrowestStrips
  bool colour = false;  // ANSI sequences that end on each line, so that a pager may show any part
  std::optional<uint32_t> vcpu{};  // only this one, by index
};

// The strips of one VM, a character per slot of time, with its markers and a time axis below.
// Legible without colour. Empty where nothing was sampled. Pure.
std::string RenderStrips(const Report& report, const Strips& strips, uint32_t vm,
                         const StripOptions& options);

// What the characters mean, one line or two; empty without a strip.
std::string StripLegend(const Strips& strips, const StripOptions& options);

}  // namespace vcpulse::report
