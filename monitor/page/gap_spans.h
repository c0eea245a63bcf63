#pragma once

// Where samples are missing, as spans of time.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "monitor/timeline/entry.h"

namespace vcpulse::page {

struct GapSpan {
  uint32_t vm = 0;  // 0: every VM
  int64_t from_ns = 0;
  int64_t to_ns = 0;  // CLOCK_MONOTONIC; from_ns where the length is not known
  v1::Gap::Reason reason = v1::Gap::REASON_UNSPECIFIED;
  std::optional<uint32_t> vcpu{};
  int32_t error = 0;  // errno, 0 where none
  uint64_t ticks = 1;
  uint64_t last_tick = 0;
};

// Turns the numbers of missing ticks into times: tick n would have told of the interval that ends
// when it was due, and the ticks that were taken say when that is. Gaps of the same kind that
// follow each other are one span. One thread.
class GapSpans {
 public:
  // Spans kept; those that come later are counted only.
  static constexpr size_t kMost = 5000;

  // Entries in the order of the timeline; everything but sessions, ticks and gaps is passed over.
  void Add(const timeline::Entry& entry);

  const std::vector<GapSpan>& spans() const { return spans_; }
  uint64_t omitted() const { return omitted_; }

 private:
  GapSpan SpanOf(const v1::Gap& gap) const;

  struct Anchor {
    uint64_t tick = 0;
    int64_t deadline_ns = 0;
  };
  std::optional<Anchor> anchor_;
  int64_t interval_ns_ = 0;
  std::vector<GapSpan> spans_;
  std::map<uint32_t, size_t> latest_;  // of a VM, in spans_
  uint64_t omitted_ = 0;
};

}  // namespace vcpulse::page
