// Percentiles of a number. The smallest value with at least q of all the time at or below it is
// held against a limit by counting time below, at and above the limit, which is exact; the value
// itself comes from a histogram.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "monitor/check/outcome.h"
#include "monitor/check/tally.h"

namespace vcpulse::check {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Values with the time they had, in buckets of 1/128 of an octave from 2^-20 to 2^20.
class Histogram {
 public:
  void Add(double value, int64_t weight_ns) {
    Bucket& bucket = buckets_[BucketOf(value)];
    bucket.highest = std::max(bucket.highest, value);
    bucket.weight_ns += weight_ns;
  }

  // The highest value seen in the bucket where the time at or below reaches `weight_ns`: at most
  // 0.6 % too high, exact where a bucket saw one value. Infinite where it is never reached.
  double ValueAt(double weight_ns) const {
    int64_t below_ns = 0;
    for (const auto& [number, bucket] : buckets_) {
      below_ns += bucket.weight_ns;
      if (static_cast<double>(below_ns) >= weight_ns) return bucket.highest;
    }
    return kInfinity;
  }

 private:
  struct Bucket {
    double highest = 0;
    int64_t weight_ns = 0;
  };

  static int BucketOf(double value) {
    constexpr double kOctaves = 20;
    if (value <= 0) return std::numeric_limits<int>::min();
    return static_cast<int>(std::floor(std::clamp(std::log2(value), -kOctaves, kOctaves) * 128));
  }

  std::map<int, Bucket> buckets_;
};

class PercentileTally final : public Tally {
 public:
  PercentileTally(const Quantity& quantity, const std::optional<Limit>& limit)
      : quantity_(quantity), limit_(limit) {
    if (limit) worst_.emplace(IsUpperLimit(limit->comparison));
  }

  void Add(const Part& part) override;
  Tallied Finish() override;

 private:
  // The percentile where `lowest_ns` of all the time had the lowest value there is, beside what was
  // counted, and all of it together was `total_ns`.
  double Percentile(double lowest_ns, double total_ns) const;

  const Quantity quantity_;
  const std::optional<Limit> limit_;
  Histogram histogram_;
  int64_t below_ns_ = 0;  // the limit
  int64_t at_ns_ = 0;
  int64_t counted_ns_ = 0;
  int64_t unknown_ns_ = 0;
  std::optional<WorstWindow> worst_;
};

void PercentileTally::Add(const Part& part) {
  const Observation* const seen = part.observation;
  const int64_t length_ns = part.when.Length();
  const bool judged = seen != nullptr && seen->verdict.band != core::Band::kNone;
  const bool halted = judged && seen->verdict.band == core::Band::kHalted;
  const std::optional<double> value =
      judged && !halted ? seen->Value(quantity_.metric) : std::nullopt;
  if (value) {
    histogram_.Add(*value, length_ns);
    counted_ns_ += length_ns;
    if (limit_ && *value < limit_->value) below_ns_ += length_ns;
    if (limit_ && *value == limit_->value) at_ns_ += length_ns;
  } else if (!halted) {
    unknown_ns_ += length_ns;
  }
  if (!worst_) return;
  const double weight = value ? static_cast<double>(length_ns) : 0;
  worst_->Add(part.when, part.begins, value.value_or(0) * weight, weight);
}

double PercentileTally::Percentile(double lowest_ns, double total_ns) const {
  const double wanted_ns = quantity_.percentile * total_ns / 100;
  const double estimate = lowest_ns >= wanted_ns ? 0 : histogram_.ValueAt(wanted_ns - lowest_ns);
  if (!limit_) return estimate;
  const double limit = limit_->value;
  const double below_ns = static_cast<double>(below_ns_) + (limit > 0 ? lowest_ns : 0);
  if (below_ns >= wanted_ns) return std::min(estimate, std::nextafter(limit, -kInfinity));
  const double up_to_ns = static_cast<double>(below_ns_ + at_ns_) + lowest_ns;
  if (up_to_ns >= wanted_ns) return limit;
  return std::max(estimate, std::nextafter(limit, kInfinity));
}

Tallied PercentileTally::Finish() {
  Tallied tallied{.unknown_ns = unknown_ns_};
  if (counted_ns_ == 0) return tallied;
  // Unknown time changes most where none of it was HALTED, and all of it lay at one end.
  const double total_ns = static_cast<double>(counted_ns_ + unknown_ns_);
  tallied.observed = Bounds{.low = Percentile(static_cast<double>(unknown_ns_), total_ns),
                            .high = Percentile(0, total_ns)};
  if (worst_) tallied.worst = worst_->Finish();
  return tallied;
}

}  // namespace

std::unique_ptr<Tally> NewPercentileTally(const Quantity& quantity,
                                          const std::optional<Limit>& limit) {
  return std::make_unique<PercentileTally>(quantity, limit);
}

}  // namespace vcpulse::check
