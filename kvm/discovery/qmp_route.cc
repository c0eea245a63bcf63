#include "kvm/discovery/qmp_route.h"

#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/discovery/discovery.h"
#include "kvm/discovery/vm_probe.h"

namespace vcpulse::kvm {
namespace {

// How well a process fits a reply, worst first.
enum class Fit { kNone, kThreads, kThreadsAndName };

// kNone: no VMM with these threads, or one of another name or UUID. A command line need not show
// the name (-readconfig), and containers commonly use the same TIDs.
Fit FitOf(const ProcTree& tree, pid_t pid, const QmpAnswers& answers) {
  const auto vm = IdentifyVm(tree, pid);
  if (!vm || !MapQmpCpus(tree, pid, answers.cpus)) return Fit::kNone;
  const std::string uuid = CleanUuid(answers.uuid.value_or(""));
  if (!uuid.empty() && !vm->uuid.empty() && uuid != vm->uuid) return Fit::kNone;
  const std::string unnamed = absl::StrCat("pid-", pid);
  const std::string name = CleanLabel(answers.name.value_or(""));
  if (vm->name == (name.empty() ? unnamed : name)) return Fit::kThreadsAndName;
  return name.empty() || vm->name == unnamed ? Fit::kThreads : Fit::kNone;
}

}  // namespace

std::optional<std::vector<Vcpu>> MapQmpCpus(const ProcTree& tree, pid_t pid,
                                            const std::vector<QmpCpu>& cpus) {
  std::map<pid_t, pid_t> host_tids;  // by the TID in QEMU's namespace
  for (const pid_t tid : tree.ThreadIds(pid)) {
    const auto inner = tree.InnermostTid(pid, tid);
    if (inner) host_tids.emplace(*inner, tid);
  }
  std::vector<Vcpu> vcpus;
  for (const QmpCpu& cpu : cpus) {
    const auto host_tid = host_tids.find(cpu.tid);
    if (host_tid == host_tids.end()) return std::nullopt;
    Vcpu vcpu;
    vcpu.index = cpu.index;
    vcpu.tid = host_tid->second;
    vcpu.found_by = FoundBy::kQmp;
    vcpus.push_back(vcpu);
  }
  return vcpus;
}

absl::StatusOr<pid_t> FindQmpProcess(const ProcTree& tree, const std::string& address,
                                     const QmpReply& reply) {
  const QmpAnswers& answers = reply.answers;
  // A socket that somebody else opened for QEMU (systemd, a manager) names that one as its peer.
  if (reply.server_pid && FitOf(tree, *reply.server_pid, answers) != Fit::kNone) {
    return *reply.server_pid;
  }
  std::vector<pid_t> candidates;
  Fit best = Fit::kThreads;
  for (const pid_t pid : tree.Processes()) {
    const Fit fit = FitOf(tree, pid, answers);
    if (fit < best || fit == Fit::kNone) continue;
    if (fit > best) candidates.clear();
    best = fit;
    candidates.push_back(pid);
  }
  if (candidates.size() == 1) return candidates.front();
  const std::string at = absl::StrCat("QMP at ", absl::Utf8SafeCEscape(address), ": ");
  if (candidates.empty()) {
    return absl::NotFoundError(absl::StrCat(
        at, "no VMM on this host has its vCPU thread ", answers.cpus.front().tid,
        ": QEMU runs on another host or in a PID namespace that is not visible here; run vcpulse "
        "where it runs"));
  }
  return absl::InvalidArgumentError(absl::StrCat(at, "several processes could be its QEMU (PIDs ",
                                                 absl::StrJoin(candidates, ", "),
                                                 "): choose with --pid"));
}

absl::StatusOr<Vm> Discovery::FindByQmp(const std::string& address, absl::Duration timeout) const {
  const absl::StatusOr<QmpReply> reply = QueryQmp(address, timeout);
  if (!reply.ok()) return reply.status();
  const QmpAnswers& answers = reply->answers;
  const ProcTree tree(root_);

  // Without KVM there is nothing to be found on the host either.
  if (answers.kvm_enabled == false) {
    return absl::FailedPreconditionError(absl::StrCat(
        "QMP at ", absl::Utf8SafeCEscape(address), ": VM '", CleanLabel(answers.name.value_or("")),
        "' runs TCG, not KVM: its counters would read zero; start QEMU with -accel kvm"));
  }
  const absl::StatusOr<pid_t> pid = FindQmpProcess(tree, address, *reply);
  if (!pid.ok()) return pid.status();
  std::optional<Vm> vm = IdentifyVm(tree, *pid);
  const auto vcpus = MapQmpCpus(tree, *pid, answers.cpus);
  if (!vm || !vcpus) {
    return absl::NotFoundError(absl::StrCat("QMP at ", absl::Utf8SafeCEscape(address),
                                            ": its QEMU, PID ", *pid, ", ended meanwhile"));
  }
  if (answers.name && !answers.name->empty()) vm->name = CleanLabel(*answers.name);
  if (answers.uuid && !CleanUuid(*answers.uuid).empty()) vm->uuid = CleanUuid(*answers.uuid);
  vm->qmp_address = address;
  if (answers.kvm_enabled == true && vm->accelerator == Accelerator::kUnknown) {
    vm->accelerator = Accelerator::kKvm;
  }
  SetVcpus(tree, ReadVmView(tree, *pid), *vcpus, *vm);
  absl::Status status = MayBeMeasured(*vm);
  if (!status.ok()) return status;
  return *std::move(vm);
}

}  // namespace vcpulse::kvm
