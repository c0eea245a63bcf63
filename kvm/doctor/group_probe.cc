#include "kvm/doctor/group_probe.h"

#include <array>
#include <cerrno>
#include <utility>

#include "kvm/base/affinity.h"
#include "kvm/base/fd.h"
#include "kvm/counters/read_format.h"
#include "kvm/host.h"

namespace vcpulse::kvm::doctor {
namespace {

constexpr absl::Duration kBusy = absl::Milliseconds(3);

perf_event_attr AttrFor(const Event& event, bool leader, Mode mode) {
  perf_event_attr attr = AttrOf(event, leader);
  if (mode == Mode::kHostUser) {
    attr.exclude_host = 0;
    attr.exclude_guest = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
  }
  return attr;
}

}  // namespace

int TryOpen(PerfEvents& perf, const Event& event, Mode mode) {
  perf_event_attr attr = AttrFor(event, /*leader=*/true, mode);
  return perf.Open(attr, /*tid=*/0, /*group_fd=*/-1).error;
}

GroupProbe ProbeGroup(PerfEvents& perf, std::span<const Event> events, Mode mode) {
  GroupProbe probe;
  std::vector<Fd> fds;
  std::vector<uint64_t> ids;
  for (const Event& event : events) {
    perf_event_attr attr = AttrFor(event, /*leader=*/fds.empty(), mode);
    OrErrno<Fd> fd = perf.Open(attr, /*tid=*/0, fds.empty() ? -1 : fds.front().get());
    if (!fd.ok() && fds.empty()) return {.error = fd.error};
    if (!fd.ok()) {
      probe.refused.push_back({event, fd.error});
      continue;
    }
    const OrErrno<uint64_t> id = perf.Id(fd.value.get());
    if (!id.ok()) return {.error = id.error};
    ids.push_back(id.value);
    fds.push_back(std::move(fd.value));
    probe.counts.push_back({.event = event});
  }
  if (fds.empty()) return {.error = EINVAL};

  probe.error = perf.EnableGroup(fds.front().get());
  if (probe.error != 0) return probe;
  BurnCpu(kBusy);
  std::array<uint64_t, kGroupWords> words;
  const OrErrno<size_t> got = perf.Read(fds.front().get(), words);
  probe.error = got.error;
  if (!got.ok()) return probe;
  const std::optional<GroupValues> values = ParseGroupRead(std::span(words).first(got.value), ids);
  if (!values) {
    probe.error = EIO;
    return probe;
  }
  probe.enabled_ns = values->time_enabled_ns;
  probe.running_ns = values->time_running_ns;
  for (size_t i = 0; i < probe.counts.size(); ++i) probe.counts[i].count = values->counts[i];
  return probe;
}

OnCpus::OnCpus(std::span<const int> cpus) {
  if (cpus.empty()) return;
  std::vector<int> before = OwnCpus();
  if (KeepToCpus(0, cpus)) before_ = std::move(before);
}

OnCpus::~OnCpus() {
  if (moved()) KeepToCpus(0, before_);
}

}  // namespace vcpulse::kvm::doctor
