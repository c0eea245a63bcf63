#include "monitor/report/jsonl_export.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <variant>

#include "boost/json.hpp"
#include "monitor/reading/labels.h"
#include "monitor/report/json_text.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

// `waited`: whether waiting for a CPU was measured.
void AddVerdict(const core::Verdict& verdict, bool waited, json::object& row) {
  const bool given = verdict.band != core::Band::kNone;
  row["band"] = NameOrNull(reading::BandName(verdict.band));
  row["raw_band"] = NameOrNull(reading::BandName(verdict.raw_band));
  row["rule"] = given ? NameOrNull(core::ToString(verdict.rule)) : json::value(nullptr);
  row["confidence"] =
      verdict.confidence_pct > 0 ? json::value(verdict.confidence_pct / 100.0) : nullptr;
  row["starved"] = given && (waited || verdict.starved) ? json::value(verdict.starved) : nullptr;
}

}  // namespace

absl::Status JsonlExport::Add(const timeline::Entry& entry) {
  return intervals_.Add(entry,
                        [this](const reading::Interval& interval) { return AddRow(interval); });
}

absl::Status JsonlExport::AddRow(const reading::Interval& interval) {
  const core::VcpuDelta& delta = interval.delta;
  json::object row{{"t_mono_ns", interval.EndNs()},
                   {"tick", interval.tick},
                   {"vm", interval.Vm()},
                   {"vm_name", interval.epoch.set.instance().name()},
                   {"vcpu", interval.Vcpu().index()},
                   {"interval_s", static_cast<double>(delta.interval_ns) / 1e9}};
  json::object shares;
  for (const reading::EventPlace& event : interval.epoch.events) {
    const reading::Interval::Counted counted = interval.CountOf(event);
    row[event.name] = OrNull(counted.count);
    if (interval.InTurns(event)) shares[event.name] = OrNull(counted.share);
  }
  if (!shares.empty()) row["counted_share"] = std::move(shares);
  row["time_enabled_ns"] = delta.time_enabled_ns;
  row["time_running_ns"] = delta.time_running_ns;
  row["run_ns"] = OrNull(delta.run_ns);
  row["run_delay_ns"] = OrNull(delta.run_delay_ns);
  row["state"] = NameOrNull(reading::StateName(delta.state));
  row["residency"] = OrNull(interval.residency);
  row["ipc"] = OrNull(interval.Ipc());
  AddVerdict(interval.verdict, delta.run_delay_ns.has_value(), row);
  return sink_(ToJsonLine(row));
}

}  // namespace vcpulse::report
