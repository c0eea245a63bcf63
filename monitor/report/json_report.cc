#include "monitor/report/json_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "boost/json.hpp"
#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "monitor/reading/labels.h"
#include "monitor/report/session_json.h"
#include "monitor/report/vcpu_table.h"
#include "monitor/report/why_json.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

// In the order shown: each is a metric of the same name.
constexpr std::array<core::Band, 4> kBands = {core::Band::kHalted, core::Band::kSpinning,
                                              core::Band::kProductive, core::Band::kUnknown};

json::value String(std::string_view text) { return json::string(text.data(), text.size()); }

json::value IpcJson(const IpcTotals& ipc) {
  if (ipc.per_tick.count() == 0) return nullptr;
  return json::object{{"mean", OrNull(ipc.Mean())},
                      {"p01", OrNull(ipc.per_tick.Quantile(0.01))},
                      {"p50", OrNull(ipc.per_tick.Quantile(0.50))},
                      {"p99", OrNull(ipc.per_tick.Quantile(0.99))},
                      {"ticks", ipc.per_tick.count()}};
}

json::value QuantilesJson(const Distribution& distribution) {
  if (distribution.count() == 0) return nullptr;
  return json::object{{"p50", OrNull(distribution.Quantile(0.50))},
                      {"p99", OrNull(distribution.Quantile(0.99))},
                      {"max", OrNull(distribution.Max())}};
}

// {"between-bands": share, ...}: the rules that were seen, of UNKNOWN alone where asked for.
json::object RulesJson(const VcpuSummary& vcpu, bool unknown_only) {
  json::object rules;
  for (size_t i = 0; i < core::kRules; ++i) {
    const auto rule = static_cast<core::Rule>(i);
    if (vcpu.rule_ns[i] == 0 || (unknown_only && !reading::IsUnknownReason(rule))) continue;
    const std::string_view name = rule == core::Rule::kNone ? "unspecified" : core::ToString(rule);
    rules.emplace(json::string_view(name.data(), name.size()), OrNull(vcpu.RuleShare(rule)));
  }
  return rules;
}

// Adds the counts of every event that any epoch of the VM asked for: null where never counted.
void AddCounts(json::object& out, const VmSummary& vm, const VcpuSummary& vcpu) {
  json::object raw;
  json::object scaled;
  json::object counted_s;
  json::object counted_share;
  json::array estimated;
  for (const std::string& event : EventsAskedFor(vm)) {
    const EventTotal* total = vcpu.FindEvent(event);
    raw[event] = total != nullptr ? OrNull(total->Raw()) : json::value(nullptr);
    scaled[event] = total != nullptr ? OrNull(total->Scaled()) : json::value(nullptr);
    counted_share[event] = total != nullptr ? OrNull(total->RunningShare()) : json::value(nullptr);
    if (total != nullptr && total->Raw() && total->IsEstimate()) estimated.push_back(String(event));
    counted_s[event] = total != nullptr ? ToSeconds(total->CountedNs()) : 0.0;
  }
  out["counts"] = std::move(raw);
  out["counts_scaled"] = std::move(scaled);
  const metric::Ratio& running = vcpu.totals.Of(metric::Metric::kRunning);
  out["estimated"] = running.part < running.whole;
  out["estimated_events"] = std::move(estimated);
  out["counted_share"] = std::move(counted_share);
  out["counted_s"] = std::move(counted_s);
}

json::array TidsJson(const VcpuSummary& vcpu) {
  json::array tids;
  for (const uint32_t tid : vcpu.tids) {
    if (tid != 0) tids.push_back(tid);
  }
  return tids;
}

// The metrics that have a key of their own.
void AddMetrics(json::object& out, const metric::Totals& totals) {
  for (const metric::Info& info : metric::Table()) {
    if (info.report_key.empty()) continue;  // told in another form
    out[json::string_view(info.report_key.data(), info.report_key.size())] =
        OrNull(totals.Value(info.metric));
  }
}

json::object SharesJson(const metric::Totals& totals) {
  json::object shares;
  for (const core::Band band : kBands) {
    const std::string name(*reading::BandName(band));
    shares[name] = OrNull(totals.Value(*metric::FindMetric(name)));
  }
  return shares;
}

