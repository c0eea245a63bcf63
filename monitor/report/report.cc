#include "monitor/report/report.h"

#include <algorithm>

#include "kvm/base/clock.h"

namespace vcpulse::report {

std::optional<int64_t> Report::Start() const {
  return start_mono_ns ? start_mono_ns : summary.first_mono_ns();
}

double Report::SecondsAt(int64_t mono_ns) const {
  return ToSeconds(mono_ns - Start().value_or(mono_ns));
}

int64_t Report::DurationNs() const {
  if (phase) return phase->length_ns;
  if (!Start() || !summary.last_mono_ns()) return 0;
  return std::max<int64_t>(0, *summary.last_mono_ns() - *Start() - from_ns.value_or(0));
}

std::optional<int64_t> Report::StartRealtimeNs() const {
  // What was imported has no wall clock.
  if (!Start() || !summary.clock() || summary.clock()->realtime_ns() == 0) return std::nullopt;
  return summary.clock()->realtime_ns() + (*Start() - summary.clock()->mono_ns());
}

bool Report::IsImported() const {
  const std::optional<v1::Session>& session = summary.session();
  return session && session->host_name().empty() && session->kernel_release().empty();
}

bool Report::HasOwnCost() const {
  return !IsImported() && summary.own_cost().read_ns.Max().value_or(1) > 0;
}

std::optional<bool> Report::EndedInOrder() const {
  if (read.ended_in_order) return true;
  if (to_ns) return std::nullopt;
  return false;
}

uint64_t Report::DamagedBytes() const {
  uint64_t bytes = 0;
  for (const timeline::Damage& damage : read.damages) bytes += damage.bytes;
  return bytes;
}

std::optional<double> Report::CpuShare() const {
  if (IsPart() || !HasOwnCost() || !summary.end() || DurationNs() == 0) return std::nullopt;
  return static_cast<double>(summary.end()->cpu_ns()) / static_cast<double>(DurationNs());
}

}  // namespace vcpulse::report
