#include "monitor/library/timeline.h"

#include <filesystem>
#include <variant>

#include "monitor/library/error.h"
#include "monitor/library/include/vcpulse.h"
#include "monitor/library/record_rows.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::library {
namespace {

// Ends a reading in which nothing is wrong.
constexpr absl::StatusCode kEnough = absl::StatusCode::kCancelled;

bool AddTo(RecordRows& rows, const timeline::Entry& entry) {
  return std::visit(
      [&rows](const auto& record) {
        if constexpr (requires { rows.Add(record); }) {
          return rows.Add(record);
        } else if constexpr (requires { record.verdicts; }) {
          return rows.AddTick(record.vm, record.epoch, record.sample, record.previous,
                              record.verdicts);
        } else {
          return true;  // of no interest to the C API
        }
      },
      entry.record);
}

const VmContents* VmAt(const vcpulse_timeline* timeline, size_t vm) {
  if (timeline == nullptr || vm >= timeline->contents.vms.size()) return nullptr;
  return &timeline->contents.vms[vm];
}

const char* NullIfEmpty(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

absl::StatusOr<std::unique_ptr<vcpulse_timeline>> OpenTimeline(
    const std::string& path, std::unique_ptr<TemporaryFolder> folder) {
  absl::StatusOr<Contents> contents = ReadContents(path);
  if (!contents.ok()) return contents.status();
  auto timeline = std::make_unique<vcpulse_timeline>();
  timeline->path = path;
  timeline->contents = *std::move(contents);
  timeline->folder = std::move(folder);
  return timeline;
}

}  // namespace vcpulse::library

using vcpulse::library::Given;

vcpulse_timeline* vcpulse_timeline_open(const char* path, vcpulse_error** error) {
  using Made = absl::StatusOr<std::unique_ptr<vcpulse_timeline>>;
  return vcpulse::library::GuardMake(error, [&]() -> Made {
    if (absl::Status status = Given(path, "path"); !status.ok()) return status;
    // Each query reads the file anew, which standard input cannot be.
    if (std::string(path).empty() || std::string(path) == "-") {
      return absl::InvalidArgumentError("path must name a file");
    }
    // Whatever chdir(2) follows.
    return vcpulse::library::OpenTimeline(std::filesystem::absolute(path).string(), nullptr);
  });
}

void vcpulse_timeline_free(vcpulse_timeline* timeline) { delete timeline; }

const char* vcpulse_timeline_path(const vcpulse_timeline* timeline) {
  return timeline == nullptr ? nullptr : timeline->path.c_str();
}

const char* vcpulse_timeline_host(const vcpulse_timeline* timeline) {
  return timeline == nullptr ? nullptr : timeline->contents.host.c_str();
}

int64_t vcpulse_timeline_duration_ns(const vcpulse_timeline* timeline) {
  return timeline == nullptr ? 0 : timeline->contents.duration_ns;
}

const char* vcpulse_timeline_no_counters_reason(const vcpulse_timeline* timeline) {
  if (timeline == nullptr) return nullptr;
  return vcpulse::library::NullIfEmpty(timeline->contents.no_counters_reason);
}

const char* vcpulse_timeline_damage(const vcpulse_timeline* timeline) {
  if (timeline == nullptr) return nullptr;
  return vcpulse::library::NullIfEmpty(timeline->contents.damage);
}

size_t vcpulse_timeline_vm_count(const vcpulse_timeline* timeline) {
  return timeline == nullptr ? 0 : timeline->contents.vms.size();
}

const char* vcpulse_timeline_vm_name(const vcpulse_timeline* timeline, size_t vm) {
  const auto* contents = vcpulse::library::VmAt(timeline, vm);
  return contents == nullptr ? nullptr : contents->name.c_str();
}

uint32_t vcpulse_timeline_vm_pid(const vcpulse_timeline* timeline, size_t vm) {
  const auto* contents = vcpulse::library::VmAt(timeline, vm);
  return contents == nullptr ? 0 : contents->pid;
}

size_t vcpulse_timeline_vcpu_count(const vcpulse_timeline* timeline, size_t vm) {
  const auto* contents = vcpulse::library::VmAt(timeline, vm);
  return contents == nullptr ? 0 : contents->vcpus.size();
}

uint32_t vcpulse_timeline_vcpu_index(const vcpulse_timeline* timeline, size_t vm, size_t vcpu) {
  const auto* contents = vcpulse::library::VmAt(timeline, vm);
  return contents == nullptr || vcpu >= contents->vcpus.size() ? 0 : contents->vcpus[vcpu];
}

size_t vcpulse_timeline_phase_count(const vcpulse_timeline* timeline) {
  return timeline == nullptr ? 0 : timeline->contents.phases.size();
}

const char* vcpulse_timeline_phase(const vcpulse_timeline* timeline, size_t phase) {
  if (timeline == nullptr || phase >= timeline->contents.phases.size()) return nullptr;
  return timeline->contents.phases[phase].c_str();
}

vcpulse_status vcpulse_timeline_for_each_record(const vcpulse_timeline* timeline,
                                                vcpulse_record_callback callback, void* user,
                                                vcpulse_error** error) {
  return vcpulse::library::Guard(error, [&]() -> absl::Status {
    if (absl::Status status = Given(timeline, "timeline"); !status.ok()) return status;
    if (callback == nullptr) return absl::InvalidArgumentError("callback is NULL");
    bool enough = false;
    vcpulse::library::RecordRows rows([&](const vcpulse_record& record) {
      enough = callback(&record, user) != 0;
      return !enough;
    });
    const absl::Status status =
        vcpulse::timeline::ReadTimeline(timeline->path, [&](const vcpulse::timeline::Entry& entry) {
          if (vcpulse::library::AddTo(rows, entry)) return absl::OkStatus();
          return absl::Status(vcpulse::library::kEnough, "the callback wants no more");
        }).status();
    return enough ? absl::OkStatus() : status;
  });
}
