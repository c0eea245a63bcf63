#include "kvm/discovery/discovery.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/closest_name.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/proc_tree.h"

namespace vcpulse::kvm {
namespace {

// The VMs themselves for a message: "'a' (PID 1), 'b' (PID 2)", cut where they are many.
std::string ListOf(const std::vector<Vm>& vms) {
  constexpr size_t kShown = 8;
  std::string list;
  for (size_t i = 0; i < vms.size() && i < kShown; ++i) {
    absl::StrAppend(&list, i > 0 ? ", " : "", "'", vms[i].name, "' (PID ", vms[i].pid, ")");
  }
  if (vms.size() > kShown) absl::StrAppend(&list, " and ", vms.size() - kShown, " more");
  return list;
}

// "PID n (comm)".
std::string DescribeProcess(const ProcTree& tree, pid_t pid) {
  const std::string name = CleanLabel(tree.ProcessName(pid));
  return absl::StrCat("PID ", pid, name.empty() ? "" : " (", name, name.empty() ? "" : ")");
}

std::vector<Vm> IdentifyAll(const ProcTree& tree, const std::vector<pid_t>& pids) {
  std::vector<Vm> vms;
  for (const pid_t pid : pids) {
    auto vm = IdentifyVm(tree, pid);
    if (vm) vms.push_back(*std::move(vm));
  }
  return vms;
}

absl::Status MayNotLook(const ProcTree& tree, pid_t pid) {
  return absl::PermissionDeniedError(
      absl::StrCat(DescribeProcess(tree, pid),
                   ": cannot check whether it is a VMM, since its descriptors cannot be read",
                   geteuid() == 0 ? " even by root (a container, or a hardened kernel)"
                                  : ": run as root, or with CAP_SYS_PTRACE and "
                                    "CAP_DAC_READ_SEARCH"));
}

// A process that is no VMM by its descriptors and program. Where its descriptors may not be read,
// debugfs or its threads' names may still show vCPUs.
absl::StatusOr<Vm> ProbeStranger(const ProcTree& tree, pid_t pid, const TaskStat& stat) {
  if (tree.HoldsVm(pid).has_value() || stat.kernel_thread) {
    return absl::FailedPreconditionError(
        absl::StrCat(DescribeProcess(tree, pid),
                     " is not a VMM: it holds no kvm-vm descriptor; `vcpulse list` shows the VMs"));
  }
  Vm vm;
  vm.pid = pid;
  vm.start_time_ticks = stat.start_time_ticks;
  vm.name = absl::StrCat("pid-", pid);
  FillVcpus(tree, vm);
  if (!vm.vcpus.empty()) return vm;
  return MayNotLook(tree, pid);
}

// Where every kvm-vcpu descriptor has its thread, a given TID that is none of these is no vCPU: its
// guest counters would stand at zero and look HALTED.
absl::Status CheckGiven(const Vm& vm, const std::vector<Vcpu>& given, const VmView& view) {
  const std::vector<Vcpu> found = FindVcpuThreads(view);
  if (!view.descriptors.readable || static_cast<int>(found.size()) < view.descriptors.vcpus) {
    return absl::OkStatus();
  }
  for (const Vcpu& vcpu : given) {
    if (std::ranges::find(found, vcpu.tid, &Vcpu::tid) != found.end()) continue;
    std::string tids;
    for (const Vcpu& other : found) absl::StrAppend(&tids, tids.empty() ? "" : ",", other.tid);
    return absl::FailedPreconditionError(absl::StrCat(
        "TID ", vcpu.tid, " is not a vCPU of ", Describe(vm), ": its vCPU threads are ", tids));
  }
  return absl::OkStatus();
}

}  // namespace

Discovery::Discovery(std::string root) : root_(std::move(root)) {}

std::vector<Vm> Discovery::FindAll() const {
  const ProcTree tree(root_);
  std::vector<Vm> vms = IdentifyAll(tree, tree.Processes());
  for (Vm& vm : vms) FillVcpus(tree, vm);
  return vms;
}

std::vector<Vm> Discovery::FindOthers(std::span<const Vm> known, NonVmmCache& non_vmms,
                                      absl::Duration now) const {
  const ProcTree tree(root_);
  std::map<pid_t, uint64_t> known_starts;
  for (const Vm& vm : known) known_starts.emplace(vm.pid, vm.start_time_ticks);
  std::vector<Vm> vms;
  non_vmms.BeginRound(now);
  for (const pid_t pid : tree.Processes()) {
    if (non_vmms.IsTrusted(pid)) continue;
    const auto process = tree.NamedProcess(pid);
    if (!process) continue;
    const auto start = known_starts.find(pid);
    if (start != known_starts.end() && start->second == process->stat.start_time_ticks) continue;
    if (non_vmms.MayBePassedOver(pid, process->stat, process->name)) continue;
    auto vm = IdentifyVm(tree, pid);
    if (vm) {
      FillVcpus(tree, *vm);
      vms.push_back(*std::move(vm));
    } else {
      non_vmms.Remember(pid, process->stat, process->name, RunsKnownVmm(tree, pid));
    }
  }
  non_vmms.EndRound();
  return vms;
}

absl::StatusOr<Vm> Discovery::FindByPid(pid_t pid) const {
  const ProcTree tree(root_);
  const auto stat = pid > 0 ? tree.ProcessStat(pid) : std::nullopt;
  if (!stat) {
    return absl::NotFoundError(
        absl::StrCat("no process has PID ", pid, "; `vcpulse list` shows the VMs"));
  }
  if (stat->Exited()) {
    return absl::NotFoundError(absl::StrCat(DescribeProcess(tree, pid), " has ended"));
  }
  const pid_t process = tree.ThreadGroup(pid).value_or(pid);
  if (process != pid) {
    return absl::InvalidArgumentError(absl::StrCat(pid, " is a thread of PID ", process,
                                                   ": use --pid ", process, ", or --tid ", pid,
                                                   " for this vCPU alone"));
  }
  auto vm = IdentifyVm(tree, pid);
  if (!vm) return ProbeStranger(tree, pid, *stat);
  FillVcpus(tree, *vm);
  absl::Status status = MayBeMeasured(*vm);
  if (!status.ok()) return status;
  return *std::move(vm);
}

absl::StatusOr<Vm> Discovery::FindByName(const std::string& name) const {
  const ProcTree tree(root_);
  const std::vector<Vm> all = IdentifyAll(tree, tree.Processes());
  const std::string label = CleanLabel(name);
  const std::string uuid = CleanUuid(name);
  std::vector<Vm> matches;
  for (const Vm& vm : all) {
    if (vm.name == label || (!uuid.empty() && vm.uuid == uuid)) matches.push_back(vm);
  }
  if (matches.empty()) {
    std::vector<std::string> names;
    names.reserve(all.size());
    for (const Vm& vm : all) names.push_back(vm.name);
    const std::string meant = DidYouMean(label, names);
    return absl::NotFoundError(absl::StrCat(
        "no VM has the name or UUID '", label, "'",
        all.empty() ? "; no VM runs on this host"
                    : absl::StrCat(meant, meant.empty() ? ";" : "", " running: ", ListOf(all))));
  }
  if (matches.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(matches.size(), " VMs match '", label,
                                                   "': ", ListOf(matches), "; choose with --pid"));
  }
  Vm& vm = matches.front();
  FillVcpus(tree, vm);
  absl::Status status = MayBeMeasured(vm);
  if (!status.ok()) return status;
  return std::move(vm);
}

