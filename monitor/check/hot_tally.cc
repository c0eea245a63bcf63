#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "monitor/check/tally.h"
#include "monitor/hotspots/places.h"

namespace vcpulse::check {
namespace {

// Where the share lies of which `part` of `all` samples were found (95 %): Wilson's interval, which
// holds for few samples and for shares near 0 and 1 too (JASA 22, 1927, p. 209).
Bounds Wilson(double part, double all) {
  constexpr double kZ = 1.96;
  constexpr double kZ2 = kZ * kZ;
  const double share = part / all;
  const double middle = share + kZ2 / (2 * all);
  const double half = kZ * std::sqrt(share * (1 - share) / all + kZ2 / (4 * all * all));
  const double scale = 1 + kZ2 / all;
  return {.low = std::max(0.0, (middle - half) / scale),
          .high = std::min(1.0, (middle + half) / scale)};
}

class HotTally final : public Tally {
 public:
  HotTally(const Quantity& quantity, const hotspots::Symbols& symbols)
      : functions_(quantity.functions), symbols_(symbols) {}

  void Add(const Part& /*part*/) override {}

  void Take(const v1::HotAddresses& window) override {
    hotspots::ForEachPlace(window, [this](const hotspots::Place& place) {
      const auto samples = static_cast<double>(place.samples);
      all_ += samples;
      if (place.at.mode == kvm::GuestMode::kUser) return;
      const auto symbol = symbols_.empty() ? place.named : symbols_.Find(place.at.address);
      if (!symbol) {
        unnamed_ += samples;
      } else if (fnmatch(functions_.c_str(), symbol->name.c_str(), 0) == 0) {
        matched_ += samples;
      }
    });
    const auto further = static_cast<double>(hotspots::Believable(window.further_samples()));
    all_ += further;
    unnamed_ += further;
  }

  Tallied Finish() override {
    Tallied tallied;
    if (all_ == 0) return tallied;
    tallied.observed =
        Bounds{.low = Wilson(matched_, all_).low, .high = Wilson(matched_ + unnamed_, all_).high};
    return tallied;
  }

 private:
  const std::string functions_;
  const hotspots::Symbols& symbols_;
  double all_ = 0;  // samples: whole numbers
  double matched_ = 0;
  double unnamed_ = 0;
};

}  // namespace

std::unique_ptr<Tally> NewHotTally(const Quantity& quantity, const hotspots::Symbols& symbols) {
  return std::make_unique<HotTally>(quantity, symbols);
}

}  // namespace vcpulse::check
