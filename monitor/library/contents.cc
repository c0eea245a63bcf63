#include "monitor/library/contents.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "monitor/check/timetable.h"
#include "monitor/report/text_format.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::library {
namespace {

VmContents ContentsOf(const check::Vm& vm) {
  std::set<uint32_t> indexes;
  for (const auto& [number, epoch] : vm.epochs) {
    indexes.insert(epoch.vcpus.begin(), epoch.vcpus.end());
    for (const check::Epoch::Unopened& vcpu : epoch.unopened) indexes.insert(vcpu.index);
  }
  return {.name = vm.instance.name(),
          .pid = vm.instance.pid(),
          .vcpus = {indexes.begin(), indexes.end()}};
}

}  // namespace

absl::StatusOr<Contents> ReadContents(const std::string& path) {
  check::Timetable timetable;
  const absl::StatusOr<timeline::ReadReport> report =
      timeline::ReadTimeline(path, [&](const timeline::Entry& entry) {
        absl::Status added = timetable.Add(entry);
        if (added.ok()) return added;
        return absl::Status(added.code(), absl::StrCat(path, ": ", added.message()));
      });
  if (!report.ok()) return report.status();
  Contents contents;
  if (timetable.session()) {
    contents.host = timetable.session()->host_name();
    contents.no_counters_reason = timetable.session()->degraded_reason();
  }
  contents.damage = report::DescribeLoss(*report, 0, report->ended_in_order);
  contents.duration_ns = timetable.Recording().Length();
  for (const auto& [number, vm] : timetable.vms()) contents.vms.push_back(ContentsOf(vm));
  contents.phases = timetable.Phases();
  return contents;
}

}  // namespace vcpulse::library
