#include <sys/types.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/discovery/discovery.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/discovery/vmms.h"
#include "kvm/proc_tree.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {
namespace {

// The vCPUs as threads of process `pid`, or nothing where it lacks one of the TIDs.
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

// The process that gave this reply: who listens on the socket, else the VMM that has threads of
// these TIDs and contradicts neither name nor UUID. Errors name `address`: NotFound (none is
// visible here), InvalidArgument (several could be it).
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

// How long a rescan may wait for QMP.
constexpr absl::Duration kQmpTimeout = absl::Milliseconds(500);

const Thread* FindThread(const std::vector<Thread>& threads, pid_t tid) {
  const auto thread = std::ranges::find(threads, tid, &Thread::tid);
  return thread != threads.end() ? &*thread : nullptr;
}

// The vCPUs whose very threads still live.
std::vector<Vcpu> Alive(const std::vector<Vcpu>& vcpus, const std::vector<Thread>& threads) {
  std::vector<Vcpu> alive;
  for (const Vcpu& vcpu : vcpus) {
    const Thread* thread = FindThread(threads, vcpu.tid);
    if (thread != nullptr && thread->stat.start_time_ticks == vcpu.start_time_ticks) {
      alive.push_back(vcpu);
    }
  }
  return alive;
}

bool IsKnown(const std::vector<Vcpu>& vcpus, pid_t tid) {
  return std::ranges::find(vcpus, tid, &Vcpu::tid) != vcpus.end();
}

// The threads that are none of these vCPUs.
std::vector<Thread> Others(const std::vector<Vcpu>& vcpus, const std::vector<Thread>& threads) {
  std::set<pid_t> known;
  for (const Vcpu& vcpu : vcpus) known.insert(vcpu.tid);
  std::vector<Thread> others;
  for (const Thread& thread : threads) {
    if (!known.contains(thread.tid)) others.push_back(thread);
  }
  return others;
}

// Whether one of the other threads shows itself as a vCPU, by the route that found the known ones.
bool NewVcpuShows(const ProcTree& tree, const Vm& vm, const std::vector<Thread>& others) {
  for (const Thread& thread : others) {
    const auto name = ParseVcpuThreadName(thread.name);
    if (name && name->accelerator != Accelerator::kTcg) return true;
  }
  const FoundBy route = vm.vcpus.front().found_by;
  if (route == FoundBy::kGuestTime) {
    return std::ranges::any_of(
        others, [](const Thread& thread) { return thread.stat.guest_time_ticks > 0; });
  }
  if (route == FoundBy::kCgroup) {
    return std::ranges::any_of(others, [&](const Thread& thread) {
      return tree.Cgroup(vm.pid, thread.tid).vcpu.has_value();
    });
  }
  // debugfs is read only where there is a thread it could name: in QEMU a few always are.
  if (route != FoundBy::kDebugfs || others.empty()) return false;
  const std::vector<DebugfsVcpu> listed = tree.DebugfsVcpus(vm.pid);
  return std::ranges::any_of(listed, [&others](const DebugfsVcpu& vcpu) {
    return FindThread(others, vcpu.tid) != nullptr;
  });
}

// Whether QMP has to be asked again: its vCPUs bear no names, a thread without a name of its own
// came after them, and there are more kvm-vcpu descriptors than there were, or a parked one and a
// thread that has come since QMP was last asked. QEMU's worker threads alone lead there only while
// a descriptor is parked.
bool QmpMayKnowMore(const ProcTree& tree, const Vm& vm, const std::vector<Thread>& others) {
  if (vm.qmp_address.empty()) return false;
  uint64_t newest = 0;
  for (const Vcpu& vcpu : vm.vcpus) newest = std::max(newest, vcpu.start_time_ticks);
  const std::string process_name = tree.ProcessName(vm.pid);
  const auto came_since = [&](uint64_t ticks) {
    return std::ranges::any_of(others, [&](const Thread& thread) {
      return thread.tid != vm.pid && thread.name == process_name &&
             thread.stat.start_time_ticks >= ticks;
    });
  };
  if (!came_since(newest)) return false;
  if (tree.Descriptors(vm.pid).vcpus > vm.vcpu_descriptors) return true;
  // A vCPU that is plugged again takes the descriptor that was parked for it.
  const bool parked = vm.vcpu_descriptors > static_cast<int>(vm.vcpus.size());
  return parked && came_since(vm.qmp_asked_ticks + 1);
}

uint64_t NewestThread(const std::vector<Thread>& threads) {
  uint64_t newest = 0;
  for (const Thread& thread : threads) newest = std::max(newest, thread.stat.start_time_ticks);
  return newest;
}

// Those that QMP shows, or nothing where it does not answer: the known ones go on without it.
std::vector<Vcpu> AskAgain(const ProcTree& tree, const Vm& vm) {
  const absl::StatusOr<QmpReply> reply = QueryQmp(vm.qmp_address, kQmpTimeout);
  if (!reply.ok()) return {};
  return MapQmpCpus(tree, vm.pid, reply->answers.cpus).value_or(std::vector<Vcpu>());
}

// `alive` and those of `found` that are new. Each known thread keeps its index; a new one whose
// index is taken gets the next free one.
std::vector<Vcpu> Merge(std::vector<Vcpu> alive, std::vector<Vcpu> found) {
  std::ranges::sort(found, {}, &Vcpu::index);
  std::set<int> taken;
  for (const Vcpu& vcpu : alive) taken.insert(vcpu.index);
  for (Vcpu& vcpu : found) {
    if (IsKnown(alive, vcpu.tid)) continue;
    if (taken.contains(vcpu.index)) vcpu.index = *taken.rbegin() + 1;
    taken.insert(vcpu.index);
    alive.push_back(vcpu);
  }
  return alive;
}

// The whole search again, for a VM of which no vCPU is known (yet).
Vm Afresh(const ProcTree& tree, const Vm& vm) {
  std::optional<Vm> fresh = IdentifyVm(tree, vm.pid);
  if (!fresh) return vm;
  fresh->name = vm.name;
  fresh->uuid = vm.uuid;
  fresh->qmp_address = vm.qmp_address;
  FillVcpus(tree, *fresh);
  return *std::move(fresh);
}

// Without descriptors, for example: that says nothing of the VM.
absl::Status CannotLook(const Vm& vm, int error) {
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat("cannot see whether ", Describe(vm), " has changed"));
  // What says that a VM is gone is NotFound alone, which no errno but those of the end is.
  return absl::IsNotFound(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

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

absl::StatusOr<Vm> Discovery::Rescan(const Vm& vm) const {
  const ProcTree tree(root_);
  int error = 0;
  const auto stat = tree.ProcessStat(vm.pid, &error);
  if (error != 0) return CannotLook(vm, error);
  if (!stat || stat->Exited() || stat->start_time_ticks != vm.start_time_ticks) {
    return absl::NotFoundError(absl::StrCat(Describe(vm), " has ended"));
  }
  if (vm.vcpus.empty()) return Afresh(tree, vm);

  const std::vector<Thread> threads = tree.Threads(vm.pid, &error);
  if (error != 0) return CannotLook(vm, error);
  std::vector<Vcpu> alive = Alive(vm.vcpus, threads);
  const bool given = vm.vcpus.front().found_by == FoundBy::kGiven;
  if (given && alive.empty()) {
    return absl::NotFoundError(
        absl::StrCat("the given vCPU threads of ", Describe(vm), " have ended"));
  }
  // A vCPU thread is there a moment before its descriptor: the proof may have come since.
  const bool unproven = vm.vcpus.front().proof != Proof::kFd;
  bool changed = alive.size() != vm.vcpus.size() || (unproven && tree.HoldsVm(vm.pid) == true);
  std::vector<Vcpu> more;
  Vm now = vm;
  if (!given) {
    const std::vector<Thread> others = Others(alive, threads);
    if (NewVcpuShows(tree, vm, others)) {
      more = FindVcpuThreads(ReadVmView(tree, vm.pid));
    } else if (QmpMayKnowMore(tree, vm, others)) {
      more = AskAgain(tree, vm);
      now.qmp_asked_ticks = NewestThread(threads);
    }
    std::erase_if(more, [&alive](const Vcpu& vcpu) { return IsKnown(alive, vcpu.tid); });
    changed = changed || !more.empty();
  }
  if (!changed) return now;

  SetVcpus(tree, ReadVmView(tree, vm.pid), Merge(std::move(alive), std::move(more)), now);
  return now;
}

}  // namespace vcpulse::kvm