// Nothing where it never held.
json::value StretchJson(const Report& report, const metric::LongestStretch& stretch) {
  if (stretch.length_ns() == 0) return nullptr;
  return json::object{{"length_s", ToSeconds(stretch.length_ns())},
                      {"from_s", report.SecondsAt(stretch.begin_ns())}};
}

json::object VcpuJson(const Report& report, uint32_t number, const VmSummary& vm,
                      const VcpuSummary& vcpu) {
  json::object ticks;
  json::object ipc_by_band;
  for (const core::Band band : kBands) {
    const auto i = static_cast<size_t>(band);
    const std::string name(*reading::BandName(band));
    ticks[name] = vcpu.band_ticks[i];
    if (band != core::Band::kHalted) ipc_by_band[name] = IpcJson(vcpu.ipc_by_band[i]);
  }
  ticks["none"] = vcpu.band_ticks[static_cast<size_t>(core::Band::kNone)];

  json::object out{
      {"index", vcpu.index},
      {"kvm_id", OrNull(vcpu.kvm_id)},
      {"tid", NumberOrNull(vcpu.tids.empty() ? 0 : vcpu.tids.back())},
      {"tids", TidsJson(vcpu)},
      {"samples", vcpu.samples},
      {"measured_s", ToSeconds(vcpu.totals.MeasuredNs())},
      {"judged_s", ToSeconds(vcpu.totals.JudgedNs())},
      {"share", SharesJson(vcpu.totals)},
      {"unknown_reasons", RulesJson(vcpu, true)},
      {"rules", RulesJson(vcpu, false)},
      {"ipc", IpcJson(vcpu.ipc)},
      {"ipc_by_band", std::move(ipc_by_band)},
  };
  AddWhy(report, number, vcpu, out);
  out["longest_spin"] = StretchJson(report, vcpu.spin);
  out["longest_starved"] = StretchJson(report, vcpu.starved);
  AddMetrics(out, vcpu.totals);
  AddCounts(out, vm, vcpu);
  out["ticks"] = std::move(ticks);
  return out;
}

json::array GapsJson(const Report& report, const GapTotals& gaps) {
  json::array out;
  for (const auto& [key, total] : gaps) {
    const auto& [reason, vcpu, error] = key;
    out.push_back(json::object{{"reason", String(reading::GapReasonName(reason))},
                               {"vcpu", OrNull(vcpu)},
                               {"errno", NumberOrNull(error)},
                               {"errno_name", OrNull(reading::ErrnoName(error))},
                               {"records", total.records},
                               {"ticks", total.ticks},
                               {"first_s", report.SecondsAt(total.first_mono_ns)},
                               {"last_s", report.SecondsAt(total.last_mono_ns)}});
  }
  return out;
}

json::array GroupsJson(const v1::VcpuSet& set) {
  json::array groups;
  for (const v1::EventGroup& group : set.further_groups()) {
    groups.push_back(
        json::object{{"pmu", TextOrNull(group.pmu())},
                     {"events", json::array(group.events().begin(), group.events().end())}});
  }
  return groups;
}

json::object EpochJson(const Report& report, const EpochSummary& epoch) {
  const v1::VcpuSet& set = epoch.set;
  json::array absent;
  for (const v1::AbsentEvent& event : set.absent_events()) {
    absent.push_back(json::object{{"event", event.event()},
                                  {"errno", NumberOrNull(event.error())},
                                  {"errno_name", OrNull(reading::ErrnoName(event.error()))},
                                  {"reason", event.reason()}});
  }
  json::array unopened;
  for (const v1::UnopenedVcpu& vcpu : set.unopened_vcpus()) {
    unopened.push_back(json::object{{"index", vcpu.index()},
                                    {"tid", NumberOrNull(vcpu.tid())},
                                    {"errno", NumberOrNull(vcpu.error())},
                                    {"errno_name", OrNull(reading::ErrnoName(vcpu.error()))},
                                    {"reason", vcpu.reason()}});
  }
  return {
      {"epoch", set.epoch()},
      {"start_s", report.SecondsAt(set.mono_ns())},
      {"samples", epoch.samples},
      {"vcpus", set.vcpus_size()},
      {"event_set", set.event_set()},
      {"classifier", String(reading::ClassifierOf(set))},
      {"events", json::array(set.events().begin(), set.events().end())},
      {"further_groups", GroupsJson(set)},
      {"pmu", TextOrNull(set.pmu())},
      {"core_pmus", std::max(1U, set.core_pmus())},
      {"host_side_events",
       json::array(set.host_side_events().begin(), set.host_side_events().end())},
      {"absent_events", std::move(absent)},
      {"unopened_vcpus", std::move(unopened)},
      {"notes", json::array(set.notes().begin(), set.notes().end())},
  };
}