absl::StatusOr<Vm> Discovery::FindByTids(std::span<const pid_t> tids) const {
  const ProcTree tree(root_);
  if (tids.empty()) return absl::InvalidArgumentError("no TID was given");
  std::optional<pid_t> process;
  std::vector<Vcpu> vcpus;
  for (const pid_t tid : tids) {
    const auto stat = tid > 0 ? tree.ProcessStat(tid) : std::nullopt;
    const auto group = stat && !stat->Exited() ? tree.ThreadGroup(tid) : std::nullopt;
    if (!group) {
      return absl::NotFoundError(
          absl::StrCat("no thread has TID ", tid, "; `vcpulse list` shows the vCPUs' TIDs"));
    }
    if (!process) process = group;
    if (*group != *process) {
      return absl::InvalidArgumentError(absl::StrCat("TID ", tids.front(), " is of PID ", *process,
                                                     " and TID ", tid, " of PID ", *group,
                                                     ": --tid takes the vCPU threads of one VM"));
    }
    if (std::ranges::find(vcpus, tid, &Vcpu::tid) != vcpus.end()) {
      return absl::InvalidArgumentError(absl::StrCat("TID ", tid, " is given twice"));
    }
    Vcpu vcpu;
    vcpu.index = static_cast<int>(vcpus.size());
    vcpu.tid = tid;
    vcpu.found_by = FoundBy::kGiven;
    vcpus.push_back(vcpu);
  }

  const VmView view = ReadVmView(tree, *process);
  if (view.descriptors.readable && view.descriptors.vcpus == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("TID ", tids.front(), " is not a vCPU: ", DescribeProcess(tree, *process),
                     " holds no kvm-vcpu descriptor; it is not a VMM, or one without KVM (TCG)"));
  }
  const std::optional<Vm> known = IdentifyVm(tree, *process);
  if (!known && !view.descriptors.readable && FindVcpuThreads(view).empty()) {
    return MayNotLook(tree, *process);
  }
  Vm vm = known.value_or(Vm{});
  vm.pid = *process;
  if (vm.name.empty()) vm.name = absl::StrCat("pid-", *process);
  const auto stat = tree.ProcessStat(*process);
  if (stat) vm.start_time_ticks = stat->start_time_ticks;
  if (AcceleratorByNames(view) == Accelerator::kTcg) vm.accelerator = Accelerator::kTcg;
  absl::Status status = CheckGiven(vm, vcpus, view);
  if (vm.accelerator == Accelerator::kTcg) status = MayBeMeasured(vm);
  if (!status.ok()) return status;
  if (const auto indexes = KnownIndexes(vcpus, view)) {
    for (size_t i = 0; i < vcpus.size(); ++i) vcpus[i].index = (*indexes)[i];
  }
  const size_t given = vcpus.size();
  SetVcpus(tree, view, std::move(vcpus), vm);
  if (!stat || vm.vcpus.size() != given) {
    return absl::NotFoundError(absl::StrCat("a thread of ", Describe(vm), " ended meanwhile"));
  }
  return vm;
}

std::vector<Vm> Discovery::FindDescendants(pid_t ancestor) const {
  const ProcTree tree(root_);
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : tree.Processes()) {
    const auto stat = tree.ProcessStat(pid);
    if (stat) children.emplace(stat->parent, pid);
  }
  // Only ever goes down and removes what it took, so a list read while processes were reparented
  // cannot make it go in circles.
  std::vector<pid_t> family = {ancestor};
  for (size_t i = 0; i < family.size(); ++i) {
    const auto [begin, end] = children.equal_range(family[i]);
    for (auto child = begin; child != end; ++child) family.push_back(child->second);
    children.erase(begin, end);
  }
  std::ranges::sort(family);
  family.erase(std::unique(family.begin(), family.end()), family.end());

  std::vector<Vm> vms = IdentifyAll(tree, family);
  for (Vm& vm : vms) FillVcpus(tree, vm);
  return vms;
}

}  // namespace vcpulse::kvm
