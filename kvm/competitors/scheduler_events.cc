#include "kvm/competitors/scheduler_events.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {

void SchedulerEvent::Tell(WaitLedger& ledger) const {
  switch (kind) {
    case Kind::kGotCpu:
      return ledger.GotCpu(at_ns, cpu);
    case Kind::kLostCpu:
      return ledger.LostCpu(at_ns, cpu, waits);
    case Kind::kWoken:
      return ledger.Woken(at_ns, cpu);
    case Kind::kRunnable:
      return ledger.Runnable(at_ns, cpu);
    case Kind::kSwitched:
      return ledger.Switched(at_ns, cpu, tid, next);
    case Kind::kRuns:
      return ledger.Runs(at_ns, cpu, tid);
    case Kind::kMissed:
      return ledger.Missed(at_ns, cpu);
  }
}

absl::StatusOr<SchedulerRecords> SchedulerRecords::From(const TracepointFormat& on_switch,
                                                        const TracepointFormat& on_wakeup) {
  SchedulerRecords records;
  records.switch_id_ = on_switch.id;
  records.wakeup_id_ = on_wakeup.id;
  struct Needed {
    const TracepointFormat& format;
    const char* tracepoint;
    const char* name;
    Field& field;
  };
  for (const Needed& needed :
       {Needed{on_switch, "sched_switch", "common_type", records.type_},
        Needed{on_switch, "sched_switch", "prev_pid", records.prev_pid_},
        Needed{on_switch, "sched_switch", "next_pid", records.next_pid_},
        Needed{on_wakeup, "sched_wakeup", "pid", records.woken_pid_},
        Needed{on_wakeup, "sched_wakeup", "target_cpu", records.target_cpu_}}) {
    const Field* const found = needed.format.Find(needed.name);
    if (found == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("sched:", needed.tracepoint, " has no field ", needed.name));
    }
    needed.field = *found;
  }
  if (const Field* name = on_switch.Find("prev_comm")) records.prev_name_ = *name;
  if (const Field* name = on_switch.Find("next_comm")) records.next_name_ = *name;
  return records;
}

std::optional<SchedulerEvent> SchedulerRecords::Decode(
    const RawSample& sample, int cpu, pid_t tid,
    absl::FunctionRef<void(pid_t tid, std::string_view name)> name) const {
  using Kind = SchedulerEvent::Kind;
  const std::span<const uint8_t> record = sample.record;
  // What is no tracepoint's has four bytes that mean nothing.
  if (record.size() <= sizeof(uint32_t)) {
    return SchedulerEvent{
        .at_ns = sample.time_ns, .kind = Kind::kRuns, .cpu = cpu, .tid = sample.tid};
  }
  const auto id = ReadField(record, &type_);
  if (id == switch_id_) {
    const auto prev = ReadField(record, &prev_pid_);
    const auto next = ReadField(record, &next_pid_);
    if (!prev || !next) return std::nullopt;
    const SchedulerEvent event{.at_ns = sample.time_ns,
                               .kind = Kind::kSwitched,
                               .cpu = cpu,
                               .tid = static_cast<pid_t>(*prev),
                               .next = static_cast<pid_t>(*next)};
    if (prev_name_) name(event.tid, ReadText(record, &*prev_name_));
    if (next_name_) name(event.next, ReadText(record, &*next_name_));
    return event;
  }
  const auto woken = ReadField(record, &woken_pid_);
  const auto target = ReadField(record, &target_cpu_);
  if (id != wakeup_id_ || !woken || !target || static_cast<pid_t>(*woken) != tid) {
    return std::nullopt;
  }
  return SchedulerEvent{
      .at_ns = sample.time_ns, .kind = Kind::kWoken, .cpu = static_cast<int>(*target)};
}

}  // namespace vcpulse::kvm