json::object VmJson(const Report& report, uint32_t number, const VmSummary& vm) {
  json::array epochs;
  for (const auto& [epoch_number, epoch] : vm.epochs) epochs.push_back(EpochJson(report, epoch));
  json::array vcpus;
  for (const auto& [index, vcpu] : vm.vcpus) vcpus.push_back(VcpuJson(report, number, vm, vcpu));
  return {
      {"vm", number},
      {"name", vm.instance.name()},
      {"uuid", TextOrNull(vm.instance.uuid())},
      {"pid", NumberOrNull(vm.instance.pid())},
      {"start_time_ticks", NumberOrNull(static_cast<int64_t>(vm.instance.start_time_ticks()))},
      {"samples", vm.samples},
      {"ended_s",
       vm.ended_mono_ns ? json::value(report.SecondsAt(*vm.ended_mono_ns)) : json::value(nullptr)},
      {"epochs", std::move(epochs)},
      {"epochs_omitted", vm.epochs_omitted},
      {"vcpus", std::move(vcpus)},
      {"kvm_statistics_missing", TextOrNull(vm.kvm_missing.value_or("not recorded"))},
      {"hotspots_refused", OrNull(report.summary.hotspots().Refused(number))},
      {"competitors_refused", OrNull(report.summary.competitors().Refused(number))},
      {"gaps", GapsJson(report, vm.gaps)},
  };
}

json::array LifeCycleJson(const Report& report) {
  json::array out;
  for (const v1::LifeCycle& change : report.summary.life_cycle()) {
    const bool has_instance = change.has_instance();
    const auto reason = reading::SkipReasonName(change);
    out.push_back(json::object{
        {"t_s", report.SecondsAt(change.mono_ns())},
        {"vm", change.vm() == 0 ? json::value(nullptr) : json::value(change.vm())},
        {"kind", String(reading::LifeCycleName(change.kind()))},
        {"skip_reason", reason ? String(*reason) : json::value(nullptr)},
        {"detail", change.detail()},
        {"pid", has_instance ? NumberOrNull(change.instance().pid()) : json::value(nullptr)},
        {"name", has_instance ? TextOrNull(change.instance().name()) : json::value(nullptr)}});
  }
  return out;
}

json::array MarkersJson(const Report& report) {
  json::array out;
  for (const v1::Marker& marker : report.summary.markers()) {
    out.push_back(json::object{{"name", marker.name()},
                               {"t_ns", marker.mono_ns() - report.Start().value_or(0)}});
  }
  return out;
}

// Of one phase alone the next marker of another was not read.
int64_t LengthOf(const Report& report, size_t phase) {
  if (report.phase) return report.phase->length_ns;
  return report.summary.phases().LengthNs(phase, report.summary.last_mono_ns().value_or(0));
}

json::array PhasesJson(const Report& report) {
  const PhaseTotals& totals = report.summary.phases();
  json::array out;
  for (size_t i = 0; i < totals.phases().size(); ++i) {
    const PhaseTotals::Phase& phase = totals.phases()[i];
    json::array vcpus;
    for (const auto& [which, measured] : phase.vcpus) {
      json::object vcpu{{"vm", which.first},
                        {"vcpu", which.second},
                        {"measured_s", ToSeconds(measured.MeasuredNs())},
                        {"judged_s", ToSeconds(measured.JudgedNs())},
                        {"share", SharesJson(measured)},
                        {"ipc", OrNull(measured.Value(metric::Metric::kIpc))}};
      AddMetrics(vcpu, measured);
      vcpus.push_back(std::move(vcpu));
    }
    out.push_back(json::object{{"name", String(phase.name)},
                               {"spans", phase.spans},
                               {"length_s", ToSeconds(LengthOf(report, i))},
                               {"vcpus", std::move(vcpus)}});
  }
  return out;
}

