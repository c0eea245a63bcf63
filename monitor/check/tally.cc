#include "monitor/check/tally.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "monitor/check/outcome.h"

namespace vcpulse::check {
namespace {

using core::Band;

constexpr Share kAnything{.bounds = {.low = 0, .high = 1}, .doubt = Doubt::kNotKnown};

Share Exactly(double share) { return {.bounds = {.low = share, .high = share}}; }

Share YesOrNo(bool yes) { return Exactly(yes ? 1 : 0); }

// Whether a part was in `band`.
Share InBand(Band band, const Observation& observation, bool by_ipc_bands) {
  const core::Verdict& verdict = observation.verdict;
  if (verdict.band == Band::kNone) return kAnything;
  if (verdict.band != Band::kUnknown || band == Band::kUnknown) {
    const bool is_hint = observation.by_ipc_alone && !by_ipc_bands && band != Band::kHalted;
    if (is_hint) return {.bounds = kAnything.bounds, .doubt = Doubt::kIpcBands};
    return YesOrNo(verdict.band == band);
  }
  const bool on_a_cpu = observation.degraded && verdict.rule == core::Rule::kNoCounters;
  return band == Band::kHalted && on_a_cpu ? Exactly(0) : kAnything;
}

Share Starved(const Observation& observation) {
  const core::Verdict& verdict = observation.verdict;
  const bool known = verdict.band != Band::kNone && (verdict.starved || observation.waiting);
  return known ? YesOrNo(verdict.starved) : kAnything;
}

Share Residency(const Observation& observation) {
  if (!observation.residency) return kAnything;
  const Bounds& bounds = *observation.residency;
  return {.bounds = bounds, .doubt = bounds.low < bounds.high ? Doubt::kResidency : Doubt::kNone};
}

// Whether high values are on the wrong side of `limit`; nothing where both may be.
std::optional<bool> HighIsWrong(const std::optional<Limit>& limit) {
  if (!limit) return std::nullopt;
  if (limit->comparison != Comparison::kEqual) return IsUpperLimit(limit->comparison);
  return limit->value == 0 ? std::optional(true) : std::nullopt;
}

// Adds a part to what is not known.
void AddDoubt(const Share& share, int64_t length_ns, Tallied& tallied) {
  const auto width = share.bounds.high - share.bounds.low;
  const int64_t unknown_ns = std::llround(width * static_cast<double>(length_ns));
  tallied.unknown_ns += unknown_ns;
  if (share.doubt == Doubt::kIpcBands) tallied.ipc_bands_ns += unknown_ns;
  if (share.doubt == Doubt::kResidency) tallied.residency_ns += unknown_ns;
}

// The mean of a share over the time.
class ShareTally final : public Tally {
 public:
  ShareTally(const Quantity& quantity, const std::optional<Limit>& limit)
      : quantity_(quantity), high_is_wrong_(HighIsWrong(limit)) {
    if (high_is_wrong_) worst_.emplace(*high_is_wrong_);
  }

  void Add(const Part& part) override {
    const Share share = ShareOf(quantity_, part);
    const int64_t length_ns = part.when.Length();
    const auto length = static_cast<double>(length_ns);
    judged_ns_ += length_ns;
    AddDoubt(share, length_ns, tallied_);
    low_ += share.bounds.low * length;
    high_ += share.bounds.high * length;
    if (!worst_) return;
    // What is surely on the wrong side: unknown time speaks for the quantity.
    const double surely = *high_is_wrong_ ? share.bounds.low : share.bounds.high;
    worst_->Add(part.when, part.begins, surely * length, length);
  }

  Tallied Finish() override {
    if (judged_ns_ == 0) return tallied_;
    const auto judged = static_cast<double>(judged_ns_);
    tallied_.observed = Bounds{.low = low_ / judged, .high = high_ / judged};
    if (worst_) tallied_.worst = worst_->Finish();
    return tallied_;
  }

 private:
  const Quantity quantity_;
  const std::optional<bool> high_is_wrong_;
  int64_t judged_ns_ = 0;
  double low_ = 0;  // ns: whole numbers but for residency
  double high_ = 0;
  Tallied tallied_;
  std::optional<WorstWindow> worst_;
};

// The longest run of one state in the judged time, over pieces of it that touch.
class LongestTally final : public Tally {
 public:
  LongestTally(const Quantity& quantity, const std::optional<Limit>& limit)
      : quantity_(quantity), high_is_wrong_(HighIsWrong(limit)) {}

