#include "monitor/compare/render_json.h"

#include "absl/time/time.h"
#include "boost/json.hpp"
#include "monitor/report/json_text.h"
#include "monitor/timeline/utf8_texts.h"

namespace vcpulse::compare {
namespace {

namespace json = boost::json;
using report::OrNull;

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

json::value StartJson(const Described& described) {
  if (!described.start_realtime_ns) return nullptr;
  return Text(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                               absl::FromUnixNanos(*described.start_realtime_ns),
                               absl::UTCTimeZone()));
}

json::object DescribedJson(const Described& described) {
  return {{"file", Text(described.file)},
          {"host_name", TextOrNull(described.host_name)},
          {"kernel_release", TextOrNull(described.kernel_release)},
          {"cpu_model", TextOrNull(described.cpu_model)},
          {"start", StartJson(described)},
          {"duration_s", ToSeconds(described.duration_ns)},
          {"interval_s", ToSeconds(static_cast<int64_t>(described.interval_ns))},
          {"classifiers", TextOrNull(described.classifiers)},
          {"profile", TextOrNull(described.profile)},
          {"residency_method", TextOrNull(described.residency_method)},
          {"loss", TextOrNull(described.loss)}};
}

json::object SeenJson(const Seen& seen) {
  std::optional<double> block_s;
  if (seen.block_ns) block_s = ToSeconds(*seen.block_ns);
  return {{"value", OrNull(seen.value)},
          {"ticks", seen.ticks},
          {"measured_s", ToSeconds(seen.length_ns)},
          {"block_s", OrNull(block_s)},
          {"blocks", OrNull(seen.blocks)}};
}

json::object RowJson(const Row& row) {
  std::optional<double> low;
  std::optional<double> high;
  if (row.contrast) {
    low = row.contrast->low;
    high = row.contrast->high;
  }
  return {{"vm", Text(row.vm)},
          {"vcpu", row.vcpu},
          {"phase", row.phase ? Text(*row.phase) : json::value(nullptr)},
          {"quantity", Text(check::ToString(row.metric))},
          {"a", SeenJson(row.a)},
          {"b", SeenJson(row.b)},
          {"difference", OrNull(row.difference)},
          {"low", OrNull(low)},
          {"high", OrNull(high)},
          {"p", OrNull(row.chance)},
          {"p_adjusted", OrNull(row.adjusted)},
          {"verdict", Text(ToString(row.verdict))}};
}

json::object LimitJson(const JudgedLimit& judged) {
  json::array findings;
  for (const LimitFinding& finding : judged.findings) {
    findings.push_back(json::object{{"subject", Text(finding.subject)},
                                    {"outcome", Text(check::ToString(finding.outcome))},
                                    {"reason", Text(finding.reason)}});
  }
  return {{"limit", Text(judged.limit.text)},
          {"outcome", Text(check::ToString(judged.outcome))},
          {"findings", std::move(findings)}};
}

}  // namespace

std::string RenderJson(const Comparison& comparison) {
  json::array rows;
  for (const Row& row : comparison.rows) rows.push_back(RowJson(row));
  json::array limits;
  for (const JudgedLimit& judged : comparison.limits) limits.push_back(LimitJson(judged));
  const bool judged = !comparison.limits.empty();
  return report::ToJsonText(json::object{
      {"a", DescribedJson(comparison.a)},
      {"b", DescribedJson(comparison.b)},
      {"warnings", Texts(comparison.warnings)},
      {"notes", Texts(comparison.notes)},
      {"phases", Texts(comparison.phases)},
      {"comparisons", comparison.tests},
      {"rows", std::move(rows)},
      {"outcome", judged ? Text(check::ToString(comparison.outcome)) : json::value(nullptr)},
      {"limits", std::move(limits)}});
}

}  // namespace vcpulse::compare