json::value ReaderJson(const Report& report) {
  const std::optional<v1::Session>& session = report.summary.session();
  return session && session->reader() == "bpf" ? "bpf" : "read";
}

json::value WhyNotByBpfJson(const Report& report) {
  const std::optional<v1::Session>& session = report.summary.session();
  if (!session || session->no_bpf_reason().empty()) return nullptr;
  return String(session->no_bpf_reason());
}

json::object OwnCostJson(const Report& report) {
  const OwnCost& cost = report.summary.own_cost();
  const std::optional<v1::Summary>& end = report.summary.end();
  const bool known = report.HasOwnCost();
  const auto quantiles = [known](const Distribution& distribution) {
    return known ? QuantilesJson(distribution) : json::value(nullptr);
  };
  return {
      {"ticks", cost.ticks},
      {"ticks_missed", cost.ticks_missed},
      {"tick_lateness_ns", quantiles(cost.lateness_ns)},
      {"read_ns", quantiles(cost.read_ns)},
      {"skew_ns", quantiles(cost.skew_ns)},
      {"reader", known ? ReaderJson(report) : json::value(nullptr)},
      {"no_bpf_reason", WhyNotByBpfJson(report)},
      {"kept_values", cost.kept},
      {"kept_age_ns", quantiles(cost.age_ns)},
      {"cpu_s", known && end ? json::value(ToSeconds(static_cast<int64_t>(end->cpu_ns())))
                             : json::value(nullptr)},
      {"cpu_share", OrNull(report.CpuShare())},
      {"quantile_error", Distribution::kRelativeError},
  };
}

const char* ReasonName(v1::LostRecords::Reason reason) {
  switch (reason) {
    case v1::LostRecords::REASON_SPOOL_FULL:
      return "spool-full";
    case v1::LostRecords::REASON_SPOOL_DAMAGED:
      return "spool-damaged";
    case v1::LostRecords::REASON_TOO_LARGE:
      return "too-large";
    case v1::LostRecords::REASON_AGENT_BUSY:
      return "agent-busy";
    case v1::LostRecords::REASON_NOT_HELD:
      return "not-held";
    default:
      return "unknown";
  }
}

json::array ToldLossesJson(const timeline::ReadReport& read) {
  json::array losses;
  for (const timeline::ToldLoss& loss : read.told_losses) {
    losses.push_back(json::object{{"first_sequence", loss.first_sequence},
                                  {"last_sequence", loss.last_sequence},
                                  {"reason", ReasonName(loss.reason)}});
  }
  return losses;
}

json::object DamageJson(const Report& report) {
  json::array regions;
  for (const timeline::Damage& damage : report.read.damages) {
    regions.push_back(json::object{
        {"offset", damage.offset}, {"bytes", damage.bytes}, {"reason", damage.reason}});
  }
  return {
      {"chunks", report.read.chunks},
      {"records", report.read.records},
      {"lost_records", report.read.lost_records},
      {"lost_before_first", report.read.lost_before_first},
      {"told_losses", ToldLossesJson(report.read)},
      {"damaged_chunks", report.read.damages.size()},
      {"damaged_bytes", report.DamagedBytes()},
      {"regions", std::move(regions)},
      {"unattributed_ticks", report.summary.unattributed_ticks()},
      {"ended_in_order", OrNull(report.EndedInOrder())},
  };
}

}  // namespace

std::string RenderJson(const Report& report) {
  json::array vms;
  for (const auto& [number, vm] : report.summary.vms()) {
    vms.push_back(VmJson(report, number, vm));
  }
  return ToJsonText(json::object{
      {"session", SessionJson(report)},
      {"degraded", TextOrNull(DegradedText(report))},
      {"vms", std::move(vms)},
      {"gaps", GapsJson(report, report.summary.gaps())},
      {"life_cycle", LifeCycleJson(report)},
      {"life_cycle_omitted", report.summary.life_cycle_omitted()},
      {"markers", MarkersJson(report)},
      {"markers_omitted", report.summary.markers_omitted()},
      {"phases", PhasesJson(report)},
      {"phase_spans_omitted", report.summary.phases().spans_omitted()},
      {"own_cost", OwnCostJson(report)},
      {"damage", DamageJson(report)},
  });
}

}  // namespace vcpulse::report