  void Add(const Part& part) override {
    const Share share = ShareOf(quantity_, part);
    judged_ns_ += part.when.Length();
    AddDoubt(share, part.when.Length(), tallied_);
    Extend(part, share.bounds.low == 1, sure_);
    Extend(part, share.bounds.high > 0, possible_);
  }

  Tallied Finish() override {
    if (judged_ns_ == 0) return tallied_;
    const TimeRange& sure = sure_.longest;
    const TimeRange& possible = possible_.longest;
    tallied_.observed = Bounds{.low = static_cast<double>(sure.Length()),
                               .high = static_cast<double>(possible.Length())};
    if (high_is_wrong_) {
      const TimeRange& run = *high_is_wrong_ ? sure : possible;
      if (run.Length() > 0) {
        tallied_.worst = ObservedRange{.when = run, .observed = static_cast<double>(run.Length())};
      }
    }
    return tallied_;
  }

 private:
  struct Runs {
    std::optional<TimeRange> current;
    TimeRange longest;
  };

  static void Extend(const Part& part, bool belongs, Runs& runs) {
    if (part.begins || !belongs) runs.current.reset();
    if (!belongs) return;
    if (!runs.current) runs.current = part.when;
    runs.current->to_ns = part.when.to_ns;
    if (runs.current->Length() > runs.longest.Length()) runs.longest = *runs.current;
  }

  const Quantity quantity_;
  const std::optional<bool> high_is_wrong_;
  int64_t judged_ns_ = 0;
  Tallied tallied_;
  Runs sure_;
  Runs possible_;
};

// A tenth of a second, from ticks that may come a little early.
constexpr int64_t kBucket_ns = 95'000'000;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Values with the time they had, in buckets of 1/128 of an octave from 2^-20 to 2^20.
class Histogram {
 public:
  void Add(double value, int64_t weight_ns) {
    Bucket& bucket = buckets_[BucketOf(value)];
    bucket.seen.low = std::min(bucket.seen.low, value);
    bucket.seen.high = std::max(bucket.seen.high, value);
    bucket.weight_ns += weight_ns;
  }

  // The lowest and the highest value seen in the bucket where the time at or below reaches
  // `weight_ns`: at most 0.6 % apart. Infinite where it is never reached.
  Bounds ValueAt(double weight_ns) const {
    int64_t below_ns = 0;
    for (const auto& [number, bucket] : buckets_) {
      below_ns += bucket.weight_ns;
      if (static_cast<double>(below_ns) >= weight_ns) return bucket.seen;
    }
    return {.low = kInfinity, .high = kInfinity};
  }

 private:
  struct Bucket {
    Bounds seen{.low = kInfinity, .high = 0};
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
      : quantity_(quantity), limit_(limit ? limit->value : std::nullopt) {
    if (const auto high_is_wrong = HighIsWrong(limit)) worst_.emplace(*high_is_wrong);
  }

  void Add(const Part& part) override;
  Tallied Finish() override;

 private:
  // What was read of about a second, where all of it lies in a piece of the judged time.
  void AddReading(const Part& part);
  void Count(double value, int64_t weight_ns);
  // The percentile where `lowest_ns` of all the time had the lowest value there is, beside what was
  // counted, and all of it together was `total_ns`.
  Bounds Percentile(double lowest_ns, double total_ns) const;

