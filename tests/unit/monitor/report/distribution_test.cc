#include "monitor/report/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace vcpulse::report {
namespace {

// Nothing is not zero: a report shows "-" for it.
TEST(Distribution, HasNoQuantileOfNothing) {
  const Distribution none;
  EXPECT_FALSE(none.Quantile(0.5).has_value());
  EXPECT_FALSE(none.Max().has_value());
}

// The lab's IPC is the same in every tick: the bucket's width must not blur it.
TEST(Distribution, IsExactForEqualValues) {
  Distribution d;
  for (int i = 0; i < 1000; ++i) d.Add(0.25);
  EXPECT_EQ(d.Quantile(0.01), 0.25);
  EXPECT_EQ(d.Quantile(0.99), 0.25);
  EXPECT_EQ(d.Max(), 0.25);
}

// The stated error is a promise (the JSON repeats it), over the whole range of what is measured:
// IPC of a pointer chase to ticks that are a day late.
TEST(Distribution, KeepsItsStatedErrorOverTheWholeRange) {
  for (const double scale : {1e-3, 1.0, 237.0, 5e6, 1e11}) {
    Distribution d;
    for (int i = 1; i <= 1000; ++i) d.Add(scale * i);
    for (const double q : {0.01, 0.5, 0.9, 0.99}) {
      const double exact = scale * std::ceil(q * 1000);
      EXPECT_NEAR(*d.Quantile(q), exact, exact * Distribution::kRelativeError)
          << "scale " << scale << " q " << q;
    }
    EXPECT_EQ(d.Max(), scale * 1000);
  }
}

// Ranks: of 100 values p99 is the 99th, not the largest, and p0 the smallest.
TEST(Distribution, CountsRanksFromTheSmallest) {
  Distribution d;
  d.Add(1000);
  for (int i = 0; i < 99; ++i) d.Add(1);
  EXPECT_NEAR(*d.Quantile(0.99), 1, 0.01);
  EXPECT_EQ(d.Quantile(1), 1000);
  EXPECT_EQ(d.Quantile(0), 1);  // the extremes are exact
}

// Zero, a clock that stepped back, and values beyond the highest bucket keep their rank and do not
// take memory.
TEST(Distribution, TakesValuesOutsideItsRange) {
  Distribution d;
  for (const double value : {0.0, -5.0, 1e-300, 1e300, std::numeric_limits<double>::infinity()}) {
    d.Add(value);
  }
  d.Add(std::numeric_limits<double>::quiet_NaN());  // no value at all
  EXPECT_EQ(d.count(), 5u);
  EXPECT_EQ(d.Quantile(0.5), -5);  // three of five lie below the lowest bucket
  EXPECT_NEAR(*d.Quantile(0.8), std::ldexp(1.0, 48), std::ldexp(1.0, 48) / 128);
  EXPECT_EQ(d.Max(), std::numeric_limits<double>::infinity());
}

// Buckets are added on either side of those that exist; none may lose its count.
TEST(Distribution, GrowsInBothDirections) {
  Distribution d;
  for (const double value : {10.0, 0.1, 1000.0, 1.0, 100.0}) d.Add(value);
  EXPECT_NEAR(*d.Quantile(0.2), 0.1, 0.1 / 256);
  EXPECT_NEAR(*d.Quantile(0.4), 1, 1.0 / 256);
  EXPECT_NEAR(*d.Quantile(0.6), 10, 10.0 / 256);
  EXPECT_NEAR(*d.Quantile(0.8), 100, 100.0 / 256);
}

}  // namespace
}  // namespace vcpulse::report
