#include "monitor/compare/block_length.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vcpulse::compare {
namespace {

// The autocovariances of `values` (their mean is 0) at lags 0 to `most`.
std::vector<double> Autocovariances(std::span<const double> values, std::span<const size_t> run,
                                    size_t most) {
  const size_t n = values.size();
  std::vector<double> covariances(most + 1, 0.0);
  for (size_t lag = 0; lag <= most; ++lag) {
    double sum = 0;
    size_t pairs = 0;
    for (size_t i = lag; i < n; ++i) {
      if (run[i] != run[i - lag]) continue;
      sum += values[i] * values[i - lag];
      ++pairs;
    }
    // Short runs have few pairs far apart; weighed as if there were no break, they are not lost.
    const double share = static_cast<double>(n - lag) / static_cast<double>(n);
    covariances[lag] = pairs == 0 ? 0 : sum / static_cast<double>(pairs) * share;
  }
  return covariances;
}

// From which lag on `needed` autocorrelations in a row are noise: 0 where the first ones are.
size_t LastMeaningfulLag(const std::vector<double>& covariances, size_t n, size_t needed) {
  const auto size = static_cast<double>(n);
  const double noise = 2 * std::sqrt(std::log10(size) / size) * covariances[0];
  size_t quiet = 0;
  for (size_t lag = 1; lag < covariances.size(); ++lag) {
    quiet = std::abs(covariances[lag]) < noise ? quiet + 1 : 0;
    if (quiet == needed) return lag - needed;
  }
  return covariances.size() - 1;
}

// 1 in the middle half, then down to 0: the flat-top window of Politis and Romano (1995).
double FlatTop(double t) { return t <= 0.5 ? 1.0 : std::max(0.0, 2 * (1 - t)); }

}  // namespace

double BestBlockLength(std::span<const Piece> pieces, double ratio) {
  const size_t n = pieces.size();
  if (n < 4) return 1;
  std::vector<double> values(n);
  std::vector<size_t> run(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = pieces[i].part - ratio * pieces[i].whole;
    run[i] = i == 0 ? 0 : run[i - 1] + (pieces[i].begins ? 1 : 0);
  }
  const auto size = static_cast<double>(n);
  const auto needed = static_cast<size_t>(std::max(5.0, std::ceil(std::sqrt(std::log10(size)))));
  const size_t most = std::min(n - 1, static_cast<size_t>(std::ceil(std::sqrt(size))) + needed);
  const std::vector<double> covariances = Autocovariances(values, run, most);
  if (covariances[0] <= 0) return 1;

  const size_t last = LastMeaningfulLag(covariances, n, needed);
  const size_t bandwidth = std::min(most, 2 * std::max<size_t>(last, 1));
  double spectrum = covariances[0];  // at frequency 0
  double slope = 0;
  for (size_t lag = 1; lag <= bandwidth; ++lag) {
    const double weight = FlatTop(static_cast<double>(lag) / static_cast<double>(bandwidth));
    spectrum += 2 * weight * covariances[lag];
    slope += 2 * weight * static_cast<double>(lag) * covariances[lag];
  }
  if (spectrum <= 0) return 1;
  const double relative = slope / spectrum;
  return std::max(1.0, std::cbrt(1.5 * relative * relative * size));
}

}  // namespace vcpulse::compare
