#include <cmath>
#include <utility>

#include "absl/time/time.h"
#include "boost/json.hpp"
#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "monitor/check/render.h"
#include "monitor/check/words.h"

namespace vcpulse::check {
namespace {

namespace json = boost::json;

std::string_view UnitOf(const Quantity& quantity) {
  if (quantity.kind == Quantity::Kind::kLongest) return "ns";
  return quantity.IsNumber() ? metric::InfoOf(quantity.metric).key : "share";
}

json::value BoundsJson(const std::optional<Bounds>& bounds) {
  if (!bounds) return nullptr;
  const bool open = std::isinf(bounds->high);
  return json::object{{"low", bounds->low},
                      {"high", open ? json::value(nullptr) : json::value(bounds->high)},
                      {"open", open}};
}

json::value WorstJson(const std::optional<WorstSpan>& worst) {
  if (!worst) return nullptr;
  return json::object{{"from_s", ToSeconds(worst->from_ns)},
                      {"to_s", ToSeconds(worst->to_ns)},
                      {"observed", worst->observed}};
}

json::object FindingJson(const Finding& finding) {
  return {{"subject", Utf8Text(finding.subject)},
          {"of", TextOrNull(finding.of)},
          {"vm", TextOrNull(finding.vm)},
          {"vcpu", OrNull(finding.vcpu)},
          {"outcome", Utf8Text(ToString(finding.outcome))},
          {"observed", BoundsJson(finding.observed)},
          {"limit", BoundsJson(finding.limit)},
          {"ticks", finding.ticks},
          {"judged_s", ToSeconds(finding.judged_ns)},
          {"unknown_s", ToSeconds(finding.unknown_ns)},
          {"worst", WorstJson(finding.worst)},
          {"reason", TextOrNull(finding.reason)}};
}

json::object JudgedJson(const Judged& judged, const Result& result) {
  const JudgedTime& time = judged.time ? *judged.time : result;
  const Expectation& expectation = judged.expectation;
  json::array findings;
  for (const Finding& finding : judged.findings) findings.push_back(FindingJson(finding));
  return {{"expectation", Utf8Text(expectation.text)},
          {"outcome", Utf8Text(ToString(judged.outcome))},
          {"quantifier", Utf8Text(ToString(expectation.quantifier))},
          {"phase", time.phase ? Utf8Text(*time.phase) : json::value(nullptr)},
          {"spans", time.spans},
          {"judged_s", ToSeconds(time.judged_ns)},
          {"quantity", Utf8Text(ToString(expectation.quantity))},
          {"unit", Utf8Text(UnitOf(expectation.quantity))},
          {"comparison", Utf8Text(ToString(expectation.comparison))},
          {"limit", expectation.limit},
          {"baseline_factor", expectation.UsesBaseline() ? json::value(expectation.baseline_factor)
                                                         : json::value(nullptr)},
          {"findings", std::move(findings)}};
}

json::object CountsJson(const Counts& counts) {
  return {{"expectations", counts.all},
          {"failed", counts.failed},
          {"inconclusive", counts.inconclusive},
          {"passed", counts.passed},
          {"skipped", counts.skipped}};
}

json::value StartJson(const std::optional<int64_t>& realtime_ns) {
  if (!realtime_ns) return nullptr;
  return json::string(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(*realtime_ns),
                                       absl::UTCTimeZone()));
}

}  // namespace

std::string RenderJson(const Result& result, std::string_view file) {
  json::array expectations;
  for (const Judged& judged : result.judged) expectations.push_back(JudgedJson(judged, result));
  return ToJsonText(json::object{
      {"outcome", Utf8Text(ToString(result.outcome))},
      {"counts", CountsJson(CountExpectations(result))},
      {"file", Utf8Text(file)},
      {"baseline", result.baseline ? Utf8Text(*result.baseline) : json::value(nullptr)},
      {"host_name", TextOrNull(result.host_name)},
      {"start", StartJson(result.start_realtime_ns)},
      {"duration_s", ToSeconds(result.duration_ns)},
      {"phase", result.phase ? Utf8Text(*result.phase) : json::value(nullptr)},
      {"spans", result.spans},
      {"judged_s", ToSeconds(result.judged_ns)},
      {"degraded", TextOrNull(result.degraded)},
      {"phases", Utf8Texts(result.phases)},
      {"expectations", std::move(expectations)},
      {"notes", Utf8Texts(result.notes)},
  });
}

}  // namespace vcpulse::check
