// What can be said of a vCPU beside its counters: where its code is, and what the host counts of
// it.
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "kvm/bpf/bpf_keeper.h"
#include "kvm/competitors/competitor_sampler.h"
#include "kvm/doctor/checks.h"
#include "kvm/host.h"
#include "kvm/hotspots/address_sampler.h"
#include "kvm/proc_tree.h"
#include "kvm/statistics/vm_statistics.h"

namespace vcpulse::kvm::doctor {
namespace {

using State = Finding::State;

// This thread, as a VM of one vCPU.
Vm Itself(const std::string& root) {
  Vm self{.pid = getpid(), .name = "vcpulse"};
  const auto thread = ProcTree(root).ThreadStat(self.pid, gettid());
  self.vcpus.push_back({.index = 0, .tid = gettid()});
  if (thread) self.vcpus.front().start_time_ticks = thread->start_time_ticks;
  return self;
}

// "cycles: no 'cycles' event: ..." of "VM vcpulse (PID 7) cannot be sampled: cycles: no ...".
std::string ReasonIn(const absl::Status& status) {
  const std::string text(status.message());
  return text.substr(text.find(": ") + 2);
}

}  // namespace

Finding CheckHotAddresses(PerfEvents& perf, const std::string& root) {
  Finding finding{.id = "hot-addresses",
                  .tried = "the sources of `hotspots` and `record --hotspots`, on vcpulse itself"};
  std::string refused;
  for (const AddressSource source : {AddressSource::kCycles, AddressSource::kKvmExit}) {
    const auto sampler = AddressSampler::Open(perf, Itself(root), {.root = root, .source = source});
    if (sampler.ok()) {
      finding.answered = absl::StrCat(ToAbsl(ToString(source)), " opens");
      if (source == AddressSource::kKvmExit) {
        absl::StrAppend(&finding.answered, " (nothing comes of it where KVM emulates its guests); ",
                        refused);
        finding.state = State::kNote;
      }
      return finding;
    }
    absl::StrAppend(&refused, refused.empty() ? "" : "; ", ReasonIn(sampler.status()));
  }
  finding.state = State::kNote;
  finding.answered = absl::StrCat("none but QMP: ", refused);
  return finding;
}

Finding CheckCompetitors(PerfEvents& perf, const std::string& root) {
  Finding finding{.id = "competitors", .tried = "`record --competitors`, on vcpulse itself"};
  const auto sampler = CompetitorSampler::Open(perf, Itself(root), root);
  if (sampler.ok()) {
    finding.answered = "who runs on a CPU can be watched";
    return finding;
  }
  finding.state = State::kNote;
  finding.answered = absl::StrCat("who has the CPU of a starved vCPU cannot be watched: ",
                                  sampler.status().message());
  return finding;
}

Finding CheckReader(const std::string& root) {
  Finding finding{.id = "reader", .tried = "`record --reader bpf`"};
  const auto keeper = LoadBpfKeeper(root);
  if (keeper.ok()) {
    finding.answered = "the kernel takes the program: recordings interrupt no vCPU";
    return finding;
  }
  finding.state = State::kNote;
  finding.answered = absl::StrCat("read(2), which interrupts each running vCPU; no BPF: ",
                                  keeper.status().message());
  return finding;
}

std::vector<Finding> CheckStatistics(const std::string& root, std::span<const Vm> vms,
                                     size_t most) {
  const std::string kernel_release = ReadHostFacts(root).kernel_release;
  std::vector<Finding> findings;
  for (const Vm& vm : vms) {
    if (vm.vcpus.empty()) continue;
    if (findings.size() == most) break;
    VmStatistics statistics(root, vm, kernel_release, MonotonicNow_ns);
    const std::vector<SourceStatistics> read = statistics.Read();
    const std::string sources =
        absl::StrJoin(read, ", ", [](std::string* out, const SourceStatistics& source) {
          absl::StrAppend(out, ToAbsl(source.source));
        });
    Finding finding{.id = "statistics",
                    .tried = "counts of the scheduler and of KVM, for their reasons",
                    .answered = absl::StrCat("VM ", vm.name, " (PID ", vm.pid,
                                             "): ", read.empty() ? "none can be read" : sources)};
    if (!statistics.kvm_refused().empty()) {
      finding.state = State::kNote;
      absl::StrAppend(&finding.answered, "; none of KVM's: ", statistics.kvm_refused());
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace vcpulse::kvm::doctor
