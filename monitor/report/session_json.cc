#include "monitor/report/session_json.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "monitor/reading/labels.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

json::value SecondsOrNull(std::optional<int64_t> ns) {
  if (!ns) return nullptr;
  return ToSeconds(*ns);
}

json::value PositiveOrNull(double value) {
  if (!(value > 0)) return nullptr;
  return value;
}

json::value WallClock(std::optional<int64_t> realtime_ns) {
  if (!realtime_ns) return nullptr;
  return json::string(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(*realtime_ns),
                                       absl::UTCTimeZone()));
}

// `record --prove`.
json::value ProofJson(const v1::Session& session) {
  if (!session.has_counter_proof()) return nullptr;
  const v1::CounterProof& proof = session.counter_proof();
  const bool proven = proof.outcome() == v1::CounterProof::OUTCOME_PROVEN;
  const bool disproven = proof.outcome() == v1::CounterProof::OUTCOME_DISPROVEN;
  json::array claims;
  for (const v1::CounterProof::Claim& claim : proof.claims()) {
    claims.push_back(json::object{{"id", JsonText(claim.id())},
                                  {"state", JsonText(claim.state())},
                                  {"answer", JsonText(claim.answer())}});
  }
  return json::object{{"proven", proven      ? "yes"
                                 : disproven ? "no"
                                             : "not-told"},
                      {"claims", std::move(claims)}};
}

}  // namespace

json::value SessionJson(const Report& report) {
  if (!report.summary.session()) return nullptr;
  const v1::Session& session = *report.summary.session();
  const v1::ClassifierSettings& classifier = session.classifier();
  const std::optional<v1::Summary>& end = report.summary.end();
  json::array further_max_hz;
  for (const double hz : session.further_max_hz()) further_max_hz.push_back(PositiveOrNull(hz));
  json::array further_max_hz_seen;
  for (const core::ResidencyBasis& basis : report.summary.residency_bases().subspan(1)) {
    further_max_hz_seen.push_back(OrNull(basis.max_hz));
  }
  json::object labels;
  for (const v1::Label& label : session.labels()) labels[label.key()] = JsonText(label.value());
  return json::object{
      {"stream_id", absl::BytesToHexString(session.stream_id())},
      {"tool_version", session.tool_version()},
      {"host_name", TextOrNull(session.host_name())},
      {"boot_id", TextOrNull(session.boot_id())},
      {"kernel_release", TextOrNull(session.kernel_release())},
      {"machine", TextOrNull(session.machine())},
      {"cpu_model", TextOrNull(session.cpu_model())},
      {"online_cpus", NumberOrNull(session.online_cpus())},
      {"agent_id", TextOrNull(session.agent_id())},
      {"labels", std::move(labels)},
      {"start", WallClock(report.StartRealtimeNs())},
      {"start_mono_ns", OrNull(report.Start())},
      {"duration_s", ToSeconds(report.DurationNs())},
      {"from_s", SecondsOrNull(report.from_ns)},
      {"to_s", SecondsOrNull(report.to_ns)},
      {"phase", report.phase ? JsonText(report.phase->name) : json::value(nullptr)},
      {"phase_spans", report.phase ? json::value(report.phase->spans) : json::value(nullptr)},
      {"interval_ms", static_cast<double>(session.interval_ns()) / 1e6},
      {"verdict_window_ms", static_cast<double>(session.verdict_window_ns()) / 1e6},
      {"residency_method", NameOrNull(reading::ResidencyMethodName(session.residency_method()))},
      {"tsc_hz", PositiveOrNull(session.tsc_hz())},
      {"max_hz", PositiveOrNull(session.max_hz())},
      {"max_hz_seen", OrNull(report.summary.residency_bases().front().max_hz)},
      {"core_pmus", json::array(session.core_pmus().begin(), session.core_pmus().end())},
      {"further_max_hz", std::move(further_max_hz)},
      {"further_max_hz_seen", std::move(further_max_hz_seen)},
      {"scheduling", NameOrNull(reading::SchedulingName(session.scheduling()))},
      {"timer_slack_ns", NumberOrNull(static_cast<int64_t>(session.timer_slack_ns()))},
      {"degraded_reason", TextOrNull(session.degraded_reason())},
      {"classifier", json::object{{"name", classifier.name()},
                                  {"halted_enter", classifier.halted_enter()},
                                  {"halted_leave", classifier.halted_leave()},
                                  {"spinning_below", classifier.spinning_below()},
                                  {"productive_from", classifier.productive_from()},
                                  {"profile", TextOrNull(classifier.profile())}}},
      {"residency_blind_spot", TextOrNull(session.residency_blind_spot())},
      {"derived_from", TextOrNull(absl::BytesToHexString(session.derived_from()))},
      {"counter_proof", ProofJson(session)},
      {"end_reason", end ? TextOrNull(end->end_reason()) : json::value(nullptr)},
  };
}

}  // namespace vcpulse::report
