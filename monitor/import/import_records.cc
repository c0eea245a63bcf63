#include "monitor/import/import_records.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "monitor/core/delta.h"
#include "monitor/import/intervals.h"
#include "monitor/replay/recorded_settings.h"

namespace vcpulse::importing {
namespace {

v1::ResidencyMethod MethodOf(const Table& table, const ImportOptions& options) {
  if (options.tsc_hz && table.IsCounted("ref-cycles")) return v1::RESIDENCY_METHOD_REF_CYCLES;
  if (!table.IsCounted("cycles")) {
    const bool timed = (table.columns >> kFirstTime).any() &&
                       (Has(table.columns, Field::kTimeEnabled) ||
                        Has(table.columns, Field::kTimeRunning) || Has(table.columns, Field::kRun));
    return timed ? v1::RESIDENCY_METHOD_TIME_ENABLED : v1::RESIDENCY_METHOD_UNSPECIFIED;
  }
  return options.max_hz ? v1::RESIDENCY_METHOD_MAX_FREQUENCY : v1::RESIDENCY_METHOD_HIGHEST_RATE;
}

void SetInstance(const VmIdentity& vm, v1::VmInstance& instance) {
  instance.set_name(vm.name);
  instance.set_uuid(vm.uuid);
  instance.set_pid(static_cast<uint32_t>(vm.pid));
  instance.set_start_time_ticks(vm.start_time);
}

}  // namespace

v1::Session MakeSession(const Table& table, const ImportOptions& options, int64_t interval_ns) {
  v1::Session session;
  session.set_stream_id(options.stream_id.data(), options.stream_id.size());
  session.set_tool_version(options.tool_version);
  session.set_interval_ns(static_cast<uint64_t>(interval_ns));
  session.set_verdict_window_ns(
      static_cast<uint64_t>(std::max(interval_ns, core::kShortestVerdict_ns)));
  session.set_residency_method(MethodOf(table, options));
  session.set_residency_blind_spot(std::string(replay::BlindSpotOf(session.residency_method())));
  session.set_tsc_hz(options.tsc_hz.value_or(0));
  session.set_max_hz(options.max_hz.value_or(0));
  if (table.events.empty()) {
    session.set_degraded_reason("the imported file counts nothing");
  }
  replay::SetClassifier(options.classifier, options.profile.values, options.profile.name, session);
  return session;
}

v1::VcpuSet MakeVcpuSet(const Table& table, const EventGroups& groups,
                        std::span<const Row* const> first, bool max_hz_known) {
  v1::VcpuSet set;
  SetInstance(table.vms[first.front()->vm], *set.mutable_instance());
  for (const Row* const row : first) {
    v1::Vcpu& vcpu = *set.add_vcpus();
    vcpu.set_index(static_cast<uint32_t>(row->Value(Field::kVcpu).value_or(0)));
    vcpu.set_tid(static_cast<uint32_t>(row->Value(Field::kTid).value_or(0)));
    if (const auto id = row->Value(Field::kKvmId)) vcpu.set_kvm_id(static_cast<uint32_t>(*id));
    vcpu.set_found_by("given");
    vcpu.set_proof("none");
  }
  const Layout& layout = table.LayoutOf(*first.front());
  for (const uint32_t event : groups.groups.front().events) set.add_events(table.events[event]);
  for (size_t g = 1; g < groups.groups.size(); ++g) {
    v1::EventGroup& group = *set.add_further_groups();
    for (const uint32_t event : groups.groups[g].events) group.add_events(table.events[event]);
  }
  set.set_event_set(layout.events.empty() ? "degraded" : "custom");
  for (const uint32_t event : layout.absent) {
    v1::AbsentEvent& absent = *set.add_absent_events();
    absent.set_event(table.events[event]);
    absent.set_reason(table.absent_reason);
  }
  for (const uint32_t event : layout.events) {
    if (std::ranges::find(table.host_side_events, table.events[event]) !=
        table.host_side_events.end()) {
      set.add_host_side_events(table.events[event]);
    }
  }
  const std::optional<uint32_t> cycles = table.FindEvent("cycles");
  const bool counts_cycles = cycles && std::ranges::binary_search(layout.events, *cycles);
  for (const std::string& note :
       Substitutions(first.front()->present, counts_cycles, max_hz_known)) {
    set.add_notes(note);
  }
  for (const std::string& note : table.notes) set.add_notes(note);
  return set;
}

EventGroups GroupEvents(const Table& table, const Layout& layout) {
  // Places in the layout by the number of their turn, in the order of their first events.
  std::vector<std::pair<uint32_t, std::vector<size_t>>> turns = {{0, {}}};
  for (size_t i = 0; i < layout.events.size(); ++i) {
    const uint32_t turn = table.turns[layout.events[i]];
    auto known = std::ranges::find(turns, turn, &decltype(turns)::value_type::first);
    if (known == turns.end()) known = turns.insert(turns.end(), {turn, {}});
    known->second.push_back(i);
  }
  EventGroups made;
  made.groups.emplace_back();
  made.places.resize(layout.events.size());
  size_t waiting = layout.events.size();  // places that are still to be given
  for (const auto& [turn, members] : turns) {
    const size_t room = (core::kMaxGroups - made.groups.size()) * core::kMaxEvents;
    // A group begun now leaves slots unused in the one before: what follows must fit all the same.
    bool begin = turn != 0 && room >= waiting;
    for (const size_t member : members) {
      if (begin || made.groups.back().events.size() == core::kMaxEvents) {
        made.groups.emplace_back();
        if (turn != 0) made.groups.back().timed_by = member;
        begin = false;
      }
      EventGroups::Group& group = made.groups.back();
      made.places[member] = {.group = made.groups.size() - 1, .slot = group.events.size()};
      group.events.push_back(layout.events[member]);
      --waiting;
    }
  }
  return made;
}

}  // namespace vcpulse::importing
