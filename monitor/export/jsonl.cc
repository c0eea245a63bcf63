#include "monitor/export/jsonl.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <variant>

#include "boost/json.hpp"
#include "monitor/export/text_output.h"
#include "monitor/reading/labels.h"

namespace vcpulse::exporting {
namespace {

// But those of metrics and events.
constexpr std::array<std::string_view, 24> kKeys = {"t_mono_ns",
                                                    "t_wall_ns",
                                                    "interval_s",
                                                    "tick",
                                                    "vm",
                                                    "vm_name",
                                                    "vm_pid",
                                                    "vm_start_time",
                                                    "vm_uuid",
                                                    "epoch",
                                                    "vcpu",
                                                    "tid",
                                                    "kvm_id",
                                                    "counted_share",
                                                    "time_enabled_ns",
                                                    "time_running_ns",
                                                    "run_ns",
                                                    "run_delay_ns",
                                                    "state",
                                                    "band",
                                                    "raw_band",
                                                    "rule",
                                                    "confidence",
                                                    "starved"};

bool IsKey(std::string_view name) {
  const std::optional<metric::Metric> metric = metric::FindMetric(name);
  return std::ranges::find(kKeys, name) != kKeys.end() ||
         (metric && metric::InfoOf(*metric).row_decimals > 0);
}

std::string Quoted(std::string_view text) { return boost::json::serialize(std::string(text)); }

// The key of each event, in their order: its name, with "event:" in front as often as that is
// another one's.
std::vector<std::string> KeysOf(const std::vector<metric::EventPlace>& events) {
  std::vector<std::string> keys;
  const auto is_taken = [&keys](const std::string& key) {
    return IsKey(key) || std::ranges::find(keys, key) != keys.end();
  };
  for (const metric::EventPlace& event : events) {
    std::string key = event.name;
    while (is_taken(key)) key.insert(0, "event:");
    keys.push_back(std::move(key));
  }
  return keys;
}

std::string NumberOrNull(uint64_t number, bool known) {
  return known ? std::to_string(number) : "null";
}

template <typename T>
void AddOrNull(TextOutput& out, const std::optional<T>& number) {
  if (number) {
    out.AddNumber(*number);
  } else {
    out.Add("null");
  }
}

void AddOrNull(TextOutput& out, const std::optional<double>& number, int decimals) {
  if (number) {
    out.AddDecimal(*number, decimals);
  } else {
    out.Add("null");
  }
}

void AddOrNull(TextOutput& out, const std::optional<std::string_view>& name) {
  if (!name) {
    out.Add("null");
    return;
  }
  out.Add("\"");
  out.Add(*name);
  out.Add("\"");
}

}  // namespace

JsonlExport::Prepared JsonlExport::Prepare(const metric::Epoch& epoch) {
  Prepared prepared;
  const v1::VmInstance& instance = epoch.set.instance();
  const bool has_process = instance.pid() != 0;
  std::string vm =
      ",\"vm\":" + std::to_string(epoch.set.vm()) + ",\"vm_name\":" + Quoted(instance.name()) +
      ",\"vm_pid\":" + NumberOrNull(instance.pid(), has_process) + ",\"vm_start_time\":" +
      NumberOrNull(instance.start_time_ticks(), instance.start_time_ticks() != 0) +
      ",\"vm_uuid\":" + (instance.uuid().empty() ? "null" : Quoted(instance.uuid())) +
      ",\"epoch\":" + std::to_string(epoch.set.epoch());
  for (const v1::Vcpu& vcpu : epoch.set.vcpus()) {
    prepared.vcpus.push_back(vm + ",\"vcpu\":" + std::to_string(vcpu.index()) +
                             ",\"tid\":" + NumberOrNull(vcpu.tid(), vcpu.tid() != 0) +
                             ",\"kvm_id\":" + NumberOrNull(vcpu.kvm_id(), vcpu.has_kvm_id()));
  }
  for (const std::string& key : KeysOf(epoch.events)) {
    // In steps: of "," + ... g++ 12 warns at -O3 that it overlaps itself, which it does not.
    std::string& event = prepared.events.emplace_back(",");
    event += Quoted(key);
    event += ':';
  }
  for (const metric::EventPlace& event : epoch.events) {
    if (event.counted && event.group >= epoch.core_pmus) prepared.in_turns = true;
  }
  return prepared;
}

const JsonlExport::Prepared& JsonlExport::PreparedFor(const metric::Epoch& epoch) {
  if (latest_ == &epoch) return *latest_prepared_;
  auto found = prepared_.find(&epoch);
  if (found == prepared_.end()) found = prepared_.emplace(&epoch, Prepare(epoch)).first;
  latest_ = &epoch;
  latest_prepared_ = &found->second;
  return found->second;
}

absl::Status JsonlExport::Add(const timeline::Entry& entry) {
  if (const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    clocks_.Take(*snapshot);
  }
  return intervals_.Add(entry,
                        [this](const metric::Interval& interval) { return AddRow(interval); });
}

absl::Status JsonlExport::AddRow(const metric::Interval& interval) {
  const Prepared& prepared = PreparedFor(interval.epoch);
  const core::VcpuDelta& delta = interval.delta;
  const int64_t end_ns = interval.EndNs();
  out_.Add("{\"t_mono_ns\":");
  out_.AddNumber(end_ns);
  out_.Add(",\"t_wall_ns\":");
  AddOrNull(out_, clocks_.Realtime(end_ns));
  out_.Add(",\"interval_s\":");
  out_.AddSeconds(delta.interval_ns);
  out_.Add(",\"tick\":");
  out_.AddNumber(interval.tick);
  out_.Add(prepared.vcpus[interval.column]);
  AddEvents(interval, prepared);
  out_.Add(",\"time_enabled_ns\":");
  out_.AddNumber(delta.time_enabled_ns);
  out_.Add(",\"time_running_ns\":");
  out_.AddNumber(delta.time_running_ns);
  out_.Add(",\"run_ns\":");
  AddOrNull(out_, delta.run_ns);
  out_.Add(",\"run_delay_ns\":");
  AddOrNull(out_, delta.run_delay_ns);
  out_.Add(",\"state\":");
  AddOrNull(out_, reading::StateName(delta.state));
  ForEachRowMetric([&](const metric::Info& info) {
    if (info.of_readings && interval.statistics == nullptr) return;
    out_.Add(",\"");
    out_.Add(info.key);
    out_.Add("\":");
    AddOrNull(out_, info.of(interval).Value(), info.row_decimals);
  });
  AddVerdict(interval);
  out_.Add("}\n");
  return out_.EndRow();
}

void JsonlExport::AddEvents(const metric::Interval& interval, const Prepared& prepared) {
  const std::vector<metric::EventPlace>& events = interval.epoch.events;
  for (size_t i = 0; i < events.size(); ++i) {
    out_.Add(prepared.events[i]);
    AddOrNull(out_, interval.CountOf(events[i]).count);
  }
  if (!prepared.in_turns) return;
  out_.Add(",\"counted_share\":{");
  bool first = true;
  for (size_t i = 0; i < events.size(); ++i) {
    if (!interval.InTurns(events[i])) continue;
    // Without the comma that it begins with.
    out_.Add(std::string_view(prepared.events[i]).substr(first ? 1 : 0));
    AddOrNull(out_, interval.CountOf(events[i]).share, kShareDecimals);
    first = false;
  }
  out_.Add("}");
}

void JsonlExport::AddVerdict(const metric::Interval& interval) {
  const core::Verdict& verdict = interval.verdict;
  out_.Add(",\"band\":");
  AddOrNull(out_, reading::BandName(verdict.band));
  out_.Add(",\"raw_band\":");
  AddOrNull(out_, reading::BandName(verdict.raw_band));
  out_.Add(",\"rule\":");
  if (verdict.band == core::Band::kNone) {
    out_.Add("null");
  } else {
    AddOrNull(out_, std::optional(core::ToString(verdict.rule)));
  }
  out_.Add(",\"confidence\":");
  if (verdict.confidence_pct > 0) {
    out_.AddDecimal(verdict.confidence_pct / 100.0, 2);
  } else {
    out_.Add("null");
  }
  const std::optional<bool> starved = interval.Starved();
  out_.Add(!starved ? ",\"starved\":null" : *starved ? ",\"starved\":true" : ",\"starved\":false");
}

}  // namespace vcpulse::exporting
