#include "kvm/counters/counter_group.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace vcpulse::kvm {

perf_event_attr AttrOf(const Event& event, bool leader) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = event.type;
  attr.config = event.config;
  attr.config1 = event.config1;
  attr.config2 = event.config2;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
                     PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.disabled = leader ? 1 : 0;  // members follow their leader
  attr.exclude_host = 1;
  return attr;
}

OrErrno<CounterGroup> CounterGroup::Open(PerfEvents& perf, pid_t tid, std::span<const Event> events,
                                         std::vector<RefusedEvent>& refused) {
  CounterGroup group;
  group.perf_ = &perf;
  for (const Event& event : events.first(std::min(events.size(), kMaxGroupEvents))) {
    const bool leader = group.fds_.empty();
    perf_event_attr attr = AttrOf(event, leader);
    OrErrno<Fd> fd = perf.Open(attr, tid, leader ? -1 : group.fds_.front().get());
    if (!fd.ok()) {
      if (leader) return {.error = fd.error};
      refused.push_back({event, fd.error});
      continue;
    }
    const OrErrno<uint64_t> id = perf.Id(fd.value.get());
    if (!id.ok()) return {.error = id.error};
    group.ids_[group.fds_.size()] = id.value;
    group.fds_.push_back(std::move(fd.value));
    group.events_.push_back(event);
  }
  return {.value = std::move(group)};
}

int CounterGroup::Enable() { return perf_->EnableGroup(fds_.front().get()); }

OrErrno<GroupValues> CounterGroup::Read() {
  std::array<uint64_t, kGroupWords> words;
  const OrErrno<size_t> got = perf_->Read(fds_.front().get(), words);
  if (!got.ok()) return {.error = got.error};
  const std::optional<GroupValues> values = ParseGroupRead(
      std::span(words).first(got.value), std::span<const uint64_t>(ids_).first(fds_.size()));
  if (!values) return {.error = EIO};
  return {.value = *values};
}

}  // namespace vcpulse::kvm
