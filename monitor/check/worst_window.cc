#include "monitor/check/worst_window.h"

#include <algorithm>

namespace vcpulse::check {
namespace {

// A tenth of a second, from ticks that may come a little early.
constexpr int64_t kBucket_ns = 95'000'000;

}  // namespace

void WorstWindow::Add(const TimeRange& when, bool begins, double sum, double weight) {
  if (begins) EndPiece();
  if (!open_) open_ = Bucket{.when = {.from_ns = when.from_ns, .to_ns = when.from_ns}};
  open_->when.to_ns = when.to_ns;
  open_->sum += sum;
  open_->weight += weight;
  if (open_->when.Length() >= kBucket_ns) CloseBucket();
}

std::optional<ObservedRange> WorstWindow::Finish() {
  EndPiece();
  return worst_;
}

void WorstWindow::CloseBucket() {
  closed_[count_ % kBuckets] = *open_;
  open_.reset();
  ++count_;
  if (count_ >= kBuckets) CompareWindow();
}

void WorstWindow::EndPiece() {
  if (open_) CloseBucket();
  if (count_ < kBuckets) CompareWindow();
  count_ = 0;
}

// The last ten buckets, or all there are of the piece.
void WorstWindow::CompareWindow() {
  const size_t size = std::min(count_, kBuckets);
  Bucket all;
  for (size_t i = 0; i < size; ++i) {
    const Bucket& bucket = closed_[(count_ - size + i) % kBuckets];
    if (i == 0) all.when = bucket.when;
    all.when.to_ns = bucket.when.to_ns;
    all.sum += bucket.sum;
    all.weight += bucket.weight;
  }
  if (all.weight <= 0) return;
  const double mean = all.sum / all.weight;
  const bool is_worse =
      !worst_ || (highest_is_worst_ ? mean > worst_->observed : mean < worst_->observed);
  if (is_worse) worst_ = ObservedRange{.when = all.when, .observed = mean};
}

}  // namespace vcpulse::check
