#include "monitor/report/jsonl_export.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <variant>

#include "boost/json.hpp"
#include "monitor/core/features.h"
#include "monitor/replay/rejudge.h"
#include "monitor/report/json_text.h"
#include "monitor/report/labels.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

// `waited`: whether waiting for a CPU was measured.
void AddVerdict(const core::Verdict& verdict, bool waited, json::object& row) {
  const bool given = verdict.band != core::Band::kNone;
  row["band"] = NameOrNull(BandName(verdict.band));
  row["raw_band"] = NameOrNull(BandName(verdict.raw_band));
  row["rule"] = given ? NameOrNull(core::ToString(verdict.rule)) : json::value(nullptr);
  row["confidence"] =
      verdict.confidence_pct > 0 ? json::value(verdict.confidence_pct / 100.0) : nullptr;
  row["starved"] = given && (waited || verdict.starved) ? json::value(verdict.starved) : nullptr;
}

// How often an event was counted, and in which share of the time.
struct Counted {
  std::optional<uint64_t> count;
  std::optional<double> share;
};

Counted CountAt(const core::VcpuDelta& group, size_t slot) {
  const bool never_ran = group.time_enabled_ns > 0 && group.time_running_ns == 0;
  Counted counted;
  if (!never_ran) counted.count = group.counts[slot];
  if (group.time_enabled_ns > 0) {
    counted.share =
        static_cast<double>(group.time_running_ns) / static_cast<double>(group.time_enabled_ns);
  }
  return counted;
}

}  // namespace

absl::Status JsonlExport::Add(const timeline::Entry& entry) {
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    if (stream_id_ && *stream_id_ != session->stream_id()) {
      return absl::InvalidArgumentError(
          "a second recording begins after the first: they can only be exported one at a time");
    }
    if (!stream_id_) residency_.Begin(*session);
    stream_id_ = session->stream_id();
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    epochs_.try_emplace({set->vm(), set->epoch()}, MakeEpoch(*set));
  } else if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    return AddTick(*tick);
  }
  return absl::OkStatus();
}

JsonlExport::Epoch JsonlExport::MakeEpoch(const v1::VcpuSet& set) {
  const core::EpochClassifier::Layout layout = replay::LayoutOf(set);
  Epoch epoch{.vm_name = set.instance().name(),
              .vcpus = {},
              .slots = layout.slots,
              .core_pmus = layout.core_pmus,
              .groups = 1 + static_cast<size_t>(set.further_groups_size()),
              .events = EventPlacesOf(set)};
  for (const v1::Vcpu& vcpu : set.vcpus()) epoch.vcpus.push_back(vcpu.index());
  return epoch;
}

absl::Status JsonlExport::AddTick(const timeline::TickEntry& tick) {
  const auto found = epochs_.find({tick.vm, tick.epoch});
  const auto fits = [&](const core::Sample& sample) {
    const size_t vcpus = found->second.vcpus.size();
    return sample.vcpus.size() == vcpus &&
           sample.further.size() == vcpus * (found->second.groups - 1);
  };
  if (found == epochs_.end() || !fits(tick.sample)) {
    ++unusable_ticks_;
    return absl::OkStatus();
  }
  if (tick.previous == nullptr || !fits(*tick.previous)) return absl::OkStatus();
  for (size_t i = 0; i < found->second.vcpus.size(); ++i) {
    if (absl::Status status = AddRow(tick, found->second, i); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JsonlExport::AddRow(const timeline::TickEntry& tick, const Epoch& epoch, size_t vcpu) {
  const GroupDeltas deltas(*tick.previous, tick.sample, vcpu);
  const std::span<const core::VcpuDelta> pmus =
      deltas.all().first(std::min(epoch.core_pmus, deltas.all().size()));
  const core::VcpuDelta delta = AddPmus(pmus);
  if (delta.interval_ns <= 0) return absl::OkStatus();

  const core::VcpuSample& now = tick.sample.vcpus[vcpu];
  json::object row{{"t_mono_ns", now.read_begin_ns + (now.read_end_ns - now.read_begin_ns) / 2},
                   {"tick", tick.sample.tick},
                   {"vm", tick.vm},
                   {"vm_name", epoch.vm_name},
                   {"vcpu", epoch.vcpus[vcpu]},
                   {"interval_s", static_cast<double>(delta.interval_ns) / 1e9}};
  json::object shares;
  for (const EventPlace& event : epoch.events) {
    Counted counted;
    const bool in_turns = event.counted && event.group >= epoch.core_pmus;
    if (event.counted && event.group < deltas.all().size()) {
      counted = CountAt(in_turns ? deltas.all()[event.group] : delta, event.slot);
    }
    row[event.name] = OrNull(counted.count);
    if (in_turns) shares[event.name] = OrNull(counted.share);
  }
  if (!shares.empty()) row["counted_share"] = std::move(shares);
  row["time_enabled_ns"] = delta.time_enabled_ns;
  row["time_running_ns"] = delta.time_running_ns;
  row["run_ns"] = OrNull(delta.run_ns);
  row["run_delay_ns"] = OrNull(delta.run_delay_ns);
  row["state"] = NameOrNull(StateName(delta.state));
  row["residency"] = OrNull(residency_.Of(pmus, epoch.slots));
  row["ipc"] = OrNull(core::Ipc(delta, epoch.slots));
  AddVerdict(WithinKnown(vcpu < tick.verdicts.size() ? tick.verdicts[vcpu] : core::Verdict()),
             delta.run_delay_ns.has_value(), row);
  return sink_(ToJsonLine(row));
}

}  // namespace vcpulse::report