  const Quantity quantity_;
  const std::optional<double> limit_;
  Histogram histogram_;
  int64_t below_ns_ = 0;  // the limit
  int64_t at_ns_ = 0;
  int64_t counted_ns_ = 0;
  int64_t unknown_ns_ = 0;
  int64_t piece_from_ns_ = 0;  // of readings
  std::optional<WorstWindow> worst_;
};

void PercentileTally::Count(double value, int64_t weight_ns) {
  histogram_.Add(value, weight_ns);
  counted_ns_ += weight_ns;
  if (limit_ && value < *limit_) below_ns_ += weight_ns;
  if (limit_ && value == *limit_) at_ns_ += weight_ns;
}

void PercentileTally::AddReading(const Part& part) {
  if (part.begins) piece_from_ns_ = part.when.from_ns;
  unknown_ns_ += part.when.Length();
  const Observation* const seen = part.observation;
  const std::optional<double> value =
      seen != nullptr ? seen->Value(quantity_.metric) : std::nullopt;
  int64_t weight_ns = 0;
  if (value) {
    // An interval may lie in two parts: the reading is in that which holds its end.
    const TimeRange& over = seen->read_over[static_cast<size_t>(quantity_.metric)];
    const bool ends_here = part.when.from_ns < over.to_ns && over.to_ns <= part.when.to_ns;
    if (ends_here && over.from_ns >= piece_from_ns_) weight_ns = over.Length();
  }
  if (weight_ns > 0) Count(*value, weight_ns);
  unknown_ns_ -= weight_ns;
  if (!worst_) return;
  const auto weight = static_cast<double>(weight_ns);
  worst_->Add(part.when, part.begins, value.value_or(0) * weight, weight);
}

void PercentileTally::Add(const Part& part) {
  if (metric::InfoOf(quantity_.metric).of_readings) return AddReading(part);
  const Observation* const seen = part.observation;
  const int64_t length_ns = part.when.Length();
  const bool judged = seen != nullptr && seen->verdict.band != core::Band::kNone;
  const bool halted = judged && seen->verdict.band == core::Band::kHalted;
  const std::optional<double> value =
      judged && !halted ? seen->Value(quantity_.metric) : std::nullopt;
  if (value) {
    Count(*value, length_ns);
  } else if (!halted) {
    unknown_ns_ += length_ns;
  }
  if (!worst_) return;
  const double weight = value ? static_cast<double>(length_ns) : 0;
  worst_->Add(part.when, part.begins, value.value_or(0) * weight, weight);
}

Bounds PercentileTally::Percentile(double lowest_ns, double total_ns) const {
  const double wanted_ns = quantity_.percentile * total_ns / 100;
  const Bounds estimate =
      lowest_ns >= wanted_ns ? Bounds() : histogram_.ValueAt(wanted_ns - lowest_ns);
  if (!limit_) return estimate;
  const auto exactly = [](double value) { return Bounds{.low = value, .high = value}; };
  const double limit = *limit_;
  const double below_ns = static_cast<double>(below_ns_) + (limit > 0 ? lowest_ns : 0);
  if (below_ns >= wanted_ns) {
    return exactly(std::min(estimate.high, std::nextafter(limit, -kInfinity)));
  }
  const double up_to_ns = static_cast<double>(below_ns_ + at_ns_) + lowest_ns;
  if (up_to_ns >= wanted_ns) return exactly(limit);
  return exactly(std::max(estimate.high, std::nextafter(limit, kInfinity)));
}

Tallied PercentileTally::Finish() {
  // Readings are stamped apart from ticks, so that their time may exceed that of the ticks a
  // little.
  unknown_ns_ = std::max<int64_t>(0, unknown_ns_);
  Tallied tallied{.unknown_ns = unknown_ns_};
  if (counted_ns_ == 0) return tallied;
  // Unknown time changes most where none of it was HALTED, and all of it lay at one end.
  const double total_ns = static_cast<double>(counted_ns_ + unknown_ns_);
  tallied.observed = Bounds{.low = Percentile(static_cast<double>(unknown_ns_), total_ns).low,
                            .high = Percentile(0, total_ns).high};
  if (worst_) tallied.worst = worst_->Finish();
  return tallied;
}

}  // namespace

Share ShareOf(const Quantity& quantity, const Part& part) {
  const Observation* const seen = part.observation;
  if (quantity.kind == Quantity::Kind::kGaps) {
    return seen != nullptr && seen->in_part ? kAnything : YesOrNo(seen == nullptr);
  }
  if (seen == nullptr) return kAnything;
  switch (quantity.metric) {
    case Metric::kHalted:
      return InBand(Band::kHalted, *seen, quantity.by_ipc_bands);
    case Metric::kSpinning:
      return InBand(Band::kSpinning, *seen, quantity.by_ipc_bands);
    case Metric::kProductive:
      return InBand(Band::kProductive, *seen, quantity.by_ipc_bands);
    case Metric::kUnknown:
      return InBand(Band::kUnknown, *seen, quantity.by_ipc_bands);
    case Metric::kStarved:
      return Starved(*seen);
    case Metric::kResidency:
      return Residency(*seen);
    default:
      break;
  }
  const std::optional<double> share = seen->Value(quantity.metric);
  return share ? Exactly(*share) : kAnything;
}

std::unique_ptr<Tally> NewTally(const Quantity& quantity, const std::optional<Limit>& limit) {
  switch (quantity.kind) {
    case Quantity::Kind::kPercentile:
      return NewPercentileTally(quantity, limit);
    case Quantity::Kind::kLongest:
      return std::make_unique<LongestTally>(quantity, limit);
    case Quantity::Kind::kMean:
    case Quantity::Kind::kGaps:
    case Quantity::Kind::kHot:
      break;
  }
  return std::make_unique<ShareTally>(quantity, limit);
}

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

std::unique_ptr<Tally> NewPercentileTally(const Quantity& quantity,
                                          const std::optional<Limit>& limit) {
  return std::make_unique<PercentileTally>(quantity, limit);
}

}  // namespace vcpulse::check
