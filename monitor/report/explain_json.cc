#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "boost/json.hpp"
#include "monitor/report/explain_text.h"
#include "monitor/report/json_text.h"
#include "monitor/report/labels.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

json::value NameOrNull(std::optional<std::string_view> name) {
  if (!name) return nullptr;
  return json::string(name->data(), name->size());
}

template <typename T>
json::value OrNull(const std::optional<T>& value) {
  if (!value) return nullptr;
  return json::value_from(*value);
}

json::object VerdictJson(const core::Verdict& verdict) {
  const auto rule = [](core::Band band, core::Rule name) {
    return band == core::Band::kNone ? json::value(nullptr) : NameOrNull(core::ToString(name));
  };
  return {{"band", NameOrNull(BandName(verdict.band))},
          {"rule", rule(verdict.band, verdict.rule)},
          {"raw_band", NameOrNull(BandName(verdict.raw_band))},
          {"raw_rule", rule(verdict.raw_band, verdict.raw_rule)},
          {"confidence",
           verdict.confidence_pct > 0 ? json::value(verdict.confidence_pct / 100.0) : nullptr},
          {"starved", verdict.starved}};
}

json::array ConditionsJson(const std::vector<Comparison>& comparisons) {
  json::array out;
  for (const Comparison& comparison : comparisons) {
    const auto is = Sign(comparison.is);
    out.push_back(json::object{{"what", comparison.what},
                               {"value", OrNull(comparison.value)},
                               {"is", NameOrNull(is)},
                               {"threshold", is ? json::value(comparison.threshold) : nullptr},
                               {"holds", OrNull(comparison.holds)}});
  }
  return out;
}

json::object FeaturesJson(const Explanation& e) {
  const core::Features& f = e.features;
  json::object out{
      {"residency", OrNull(f.residency)},
      {"residency_method", OrNull(e.residency_method)},
      {"enabled_share", f.enabled_share},
      {"waiting_share", f.waiting_share},
      {"counted_share", f.enabled ? json::value(f.running_share) : json::value(nullptr)},
      {"state", NameOrNull(StateName(f.state))}};
  for (size_t i = 0; i < core::kFeatures; ++i) {
    const auto feature = static_cast<core::Feature>(i);
    const std::string name(core::ToString(feature));
    out[name] = OrNull(f.Value(feature));
  }
  return out;
}

json::array RulesJson(const Reasons& reasons) {
  json::array out;
  for (const RuleTrial& trial : reasons.rules) {
    out.push_back(json::object{{"rule", NameOrNull(core::ToString(trial.rule))},
                               {"band", NameOrNull(BandName(trial.band))},
                               {"outcome", NameOrNull(OutcomeName(trial.outcome))},
                               {"confidence", OrNull(trial.confidence)},
                               {"conditions", ConditionsJson(trial.conditions)}});
  }
  return out;
}

}  // namespace

std::string RenderExplanationJson(const Explanation& e) {
  return ToJsonText(json::object{
      {"vm", e.vm},
      {"vm_name", e.vm_name},
      {"epoch", e.epoch},
      {"vcpu", e.vcpu},
      {"tick", e.tick},
      {"at_s", static_cast<double>(e.at_ns) / 1e9},
      {"classifier", NameOrNull(core::ToString(e.classifier))},
      {"profile", e.profile},
      {"window_ms", static_cast<double>(e.features.interval_ns) / 1e6},
      {"verdict", VerdictJson(e.verdict)},
      {"recorded", VerdictJson(e.recorded)},
      {"same_as_recorded", e.verdict == e.recorded},
      {"features", FeaturesJson(e)},
      {"presence", ConditionsJson(e.reasons.presence)},
      {"decided_by_presence", e.reasons.decided_by_presence},
      {"rules", RulesJson(e.reasons)},
      {"fired", OrNull(e.reasons.fired)},
      {"runner_up", OrNull(e.reasons.runner_up)},
  });
}

}  // namespace vcpulse::report
