#include "kvm/doctor/judgement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm::doctor {
namespace {

constexpr uint64_t kLeastSlack = 100;
constexpr uint64_t kSlackPart = 100'000;
constexpr double kLeastHz = 1e8;
constexpr double kMostHz = 1e10;
constexpr double kLeastOfTsc = 0.5;
constexpr double kMostOfTsc = 1.05;

}  // namespace

uint64_t Slack(uint64_t expected) { return std::max(kLeastSlack, expected / kSlackPart); }

void Judgement::TakeTimes(const Counts& counts) {
  whole_ = whole_ && counts.Whole();
  ran_ = ran_ && counts.running_ns > 0;
}

void Judgement::Compare(const std::string& whose, std::string_view event, uint64_t expected,
                        uint64_t counted) {
  std::string text =
      absl::StrCat(whose, WithThousands(expected), " ", ToAbsl(event), " expected, counted ");
  if (counted == expected) {
    absl::StrAppend(&text, "exactly");
  } else if (counted == 0) {
    holds_ = false;
    absl::StrAppend(&text, "0: it stays 0 for guests");
  } else {
    const bool more = counted > expected;
    const uint64_t error = more ? counted - expected : expected - counted;
    holds_ = holds_ && error <= Slack(expected);
    absl::StrAppend(&text, WithThousands(counted), " (", more ? "+" : "-", WithThousands(error),
                    ")");
  }
  texts_.push_back(std::move(text));
}

void Judgement::CompareNothing(const std::string& what, const Counts& counts) {
  std::vector<std::string> counted;
  for (const auto& [event, count] : counts.of) {
    holds_ = holds_ && count <= Slack(0);
    if (count > 0) counted.push_back(absl::StrCat(WithThousands(count), " ", event));
  }
  if (counts.of.empty()) return;
  texts_.push_back(
      absl::StrCat(what, " counted ", counted.empty() ? "nothing" : absl::StrJoin(counted, ", ")));
}

void Judgement::CompareRate(std::string_view event, double hz, std::optional<double> tsc_hz) {
  std::string text = absl::StrFormat("%s at %.2f GHz", std::string(event), hz / 1e9);
  const bool possible = hz >= kLeastHz && hz <= kMostHz;
  if (!possible) absl::StrAppend(&text, ", which no CPU has");
  holds_ = holds_ && possible;
  if (tsc_hz) {
    absl::StrAppendFormat(&text, " of the TSC's %.2f", *tsc_hz / 1e9);
    holds_ = holds_ && hz >= kLeastOfTsc * *tsc_hz && hz <= kMostOfTsc * *tsc_hz;
  }
  texts_.push_back(std::move(text));
}

Finding Judgement::ToFinding(std::string_view id, const std::string& tried, const std::string& what,
                             const std::string& fix) const {
  Finding finding{.id = std::string(id), .state = Finding::State::kUnknown, .tried = tried};
  if (!status_.ok()) {
    finding.answered = std::string(status_.message());
  } else if (!whole_) {
    finding.answered =
        "others took the counters for a part of the time: end what else uses the PMU (perf, "
        "another vcpulse, the NMI watchdog)";
  } else if (texts_.empty()) {
    finding.answered = "no event was counted whose number is known";
  } else {
    finding.state = holds_ ? Finding::State::kOk : Finding::State::kFail;
    finding.answered = what + absl::StrJoin(texts_, "; ");
    if (!holds_) finding.fix = fix;
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor
