// What follows from the sums of a Summary: shares, means and scaled counts.

#include <algorithm>

#include "monitor/core/delta.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {
namespace {

template <typename Part, typename Whole>
std::optional<double> ShareOf(Part part, Whole whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::optional<double> IpcTotals::Mean() const { return ShareOf(instructions, cycles); }

std::optional<uint64_t> EventTotal::Raw() const {
  if (interval_ns == 0) return std::nullopt;
  if (time_enabled_ns > 0 && time_running_ns == 0) return std::nullopt;
  return raw;
}

double EventTotal::ScaledSinceSettled() const {
  // The sum of all intervals of an epoch is itself the delta of one long interval. Scaling the
  // short ones each on its own would extrapolate from slivers.
  core::VcpuDelta whole;
  whole.time_enabled_ns = time_enabled_ns - settled_enabled_ns;
  whole.time_running_ns = time_running_ns - settled_running_ns;
  whole.counts[0] = raw - settled_raw;
  return core::ScaledCount(whole, 0).value_or(0);  // never on the PMU: nothing is known of it
}

bool EventTotal::NeverRanSinceSettled() const {
  return time_enabled_ns > settled_enabled_ns && time_running_ns == settled_running_ns;
}

int64_t EventTotal::CountedNs() const {
  return NeverRanSinceSettled() ? settled_interval_ns : interval_ns;
}

void EventTotal::Settle() {
  if (NeverRanSinceSettled()) {  // nothing is known of it, so it was not counted
    time_enabled_ns = settled_enabled_ns;
    interval_ns = settled_interval_ns;
  }
  settled_interval_ns = interval_ns;
  settled_scaled += ScaledSinceSettled();
  settled_raw = raw;
  settled_enabled_ns = time_enabled_ns;
  settled_running_ns = time_running_ns;
}

std::optional<double> EventTotal::Scaled() const {
  if (!Raw()) return std::nullopt;
  return settled_scaled + ScaledSinceSettled();
}

bool EventTotal::IsEstimate() const {
  // The groups of two PMUs are read one after the other: their times never add up to the last
  // digit.
  constexpr double kReadsApart = 0.999;
  const auto whole = static_cast<double>(time_enabled_ns) * (on_many_pmus ? kReadsApart : 1.0);
  return static_cast<double>(time_running_ns) < whole;
}

std::optional<double> EventTotal::RunningShare() const {
  return ShareOf(time_running_ns, time_enabled_ns);
}

std::optional<double> VcpuSummary::RuleShare(core::Rule rule) const {
  return ShareOf(rule_ns[static_cast<size_t>(rule)], totals.JudgedNs());
}

const EventTotal* VcpuSummary::FindEvent(const std::string& name) const {
  for (const EventTotal& total : events) {
    if (total.event == name) return &total;
  }
  return nullptr;
}

std::vector<std::string> EventsAskedFor(const VmSummary& vm) {
  std::vector<std::string> events;
  const auto add = [&events](const std::string& name) {
    if (std::find(events.begin(), events.end(), name) == events.end()) events.push_back(name);
  };
  for (const auto& [number, epoch] : vm.epochs) {
    for (const std::string& event : epoch.set.events()) add(event);
    for (const v1::EventGroup& group : epoch.set.further_groups()) {
      for (const std::string& event : group.events()) add(event);
    }
    for (const v1::AbsentEvent& absent : epoch.set.absent_events()) add(absent.event());
  }
  return events;
}

}  // namespace vcpulse::report
