#include "monitor/library/contents.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "monitor/report/loss_text.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::library {
namespace {

class Gatherer {
 public:
  absl::Status Add(const timeline::Entry& entry) {
    if (const auto* session = std::get_if<v1::Session>(&entry.record)) return Take(*session);
    if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) Take(*set);
    if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) Take(*marker);
    // Clock snapshots are context, taken when a chunk was written.
    const std::optional<int64_t> instant =
        entry.sequence > 0 ? timeline::InstantOf(entry) : std::nullopt;
    if (instant) {
      first_ns_ = std::min(first_ns_.value_or(*instant), *instant);
      last_ns_ = std::max(last_ns_.value_or(*instant), *instant);
    }
    return absl::OkStatus();
  }

  Contents Finish(const timeline::ReadReport& report) {
    for (auto& [number, vm] : vms_) {
      vm.contents.vcpus.assign(vm.indexes.begin(), vm.indexes.end());
      contents_.vms.push_back(std::move(vm.contents));
    }
    if (first_ns_) contents_.duration_ns = *last_ns_ - *first_ns_;
    contents_.damage = report::DescribeLoss(report, 0, report.ended_in_order);
    return std::move(contents_);
  }

 private:
  struct Vm {
    VmContents contents;
    std::set<uint32_t> indexes;
  };

  absl::Status Take(const v1::Session& session) {
    if (stream_id_ && *stream_id_ != session.stream_id()) {
      return absl::InvalidArgumentError("a second recording begins after the first");
    }
    stream_id_ = session.stream_id();
    contents_.host = session.host_name();
    contents_.no_counters_reason = session.degraded_reason();
    return absl::OkStatus();
  }

  void Take(const v1::VcpuSet& set) {
    Vm& vm = vms_[set.vm()];
    vm.contents.name = set.instance().name();
    vm.contents.pid = set.instance().pid();
    for (const v1::Vcpu& vcpu : set.vcpus()) vm.indexes.insert(vcpu.index());
    for (const v1::UnopenedVcpu& vcpu : set.unopened_vcpus()) vm.indexes.insert(vcpu.index());
  }

  void Take(const v1::Marker& marker) {
    std::vector<std::string>& phases = contents_.phases;
    if (std::ranges::find(phases, marker.name()) == phases.end()) phases.push_back(marker.name());
  }

  Contents contents_;
  std::optional<std::string> stream_id_;
  std::map<uint32_t, Vm> vms_;  // by number, which rises in the order they come
  std::optional<int64_t> first_ns_;
  std::optional<int64_t> last_ns_;
};

}  // namespace

absl::StatusOr<Contents> ReadContents(const std::string& path) {
  Gatherer gatherer;
  absl::StatusOr<timeline::ReadReport> report = timeline::ReadTimeline(
      path, [&](const timeline::Entry& entry) { return gatherer.Add(entry); });
  if (!report.ok()) {
    const std::string message(report.status().message());
    const bool named = message.find(path) != std::string::npos;
    return absl::Status(report.status().code(),
                        named ? message : absl::StrCat(path, ": ", message));
  }
  return gatherer.Finish(*report);
}

}  // namespace vcpulse::library
