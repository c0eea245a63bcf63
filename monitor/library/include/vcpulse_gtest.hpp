// GoogleTest matchers for vcpulse.hpp. Link GTest::gmock.
//
//   EXPECT_THAT(timeline, vcpulse::Meets("vcpu=*: productive >= 80%").During("work"));
//   EXPECT_THAT(timeline.Share(0, vcpulse::Band::kHalted, "idle"), vcpulse::SurelyAtLeast(0.9));
//
// What is not sure does not match: INCONCLUSIVE and SKIP fail and say so. So they let
// Not(Meets(...)) pass: what has to be a FAIL is SurelyFails(...). An expectation that cannot be
// judged, as a misspelt one, is a failure of the test by itself, whatever is around the matcher.
// Where a test needs counters, let it ask timeline.no_counters_reason() and GTEST_SKIP() first.
#ifndef VCPULSE_GTEST_HPP_
#define VCPULSE_GTEST_HPP_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>

#include "vcpulse.hpp"

namespace vcpulse {
inline namespace api_0_1 {

// How GoogleTest prints them.
inline void PrintTo(const Bounds& bounds, std::ostream* out) {
  *out << "between " << bounds.low << " and " << bounds.high << " (" << bounds.ticks << " ticks)";
}
inline void PrintTo(const Timeline& timeline, std::ostream* out) {
  *out << "timeline " << timeline.path();
}

// Matches a Timeline on which the expectation is a PASS.
class Meets {
 public:
  using is_gtest_matcher = void;

  explicit Meets(std::string expression) : expression_(std::move(expression)) {}

  // The same over the spans of one phase.
  Meets During(std::string phase) const {
    Meets meets = *this;
    meets.phase_ = std::move(phase);
    return meets;
  }
  // The same with other demands on what it judges by.
  Meets Within(const Limits& limits) const {
    Meets meets = *this;
    meets.limits_ = limits;
    return meets;
  }

  bool MatchAndExplain(const Timeline& timeline, std::ostream* out) const {
    try {
      const CheckResult result = timeline.Check(expression_, phase_, limits_);
      if (out != nullptr) *out << "which is " << ToString(result.outcome) << ":\n" << result.text;
      return result.outcome == wanted_;
    } catch (const Error& error) {
      ADD_FAILURE() << Quoted() << " cannot be judged: " << error.what();
      if (out != nullptr) *out << "which cannot be judged: " << error.what();
      return false;
    }
  }
  void DescribeTo(std::ostream* out) const { *out << Verb() << Quoted(); }
  void DescribeNegationTo(std::ostream* out) const {
    *out << (wanted_ == Outcome::kPass ? "does not meet " : "does not surely fail ") << Quoted();
  }

 private:
  friend Meets SurelyFails(std::string expression);

  const char* Verb() const { return wanted_ == Outcome::kPass ? "meets " : "surely fails "; }
  std::string Quoted() const {
    return "\"" + expression_ + "\"" + (phase_ ? " in phase \"" + *phase_ + "\"" : "");
  }

  std::string expression_;
  Timeline::Phase phase_;
  Limits limits_;
  Outcome wanted_ = Outcome::kPass;
};

// Matches a Timeline on which the expectation is a FAIL; During() and Within() as above.
inline Meets SurelyFails(std::string expression) {
  Meets fails(std::move(expression));
  fails.wanted_ = Outcome::kFail;
  return fails;
}

namespace detail {

// Matches Bounds all of which lie on one side of a limit.
class SurelyOnSide {
 public:
  using is_gtest_matcher = void;

  SurelyOnSide(double limit, bool at_least) : limit_(limit), at_least_(at_least) {}

  bool MatchAndExplain(const Bounds& bounds, std::ostream* out) const {
    const bool all = at_least_ ? bounds.low >= limit_ : bounds.high <= limit_;
    const bool none = at_least_ ? bounds.high < limit_ : bounds.low > limit_;
    if (out == nullptr) return all;
    if (none) *out << "which surely is not";
    if (!all && !none) {
      *out << "which is INCONCLUSIVE: " << std::chrono::duration<double>(bounds.unknown).count()
           << " s of " << std::chrono::duration<double>(bounds.judged).count()
           << " s are not known";
    }
    return all;
  }
  void DescribeTo(std::ostream* out) const {
    *out << "surely is at " << (at_least_ ? "least " : "most ") << limit_;
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "is not surely at " << (at_least_ ? "least " : "most ") << limit_;
  }

 private:
  double limit_;
  bool at_least_;
};

}  // namespace detail

// Whatever the unknown time was.
inline detail::SurelyOnSide SurelyAtLeast(double limit) { return {limit, true}; }
inline detail::SurelyOnSide SurelyAtMost(double limit) { return {limit, false}; }

}  // namespace api_0_1
}  // namespace vcpulse

#endif  // VCPULSE_GTEST_HPP_
