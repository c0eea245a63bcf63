#include "monitor/page/gap_spans.h"

#include <variant>

namespace vcpulse::page {
namespace {

// Farther than any recording: the numbers of a damaged file.
constexpr int64_t kFarthestTicks = 10'000'000'000;
constexpr uint64_t kLongestRecorded_ns = 3'600'000'000'000;  // of `record`

bool SameKind(const GapSpan& a, const GapSpan& b) {
  return a.vm == b.vm && a.reason == b.reason && a.vcpu == b.vcpu && a.error == b.error;
}

}  // namespace

void GapSpans::Add(const timeline::Entry& entry) {
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    const bool known = session->interval_ns() <= kLongestRecorded_ns;
    interval_ns_ = known ? static_cast<int64_t>(session->interval_ns()) : 0;
    return;
  }
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    anchor_ = Anchor{tick->sample.tick, tick->sample.deadline_ns};
    return;
  }
  const auto* gap = std::get_if<v1::Gap>(&entry.record);
  if (gap == nullptr) return;
  const GapSpan span = SpanOf(*gap);
  if (const auto found = latest_.find(span.vm); found != latest_.end()) {
    GapSpan& before = spans_[found->second];
    if (SameKind(before, span) && gap->first_tick() == before.last_tick + 1) {
      before.to_ns = span.to_ns;
      before.last_tick = span.last_tick;
      before.ticks += span.ticks;
      return;
    }
  }
  if (spans_.size() >= kMost) {
    ++omitted_;
    return;
  }
  latest_[span.vm] = spans_.size();
  spans_.push_back(span);
}

GapSpan GapSpans::SpanOf(const v1::Gap& gap) const {
  const uint64_t ticks =
      gap.last_tick() >= gap.first_tick() ? gap.last_tick() - gap.first_tick() + 1 : 1;
  GapSpan span{.vm = gap.vm(),
               .from_ns = gap.mono_ns(),
               .to_ns = gap.mono_ns(),
               .reason = gap.reason(),
               .error = gap.error(),
               .ticks = ticks,
               .last_tick = gap.last_tick()};
  if (gap.has_vcpu_index()) span.vcpu = gap.vcpu_index();
  if (!anchor_ || interval_ns_ == 0) return span;
  // Differences of unsigned numbers, so they wrap to what they are.
  const auto first = static_cast<int64_t>(gap.first_tick() - anchor_->tick);
  if (first < -kFarthestTicks || first > kFarthestTicks) return span;
  if (ticks > static_cast<uint64_t>(kFarthestTicks)) return span;
  int64_t from_ns = 0;
  int64_t length_ns = 0;
  int64_t to_ns = 0;
  if (__builtin_mul_overflow(first - 1, interval_ns_, &from_ns) ||
      __builtin_add_overflow(from_ns, anchor_->deadline_ns, &from_ns) ||
      __builtin_mul_overflow(static_cast<int64_t>(ticks), interval_ns_, &length_ns) ||
      __builtin_add_overflow(from_ns, length_ns, &to_ns)) {
    return span;
  }
  span.from_ns = from_ns;
  span.to_ns = to_ns;
  return span;
}

}  // namespace vcpulse::page
