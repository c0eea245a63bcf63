#include "monitor/sampler/epoch.h"

#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::sampler {
namespace {

bool ThreadExists(const std::string& root, pid_t pid, pid_t tid) {
  return ::access(absl::StrCat(root, "/proc/", pid, "/task/", tid).c_str(), F_OK) == 0;
}

}  // namespace

Epoch::Epoch(uint32_t vm_number, uint32_t epoch_number, size_t samples)
    : vm(vm_number), number(epoch_number), buffers(samples), free(samples) {}

absl::StatusOr<std::unique_ptr<Epoch>> Epoch::Start(uint32_t vm, uint32_t number,
                                                    const std::string& root, pid_t pid,
                                                    std::vector<kvm::VcpuGroups> groups,
                                                    const std::vector<kvm::Vcpu>& threads,
                                                    size_t buffers) {
  auto epoch = std::make_unique<Epoch>(vm, number, buffers);
  epoch->vcpus.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    VcpuSource& source = epoch->vcpus[i];
    source.groups = std::move(groups[i]);
    auto scheduling = kvm::ThreadScheduling::Open(root, pid, threads.at(i).tid);
    source.has_scheduling = scheduling.ok();
    if (scheduling.ok()) {
      source.scheduling = std::move(*scheduling);
    } else if (absl::IsResourceExhausted(scheduling.status())) {
      return scheduling.status();
    } else {
      source.gone = !ThreadExists(root, pid, threads.at(i).tid);
    }
  }
  const size_t further = epoch->vcpus.empty() ? 0 : epoch->vcpus.front().groups.size() - 1;
  for (core::Sample& sample : epoch->buffers) {
    sample.vcpus.resize(epoch->vcpus.size());
    sample.further.resize(epoch->vcpus.size() * further);
    epoch->free.push(&sample);
  }
  for (size_t i = 0; i < epoch->vcpus.size(); ++i) {
    for (kvm::CounterGroup& group : epoch->vcpus[i].groups) {
      if (const int error = group.Enable(); error != 0) {
        return absl::ErrnoToStatus(
            error, absl::StrCat("enabling the counters of vCPU ", threads.at(i).index, ", thread ",
                                threads.at(i).tid));
      }
    }
  }
  return epoch;
}

}  // namespace vcpulse::sampler
