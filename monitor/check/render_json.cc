#include "monitor/check/render_json.h"

#include <cmath>
#include <utility>

#include "absl/time/time.h"
#include "boost/json.hpp"
#include "monitor/check/words.h"
#include "monitor/report/json_text.h"
#include "monitor/timeline/utf8_texts.h"

namespace vcpulse::check {
namespace {

namespace json = boost::json;

double ToSeconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// JSON escapes control characters, but is UTF-8.
json::value Text(std::string_view text) {
  std::string utf8(text);
  timeline::MakeUtf8(&utf8);
  return json::string(utf8);
}

json::value TextOrNull(std::string_view text) {
  if (text.empty()) return nullptr;
  return Text(text);
}

json::array Texts(const std::vector<std::string>& texts) {
  json::array out;
  for (const std::string& text : texts) out.push_back(Text(text));
  return out;
}

const char* UnitOf(const Quantity& quantity) {
  if (quantity.longest) return "ns";
  return quantity.metric == Metric::kIpc ? "ipc" : "share";
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
  return {{"subject", Text(finding.subject)},         {"vm", TextOrNull(finding.vm)},
          {"vcpu", report::OrNull(finding.vcpu)},     {"outcome", Text(ToString(finding.outcome))},
          {"observed", BoundsJson(finding.observed)}, {"ticks", finding.ticks},
          {"judged_s", ToSeconds(finding.judged_ns)}, {"unknown_s", ToSeconds(finding.unknown_ns)},
          {"worst", WorstJson(finding.worst)},        {"reason", TextOrNull(finding.reason)}};
}

json::object JudgedJson(const Judged& judged) {
  const Expectation& expectation = judged.expectation;
  json::array findings;
  for (const Finding& finding : judged.findings) findings.push_back(FindingJson(finding));
  return {{"expectation", Text(expectation.text)},
          {"outcome", Text(ToString(judged.outcome))},
          {"quantity", Text(ToString(expectation.quantity))},
          {"unit", UnitOf(expectation.quantity)},
          {"comparison", Text(ToString(expectation.comparison))},
          {"limit", expectation.limit},
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
  for (const Judged& judged : result.judged) expectations.push_back(JudgedJson(judged));
  return report::ToJsonText(json::object{
      {"outcome", Text(ToString(result.outcome))},
      {"counts", CountsJson(CountExpectations(result))},
      {"file", Text(file)},
      {"host_name", TextOrNull(result.host_name)},
      {"start", StartJson(result.start_realtime_ns)},
      {"duration_s", ToSeconds(result.duration_ns)},
      {"phase", result.phase ? Text(*result.phase) : json::value(nullptr)},
      {"spans", result.spans},
      {"judged_s", ToSeconds(result.judged_ns)},
      {"phases", Texts(result.phases)},
      {"expectations", std::move(expectations)},
      {"notes", Texts(result.notes)},
  });
}

}  // namespace vcpulse::check
