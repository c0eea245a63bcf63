#pragma once

// Which rows a person wants to see.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "monitor/check/expression.h"
#include "monitor/core/verdict.h"
#include "monitor/metric/metric.h"

namespace vcpulse::top {

// Of a sum over vCPUs; nothing where it was not measured. A band that no hardware counter told
// apart is not known, rather than 0.
std::optional<double> KnownValue(metric::Metric metric, const metric::Totals& totals,
                                 bool is_degraded);

// What a filter is asked about.
struct FilterSubject {
  std::string_view host;
  std::string_view vm;  // its name
  std::string_view uuid;
  uint32_t vm_number = 0;
  uint32_t pid = 0;
  uint32_t vcpu = 0;
  const core::Verdict& verdict;  // of its latest interval
  const metric::Totals& totals;  // of the numbers shown
  bool is_degraded = false;      // no hardware counter is read
};

// One of
//   spinning, halted, productive, unknown, starved   the band now (a beginning of 2 letters will
//   do) web                                               a part of the names of host and VM, or of
//                                                     "vcpu 3"
//   [vm=NAME] [vcpu=N-M:] ipc < 0.5                   an expression as `check` takes it, of the
//                                                     numbers shown
//   vm=web vcpu=0-3                                   its selector alone
class Filter {
 public:
  // Lets all through.
  Filter() = default;
  // Errors: InvalidArgument in one line, for an expression that is none, and one of a quantity that
  // a moment does not have: longest(), gaps, hot().
  static absl::StatusOr<Filter> Parse(std::string_view text);

  bool Matches(const FilterSubject& subject) const;
  bool IsAll() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  bool Selects(const FilterSubject& subject) const;

  std::string text_;  // as it was given, without spaces around it
  std::optional<core::Band> band_;
  bool starved_ = false;
  std::optional<check::Expectation> expectation_;
  std::optional<check::Selector> selector_;
};

}  // namespace vcpulse::top
