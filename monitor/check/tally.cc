#include "monitor/check/tally.h"

#include <algorithm>

#include "monitor/check/outcome.h"

namespace vcpulse::check {
namespace {

using core::Band;

std::optional<double> YesOrNo(bool yes) { return yes ? 1.0 : 0.0; }

// Whether a part was in `band`.
std::optional<double> InBand(Band band, const Observation& observation) {
  const Band seen = observation.verdict.band;
  if (seen == Band::kNone) return std::nullopt;
  if (seen != Band::kUnknown || band == Band::kUnknown) return YesOrNo(seen == band);
  const bool on_a_cpu = observation.degraded && observation.verdict.rule == core::Rule::kNoCounters;
  if (band == Band::kHalted && on_a_cpu) return 0.0;
  return std::nullopt;
}

std::optional<double> Starved(const Observation& observation) {
  if (observation.verdict.band == Band::kNone) return std::nullopt;
  if (!observation.verdict.starved && !observation.waiting) return std::nullopt;
  return YesOrNo(observation.verdict.starved);
}

// The mean of a share over the time.
class ShareTally final : public Tally {
 public:
  ShareTally(const Quantity& quantity, const std::optional<Limit>& limit)
      : quantity_(quantity), upper_(limit && IsUpperLimit(limit->comparison)) {
    if (limit) worst_.emplace(upper_);
  }

  void Add(const Part& part) override {
    const std::optional<double> share = ShareOf(quantity_, part);
    const int64_t length_ns = part.when.Length();
    const auto length = static_cast<double>(length_ns);
    judged_ns_ += length_ns;
    if (!share) unknown_ns_ += length_ns;
    sure_ += share.value_or(0) * length;
    // What is surely on the wrong side: unknown time speaks for the quantity.
    if (worst_)
      worst_->Add(part.when, part.begins, share.value_or(upper_ ? 0 : 1) * length, length);
  }

  Tallied Finish() override {
    Tallied tallied{.unknown_ns = unknown_ns_};
    if (judged_ns_ == 0) return tallied;
    const auto judged = static_cast<double>(judged_ns_);
    tallied.observed =
        Bounds{.low = sure_ / judged, .high = (sure_ + static_cast<double>(unknown_ns_)) / judged};
    if (worst_) tallied.worst = worst_->Finish();
    return tallied;
  }

 private:
  const Quantity quantity_;
  const bool upper_;
  int64_t judged_ns_ = 0;
  int64_t unknown_ns_ = 0;
  double sure_ = 0;  // ns: whole numbers but for residency
  std::optional<WorstWindow> worst_;
};

// The longest run of one state in the judged time, over pieces of it that touch.
class LongestTally final : public Tally {
 public:
  LongestTally(const Quantity& quantity, const std::optional<Limit>& limit)
      : quantity_(quantity), limit_(limit) {}

  void Add(const Part& part) override {
    const std::optional<double> share = ShareOf(quantity_, part);
    judged_ns_ += part.when.Length();
    if (!share) unknown_ns_ += part.when.Length();
    Extend(part, share == 1.0, sure_);
    Extend(part, share != 0.0, possible_);
  }

  Tallied Finish() override {
    Tallied tallied{.unknown_ns = unknown_ns_};
    if (judged_ns_ == 0) return tallied;
    const TimeRange& sure = sure_.longest;
    const TimeRange& possible = possible_.longest;
    tallied.observed = Bounds{.low = static_cast<double>(sure.Length()),
                              .high = static_cast<double>(possible.Length())};
    if (limit_) {
      const TimeRange& run = IsUpperLimit(limit_->comparison) ? sure : possible;
      if (run.Length() > 0) {
        tallied.worst = ObservedRange{.when = run, .observed = static_cast<double>(run.Length())};
      }
    }
    return tallied;
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
  const std::optional<Limit> limit_;
  int64_t judged_ns_ = 0;
  int64_t unknown_ns_ = 0;
  Runs sure_;
  Runs possible_;
};

}  // namespace

std::optional<double> ShareOf(const Quantity& quantity, const Part& part) {
  if (quantity.kind == Quantity::Kind::kGaps) {
    if (part.observation != nullptr && part.observation->gone) return std::nullopt;
    return YesOrNo(part.observation == nullptr);
  }
  if (part.observation == nullptr) return std::nullopt;
  switch (quantity.metric) {
    case Metric::kHalted:
      return InBand(Band::kHalted, *part.observation);
    case Metric::kSpinning:
      return InBand(Band::kSpinning, *part.observation);
    case Metric::kProductive:
      return InBand(Band::kProductive, *part.observation);
    case Metric::kUnknown:
      return InBand(Band::kUnknown, *part.observation);
    case Metric::kStarved:
      return Starved(*part.observation);
    default:
      return part.observation->Value(quantity.metric);
  }
}

std::unique_ptr<Tally> NewTally(const Quantity& quantity, const std::optional<Limit>& limit) {
  switch (quantity.kind) {
    case Quantity::Kind::kPercentile:
      return NewPercentileTally(quantity, limit);
    case Quantity::Kind::kLongest:
      return std::make_unique<LongestTally>(quantity, limit);
    case Quantity::Kind::kMean:
    case Quantity::Kind::kGaps:
      break;
  }
  return std::make_unique<ShareTally>(quantity, limit);
}

}  // namespace vcpulse::check
