#include <optional>
#include <string_view>
#include <utility>

#include "boost/json.hpp"
#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "monitor/reading/labels.h"
#include "monitor/report/explain.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

json::object VerdictJson(const core::Verdict& verdict) {
  const auto rule = [](core::Band band, core::Rule name) {
    return band == core::Band::kNone ? json::value(nullptr) : NameOrNull(core::ToString(name));
  };
  return {{"band", NameOrNull(reading::BandName(verdict.band))},
          {"rule", rule(verdict.band, verdict.rule)},
          {"raw_band", NameOrNull(reading::BandName(verdict.raw_band))},
          {"raw_rule", rule(verdict.raw_band, verdict.raw_rule)},
          {"confidence",
           verdict.confidence_pct > 0 ? json::value(verdict.confidence_pct / 100.0) : nullptr},
          {"starved", verdict.band == core::Band::kNone ? json::value(nullptr)
                                                        : json::value(verdict.starved)}};
}

json::array ConditionsJson(const std::vector<Comparison>& comparisons) {
  json::array out;
  for (const Comparison& comparison : comparisons) {
    const auto is = Sign(comparison.is);
    out.push_back(json::object{{"feature", NameOrNull(comparison.feature)},
                               {"what", comparison.what},
                               {"value", OrNull(comparison.value)},
                               {"is", NameOrNull(is)},
                               {"threshold", is ? json::value(comparison.threshold) : nullptr},
                               {"holds", OrNull(comparison.holds)}});
  }
  return out;
}

// Without a verdict no window was full, and nothing was measured of it.
bool HasWindow(const Explanation& e) { return e.verdict.band != core::Band::kNone; }

json::object FeaturesJson(const Explanation& e) {
  const core::Features f = HasWindow(e) ? e.features : core::Features();
  const auto share = [&](std::optional<double> value) {
    return HasWindow(e) ? OrNull(value) : json::value(nullptr);
  };
  json::object out{
      {"residency", OrNull(f.residency)},
      {"residency_method", f.residency ? OrNull(e.residency_method) : json::value(nullptr)},
      {"enabled_share", share(f.enabled_share)},
      {"waiting_share", share(f.waiting_share)},
      {"counted_share", f.enabled ? json::value(f.running_share) : json::value(nullptr)},
      {"state", NameOrNull(reading::StateName(f.state))}};
  for (size_t i = 0; i < core::kFeatures; ++i) {
    const auto feature = static_cast<core::Feature>(i);
    const std::string name(reading::FeatureName(feature));
    out[name] = OrNull(f.Value(feature));
  }
  return out;
}

json::array RulesJson(const Reasons& reasons) {
  json::array out;
  for (const RuleTrial& trial : reasons.rules) {
    out.push_back(json::object{{"rule", NameOrNull(core::ToString(trial.rule))},
                               {"band", NameOrNull(reading::BandName(trial.band))},
                               {"outcome", NameOrNull(OutcomeName(trial.outcome))},
                               {"confidence", OrNull(trial.confidence)},
                               {"conditions", ConditionsJson(trial.conditions)}});
  }
  return out;
}

json::value CountedJson(const Explanation& e) {
  if (!e.counted) return nullptr;
  json::object values;
  for (const auto& [metric, value] : e.counted->values) values[metric::InfoOf(metric).key] = value;
  json::array causes;
  for (const Cause* const cause : e.counted->causes) causes.push_back(JsonText(cause->name));
  return json::object{{"from_s", ToSeconds(e.counted->from_ns)},
                      {"to_s", ToSeconds(e.counted->to_ns)},
                      {"values", std::move(values)},
                      {"causes", std::move(causes)}};
}

}  // namespace

std::string RenderExplanationJson(const Explanation& e) {
  return ToJsonText(json::object{
      {"vm", e.vm},
      {"vm_name", e.vm_name},
      {"pid", e.vm_pid == 0 ? json::value(nullptr) : json::value(e.vm_pid)},
      {"epoch", e.epoch},
      {"vcpu", e.vcpu},
      {"tick", e.tick},
      {"at_s", ToSeconds(e.at_ns)},
      {"classifier", NameOrNull(core::ToString(e.classifier))},
      {"profile", e.profile},
      {"remark", TextOrNull(e.remark)},
      {"window_ms", HasWindow(e) ? json::value(static_cast<double>(e.features.interval_ns) / 1e6)
                                 : json::value(nullptr)},
      {"verdict", VerdictJson(e.verdict)},
      {"recorded", VerdictJson(e.recorded)},
      {"same_as_recorded", e.verdict == e.recorded},
      {"features", FeaturesJson(e)},
      {"presence", ConditionsJson(e.reasons.presence)},
      {"decided_by_presence",
       HasWindow(e) ? json::value(e.reasons.decided_by_presence) : json::value(nullptr)},
      {"rules", RulesJson(e.reasons)},
      {"fired", OrNull(e.reasons.fired)},
      {"runner_up", OrNull(e.reasons.runner_up)},
      {"weak_below", OrNull(e.reasons.weak_below)},
      {"counted", CountedJson(e)},
  });
}

}  // namespace vcpulse::report
