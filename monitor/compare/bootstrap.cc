#include "monitor/compare/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "boost/math/distributions/students_t.hpp"

namespace vcpulse::compare {
namespace {

constexpr size_t kResamples = 1000;
constexpr size_t kFewestPieces = 20;
constexpr double kFewestBlocks = 4;
// The length that is best for the variance leaves it too small, by a tenth and more; tried on
// simulated chains, intervals hold the truth in 94 to 96 of 100 with blocks twice as long.
constexpr double kBlockFactor = 2;
constexpr double kLongestBlock = 1.0 / 8;     // of the series
constexpr double kShortestBlock = 1.0 / 256;  // of the series: shorter ones cost time alone
constexpr double kTail = 0.025;
constexpr double kNormalQuantile = 1.959963984540054;  // of 1 - kTail
constexpr double kMostFreedom = 1e6;

// SplitMix64 (Steele, Lea and Flood 2014): the same everywhere, which std's distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // 0 to n - 1; n is far below 2^32, so the skew of the multiplication is too.
  size_t Below(size_t n) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return static_cast<size_t>(((z >> 32) * n) >> 32);
  }

 private:
  uint64_t state_;
};

// Sums of blocks of any length that begin anywhere.
class Blocks {
 public:
  explicit Blocks(std::span<const Piece> pieces) : part_(1, 0.0), whole_(1, 0.0) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      part_.push_back(part_.back() + pieces[i].part);
      whole_.push_back(whole_.back() + pieces[i].whole);
      if (i == 0 || pieces[i].begins) run_begin_.push_back(i);
      run_of_.push_back(run_begin_.size() - 1);
    }
    run_begin_.push_back(pieces.size());
  }

  size_t size() const { return run_of_.size(); }

  // Adds the block from piece `begin` on, around within its run.
  void Add(size_t begin, size_t length, double& part, double& whole) const {
    const size_t run = run_of_[begin];
    const size_t run_begin = run_begin_[run];
    const size_t run_end = run_begin_[run + 1];
    while (length > 0) {
      const size_t taken = std::min(length, run_end - begin);
      part += part_[begin + taken] - part_[begin];
      whole += whole_[begin + taken] - whole_[begin];
      length -= taken;
      begin = run_begin;
    }
  }

  double Whole(size_t begin, size_t end) const { return whole_[end] - whole_[begin]; }

 private:
  std::vector<double> part_;  // of all pieces before
  std::vector<double> whole_;
  std::vector<size_t> run_begin_;
  std::vector<size_t> run_of_;
};

