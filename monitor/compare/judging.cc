#include "monitor/compare/judging.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/check/expression.h"

namespace vcpulse::compare {
namespace {

constexpr double kError = 0.05;           // of all verdicts "differs" together
constexpr double kWidestShare = 1;        // an interval of 100 points
constexpr double kShownDoubt = 0.0005;    // what is less would be shown as 0.0 %
constexpr double kOneSidedError = 0.025;  // of all FAILs of one limit together

bool IsSlight(const Row& row) {
  const double size = std::abs(*row.difference);
  if (metric::InfoOf(row.metric).IsShare()) return size < kLeastShare;
  return size < kLeastChange * std::abs(row.a.value.value_or(0));
}

// Whether its interval leaves open nearly everything that a share could do.
bool SaysNothing(const Row& row) {
  return metric::InfoOf(row.metric).IsShare() &&
         row.contrast->high - row.contrast->low >= kWidestShare;
}

Verdict VerdictOf(const Row& row) {
  if (!row.contrast) return Verdict::kUntold;
  if (*row.adjusted < kError) return IsSlight(row) ? Verdict::kSlight : Verdict::kDiffers;
  const bool excludes_zero = row.contrast->low > 0 || row.contrast->high < 0;
  if (excludes_zero && !IsSlight(row)) return Verdict::kMaybe;
  return SaysNothing(row) ? Verdict::kUntold : Verdict::kNotToldApart;
}

// How large a difference is, on one scale: points of a share, or the relative change of a number.
double EffectOf(const Row& row) {
  const double size = std::abs(row.difference.value_or(0));
  if (metric::InfoOf(row.metric).IsShare()) return size;
  const double base = row.a.value.value_or(0);
  return base > 0 ? size / base : size;
}

std::string ReasonText(const Limit& limit, const Row& row, const Doubt& doubt, bool no_counters) {
  const std::string name(metric::InfoOf(limit.metric).key);
  if (no_counters) return absl::StrCat(name, " needs hardware counters, and a recording has none");
  const std::string values = absl::StrCat(name, " ", ValueText(row.metric, row.a.value), " in A, ",
                                          ValueText(row.metric, row.b.value), " in B");
  if (!row.difference) return values + ": not measured in both";
  if (!row.contrast) {
    return absl::StrCat(values, ": ", ChangeText(row, *row.difference),
                        row.a.runs + row.b.runs > 2 ? ", measured in too few runs to judge by"
                                                    : ", too short to judge by");
  }
  return absl::StrCat(values, ": ", ChangeText(row, *row.difference),
                      " (95 %: ", ChangeText(row, row.contrast->low), " to ",
                      ChangeText(row, row.contrast->high), ")",
                      doubt.a + doubt.b < kShownDoubt
                          ? ""
                          : absl::StrFormat("; UNKNOWN %.1f%% and %.1f%% may have been it too",
                                            doubt.a * 100, doubt.b * 100));
}

}  // namespace

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDiffers:
      return "differs";
    case Verdict::kSlight:
      return "slight";
    case Verdict::kMaybe:
      return "maybe";
    case Verdict::kNotToldApart:
      return "no-difference-found";
    case Verdict::kUntold:
      return "insufficient-data";
  }
  return "-";
}

std::vector<double> HolmAdjusted(std::span<const double> chances) {
  std::vector<size_t> order(chances.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [chances](size_t i) { return chances[i]; });
  std::vector<double> adjusted(chances.size());
  double highest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = chances[order[rank]] * static_cast<double>(order.size() - rank);
    highest = std::min(1.0, std::max(highest, scaled));
    adjusted[order[rank]] = highest;
  }
  return adjusted;
}

void JudgeRows(Comparison& comparison) {
  std::vector<double> chances;
  for (const Row& row : comparison.rows) {
    if (row.chance) chances.push_back(*row.chance);
  }
  comparison.tests = chances.size();
  const std::vector<double> adjusted = HolmAdjusted(chances);
  auto next = adjusted.begin();
  for (Row& row : comparison.rows) {
    if (row.chance) row.adjusted = *next++;
    row.verdict = VerdictOf(row);
  }
  std::ranges::stable_sort(comparison.rows, [](const Row& x, const Row& y) {
    if (x.verdict != y.verdict) return x.verdict < y.verdict;
    return EffectOf(x) > EffectOf(y);
  });
}

