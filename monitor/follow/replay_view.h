#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "monitor/metric/interval.h"
#include "monitor/recorder/recording.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::follow {

// What a person sees of a recording that is played again: lines of text, and what `record` shows
// while it runs. Takes the entries of one stream in order. One thread.
class ReplayView {
 public:
  // Times are told from `start_mono_ns` on; nothing: from the first record that has an instant.
  explicit ReplayView(std::optional<int64_t> start_mono_ns) : start_ns_(start_mono_ns) {}
  // Instants are written by `stamp`.
  explicit ReplayView(std::function<std::string(int64_t mono_ns)> stamp)
      : stamp_(std::move(stamp)) {}

  // The line for this record, with its line end: a marker, a gap, what happened to a VM; nothing
  // for others. Ticks have a line of their own.
  std::optional<std::string> Take(const timeline::Entry& entry);

  // "  12.300s  web  ..S#  IPC 1.30\n" of the tick that was taken last: a character per vCPU
  // (reading::BandLetter); the IPC of all of them together as reports have it, or - where none was
  // counted.
  std::string TickLine(const timeline::TickEntry& tick);

  // As a recording that runs says it.
  absl::Duration elapsed() const;
  uint64_t ticks() const { return ticks_; }
  recorder::Progress progress() const;

 private:
  void TakeTick(const timeline::TickEntry& tick);
  std::string LabelOf(uint32_t vm) const;
  void Name(uint32_t vm, const v1::VmInstance& instance);
  std::string Stamped(int64_t mono_ns, const std::string& text) const;

  std::function<std::string(int64_t)> stamp_;  // empty: seconds since start_ns_
  std::optional<int64_t> start_ns_;
  int64_t latest_ns_ = 0;
  uint64_t ticks_ = 0;
  std::optional<uint64_t> latest_tick_;
  recorder::Progress progress_;                            // but for the VMs
  std::map<uint32_t, std::vector<core::Verdict>> latest_;  // by VM, of its latest tick
  std::map<uint32_t, std::string> labels_;
  std::set<std::string> used_labels_;
  metric::IntervalReader intervals_;
};

}  // namespace vcpulse::follow
