#include "absl/time/time.h"
#include "boost/json.hpp"
#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "monitor/compare/compare.h"

namespace vcpulse::compare {
namespace {

namespace json = boost::json;

json::value StartJson(const Described& described) {
  if (!described.start_realtime_ns) return nullptr;
  return Utf8Text(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                                   absl::FromUnixNanos(*described.start_realtime_ns),
                                   absl::UTCTimeZone()));
}

json::object DescribedJson(const Described& described) {
  return {{"label", Utf8Text(described.label)},
          {"file", Utf8Text(described.file)},
          {"host_name", TextOrNull(described.host_name)},
          {"kernel_release", TextOrNull(described.kernel_release)},
          {"cpu_model", TextOrNull(described.cpu_model)},
          {"start", StartJson(described)},
          {"duration_s", ToSeconds(described.duration_ns)},
          {"interval_s", ToSeconds(static_cast<int64_t>(described.interval_ns))},
          {"classifiers", TextOrNull(described.classifiers)},
          {"profile", TextOrNull(described.profile)},
          {"residency_method", TextOrNull(described.residency_method)},
          {"degraded", TextOrNull(described.degraded)},
          {"loss", TextOrNull(described.loss)}};
}

json::array RecordingsJson(const std::vector<Described>& recordings) {
  json::array all;
  for (const Described& described : recordings) all.push_back(DescribedJson(described));
  return all;
}

json::object SeenJson(const Seen& seen) {
  std::optional<double> block_s;
  if (seen.block_ns) block_s = ToSeconds(*seen.block_ns);
  return {{"value", OrNull(seen.value)}, {"runs", seen.runs},
          {"ticks", seen.ticks},         {"measured_s", ToSeconds(seen.length_ns)},
          {"block_s", OrNull(block_s)},  {"blocks", OrNull(seen.blocks)}};
}

json::object RowJson(const Row& row) {
  std::optional<double> low;
  std::optional<double> high;
  if (row.contrast) {
    low = row.contrast->low;
    high = row.contrast->high;
  }
  return {{"vm", Utf8Text(row.vm)},
          {"vcpu", row.vcpu},
          {"phase", row.phase ? Utf8Text(*row.phase) : json::value(nullptr)},
          {"quantity", Utf8Text(metric::InfoOf(row.metric).key)},
          {"a", SeenJson(row.a)},
          {"b", SeenJson(row.b)},
          {"difference", OrNull(row.difference)},
          {"low", OrNull(low)},
          {"high", OrNull(high)},
          {"p", OrNull(row.chance)},
          {"p_adjusted", OrNull(row.adjusted)},
          {"verdict", Utf8Text(ToString(row.verdict))}};
}

json::object LimitJson(const JudgedLimit& judged) {
  json::array findings;
  for (const LimitFinding& finding : judged.findings) {
    findings.push_back(json::object{{"subject", Utf8Text(finding.subject)},
                                    {"outcome", Utf8Text(check::ToString(finding.outcome))},
                                    {"reason", Utf8Text(finding.reason)}});
  }
  return {{"limit", Utf8Text(judged.limit.text)},
          {"outcome", Utf8Text(check::ToString(judged.outcome))},
          {"findings", std::move(findings)}};
}

}  // namespace

std::string RenderJson(const Comparison& comparison) {
  json::array rows;
  for (const Row& row : comparison.rows) rows.push_back(RowJson(row));
  json::array limits;
  for (const JudgedLimit& judged : comparison.limits) limits.push_back(LimitJson(judged));
  const bool judged = !comparison.limits.empty();
  return ToJsonText(json::object{
      {"a", DescribedJson(comparison.a.front())},
      {"b", DescribedJson(comparison.b.front())},
      {"recordings",
       json::object{{"a", RecordingsJson(comparison.a)}, {"b", RecordingsJson(comparison.b)}}},
      {"between_run_variance", comparison.between_runs},
      {"warnings", Utf8Texts(comparison.warnings)},
      {"notes", Utf8Texts(comparison.notes)},
      {"phases", Utf8Texts(comparison.phases)},
      {"tested", comparison.tests},
      {"rows", std::move(rows)},
      {"outcome", judged ? Utf8Text(check::ToString(comparison.outcome)) : json::value(nullptr)},
      {"limits", std::move(limits)}});
}

}  // namespace vcpulse::compare