std::string Subject(const Row& row) {
  std::string text = absl::StrCat("VM ", Printable(row.vm), " vCPU ", row.vcpu);
  if (row.phase) absl::StrAppend(&text, " phase ", Printable(*row.phase));
  return text;
}

Held HoldAgainst(const Limit& limit, const Row& row, const std::optional<Contrast>& beyond,
                 const Doubt& doubt, bool no_counters) {
  Held held;
  held.finding = {.subject = Subject(row),
                  .outcome = no_counters ? check::Outcome::kSkip : check::Outcome::kInconclusive,
                  .reason = ReasonText(limit, row, doubt, no_counters)};
  if (no_counters || !beyond) return held;
  // What is relative is in `beyond` already.
  const double value = limit.relative ? 0 : limit.value;
  const double doubt_of_a = doubt.a * (limit.relative ? std::max(0.0, 1 + limit.value) : 1);
  // Only what was the same in all runs lies on a single point.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (limit.above) {
    const double most = value + doubt_of_a;
    held.chance = beyond->ChanceAbove(limit.or_equal ? std::nextafter(most, -kInfinity) : most);
    const double high = beyond->high + doubt.b;
    held.surely_within = limit.or_equal ? high < value : high <= value;
  } else {
    const double least = value - doubt.b;
    held.chance = beyond->ChanceBelow(limit.or_equal ? std::nextafter(least, kInfinity) : least);
    const double low = beyond->low - doubt_of_a;
    held.surely_within = limit.or_equal ? low > value : low >= value;
  }
  return held;
}

JudgedLimit Judge(const Limit& limit, std::vector<Held> held, bool allow_skip) {
  JudgedLimit judged{.limit = limit};
  std::vector<double> chances;
  for (const Held& one : held) {
    if (one.chance) chances.push_back(*one.chance);
  }
  const std::vector<double> adjusted = HolmAdjusted(chances);
  auto next = adjusted.begin();
  for (Held& one : held) {
    if (one.chance && *next++ < kOneSidedError) {
      one.finding.outcome = check::Outcome::kFail;
    } else if (one.surely_within) {
      one.finding.outcome = check::Outcome::kPass;
    }
    judged.findings.push_back(std::move(one.finding));
  }
  judged.outcome = check::WorstOf(judged.findings, allow_skip);
  if (judged.findings.empty()) {
    judged.outcome = check::Outcome::kInconclusive;
    judged.findings.push_back(
        {.subject = "-", .reason = "no vCPU that was compared, and was measured, fits it"});
  }
  return judged;
}

void DoubtWithoutRuns(JudgedLimit& judged) {
  for (LimitFinding& finding : judged.findings) {
    if (finding.outcome != check::Outcome::kFail && finding.outcome != check::Outcome::kPass) {
      continue;
    }
    absl::StrAppend(&finding.reason, "; ", ToAbsl(check::ToString(finding.outcome)),
                    " for this pair of runs only");
    finding.outcome = check::Outcome::kInconclusive;
  }
  judged.outcome = check::WorstOf(judged.findings);
}

std::string ChangeText(const Row& row, double difference) {
  const metric::Info& info = metric::InfoOf(row.metric);
  if (info.IsShare()) return absl::StrFormat("%+.1f pt", difference * 100);
  return absl::StrFormat("%+.*f", info.decimals + 1, difference);
}

std::string ValueText(Metric metric, const std::optional<double>& value) {
  if (!value) return "-";
  const metric::Info& info = metric::InfoOf(metric);
  if (info.IsShare()) return absl::StrFormat("%.1f%%", *value * 100);
  return absl::StrFormat("%.*f", info.decimals + 1, *value);
}

}  // namespace vcpulse::compare