// How many blocks of equal wholes are worth as much as these are (Kish's effective sample size).
double EffectiveBlocks(const Blocks& blocks, size_t length) {
  double sum = 0;
  double squares = 0;
  for (size_t begin = 0; begin < blocks.size(); begin += length) {
    const double whole = blocks.Whole(begin, std::min(begin + length, blocks.size()));
    sum += whole;
    squares += whole * whole;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

// How often the pieces went above their mean and came back, at least 1: one burst of 20 ticks is
// one event, however many blocks there are.
double Turns(std::span<const Piece> pieces, double ratio) {
  size_t crossings = 0;
  bool above = false;
  bool known = false;
  for (const Piece& piece : pieces) {
    const double value = piece.part - ratio * piece.whole;
    if (value == 0) continue;
    if (known && (value > 0) != above) ++crossings;
    above = value > 0;
    known = true;
  }
  return std::max(1.0, static_cast<double>(crossings) / 2);
}

double Quantile(std::vector<double>& values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<size_t>(place)];
}

double VarianceAround(const std::vector<double>& values, double middle) {
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum / static_cast<double>(values.size());
}

// Half the width of the 95 % interval, in standard errors.
double StudentQuantile(double freedom) {
  return boost::math::quantile(
      boost::math::complement(boost::math::students_t_distribution<double>(freedom), kTail));
}

// Degrees of freedom of the sum of two variances (Welch 1947, Satterthwaite 1946).
double WelchFreedom(double variance_a, double freedom_a, double variance_b, double freedom_b) {
  const double variance = variance_a + variance_b;
  if (variance <= 0) return kMostFreedom;
  return std::min(kMostFreedom,
                  variance * variance /
                      (variance_a * variance_a / freedom_a + variance_b * variance_b / freedom_b));
}

double UpperTail(double t, double freedom) {
  return boost::math::cdf(
      boost::math::complement(boost::math::students_t_distribution<double>(freedom), t));
}

struct Mean {
  double value = 0;
  double variance = 0;  // of the mean itself
  double freedom = 0;
};

Mean MeanOf(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  const double middle = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return {.value = middle, .variance = squares / (count - 1) / count, .freedom = count - 1};
}

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

std::optional<Resampled> Resample(std::span<const Piece> pieces, double least_block,
                                  uint64_t seed) {
  const auto informed = std::ranges::count_if(pieces, [](const Piece& p) { return p.whole > 0; });
  if (static_cast<size_t>(informed) < kFewestPieces) return std::nullopt;
  const Blocks blocks(pieces);
  const size_t n = pieces.size();
  Resampled resampled;
  double part = 0;
  double whole = 0;
  for (const Piece& piece : pieces) {
    part += piece.part;
    whole += piece.whole;
  }
  resampled.ratio = part / whole;

  const auto size = static_cast<double>(n);
  const double wanted = std::max({kBlockFactor * BestBlockLength(pieces, resampled.ratio),
                                  least_block, size * kShortestBlock});
  const auto length = static_cast<size_t>(
      std::max(1.0, std::floor(std::min(std::ceil(wanted), size * kLongestBlock))));
  resampled.block_pieces = static_cast<double>(length);
  resampled.blocks = EffectiveBlocks(blocks, length);
  if (resampled.blocks < kFewestBlocks) return std::nullopt;
  resampled.blocks = std::min(resampled.blocks, Turns(pieces, resampled.ratio) + 1);

  Random random(seed);
  resampled.ratios.reserve(kResamples);
  for (size_t i = 0; i < kResamples; ++i) {
    double drawn_part = 0;
    double drawn_whole = 0;
    for (size_t drawn = 0; drawn < n; drawn += length) {
      blocks.Add(random.Below(n), std::min(length, n - drawn), drawn_part, drawn_whole);
    }
    // All blocks without a whole: the data say that this is hardly possible.
    resampled.ratios.push_back(drawn_whole > 0 ? drawn_part / drawn_whole : resampled.ratio);
  }
  return resampled;
}

Contrast ContrastOf(const Resampled& a, const Resampled& b, double factor) {
  const double widen_a = std::sqrt(a.blocks / (a.blocks - 1));
  const double widen_b = std::sqrt(b.blocks / (b.blocks - 1));
  std::vector<double> differences(std::min(a.ratios.size(), b.ratios.size()));
  for (size_t i = 0; i < differences.size(); ++i) {
    differences[i] = b.ratio + (b.ratios[i] - b.ratio) * widen_b -
                     factor * (a.ratio + (a.ratios[i] - a.ratio) * widen_a);
  }
  const double variance_a = VarianceAround(a.ratios, a.ratio) * widen_a * widen_a * factor * factor;
  const double variance_b = VarianceAround(b.ratios, b.ratio) * widen_b * widen_b;
  const double variance = variance_a + variance_b;
  Contrast contrast;
  contrast.estimate = b.ratio - factor * a.ratio;
  contrast.standard_error = std::sqrt(variance);
  contrast.degrees_of_freedom = WelchFreedom(variance_a, a.blocks - 1, variance_b, b.blocks - 1);
  const double widen = StudentQuantile(contrast.degrees_of_freedom) / kNormalQuantile;
  contrast.low =
      contrast.estimate + std::min(0.0, Quantile(differences, kTail) - contrast.estimate) * widen;
  contrast.high = contrast.estimate +
                  std::max(0.0, Quantile(differences, 1 - kTail) - contrast.estimate) * widen;
  return contrast;
}

Contrast ContrastOfRuns(std::span<const double> a, std::span<const double> b, double factor) {
  const Mean of_a = MeanOf(a);
  const Mean of_b = MeanOf(b);
  const double variance_a = of_a.variance * factor * factor;
  Contrast contrast;
  contrast.estimate = of_b.value - factor * of_a.value;
  contrast.standard_error = std::sqrt(variance_a + of_b.variance);
  contrast.degrees_of_freedom = WelchFreedom(variance_a, of_a.freedom, of_b.variance, of_b.freedom);
  const double half = StudentQuantile(contrast.degrees_of_freedom) * contrast.standard_error;
  contrast.low = contrast.estimate - half;
  contrast.high = contrast.estimate + half;
  return contrast;
}

double Contrast::ChanceAbove(double limit) const {
  if (standard_error <= 0) return estimate > limit ? 0 : 1;
  return UpperTail((estimate - limit) / standard_error, degrees_of_freedom);
}

double Contrast::ChanceBelow(double limit) const {
  if (standard_error <= 0) return estimate < limit ? 0 : 1;
  return UpperTail((limit - estimate) / standard_error, degrees_of_freedom);
}

double Contrast::ChanceBeyond(double limit) const {
  if (standard_error <= 0) return estimate == limit ? 1 : 0;
  return std::min(1.0,
                  2 * UpperTail(std::abs(estimate - limit) / standard_error, degrees_of_freedom));
}

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
