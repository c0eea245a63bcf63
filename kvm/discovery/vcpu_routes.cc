#include "kvm/discovery/vcpu_routes.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/discovery/vmms.h"

namespace vcpulse::kvm {
namespace {

const Thread* FindThread(const VmView& view, pid_t tid) {
  const auto thread = std::ranges::lower_bound(view.threads, tid, {}, &Thread::tid);
  return thread != view.threads.end() && thread->tid == tid ? &*thread : nullptr;
}

// `index_of(vcpu)` of all these; nothing where one has none or two have the same.
template <typename IndexOf>
std::optional<std::vector<int>> Indexes(const std::vector<Vcpu>& vcpus, IndexOf index_of) {
  std::vector<int> indexes;
  for (const Vcpu& vcpu : vcpus) {
    const std::optional<int> index = index_of(vcpu);
    if (!index || std::ranges::find(indexes, *index) != indexes.end()) return std::nullopt;
    indexes.push_back(*index);
  }
  return indexes;
}

std::optional<int> IndexByName(const Vcpu& vcpu, const VmView& view) {
  const Thread* thread = FindThread(view, vcpu.tid);
  const auto name = thread != nullptr ? ParseVcpuThreadName(thread->name) : std::nullopt;
  return name ? std::optional(name->index) : std::nullopt;
}

std::optional<int> IndexByCgroup(const Vcpu& vcpu, const VmView& view) {
  const auto found = view.cgroup_vcpus.find(vcpu.tid);
  return found != view.cgroup_vcpus.end() ? std::optional(found->second) : std::nullopt;
}

// debugfs keeps the TID of a vCPU whose thread is gone, and shows 0 before its first run.
std::vector<Vcpu> FromDebugfs(const VmView& view) {
  std::vector<Vcpu> vcpus;
  for (size_t rank = 0; rank < view.debugfs.size(); ++rank) {
    const pid_t tid = view.debugfs[rank].tid;
    const bool listed = std::ranges::find(vcpus, tid, &Vcpu::tid) != vcpus.end();
    if (listed || FindThread(view, tid) == nullptr) continue;
    Vcpu vcpu;
    vcpu.index = static_cast<int>(rank);
    vcpu.tid = tid;
    vcpu.found_by = FoundBy::kDebugfs;
    vcpus.push_back(vcpu);
  }
  // Ranks are off where a slot between others was never plugged; names are not. They are never
  // mixed: they could collide.
  if (const auto indexes = KnownIndexes(vcpus, view)) {
    for (size_t i = 0; i < vcpus.size(); ++i) vcpus[i].index = (*indexes)[i];
  }
  return vcpus;
}

// Callers have ruled TCG out.
std::vector<Vcpu> FromNames(const VmView& view) {
  std::vector<Vcpu> vcpus;
  for (const Thread& thread : view.threads) {
    const auto name = ParseVcpuThreadName(thread.name);
    if (!name) continue;
    Vcpu vcpu;
    vcpu.index = name->index;
    vcpu.tid = thread.tid;
    vcpu.found_by = FoundBy::kThreadName;
    vcpus.push_back(vcpu);
  }
  return vcpus;
}

std::vector<Vcpu> FromCgroups(const VmView& view) {
  std::vector<Vcpu> vcpus;
  for (const auto& [tid, index] : view.cgroup_vcpus) {
    if (FindThread(view, tid) == nullptr) continue;
    Vcpu vcpu;
    vcpu.index = index;
    vcpu.tid = tid;
    vcpu.found_by = FoundBy::kCgroup;
    vcpus.push_back(vcpu);
  }
  return vcpus;
}

std::vector<Vcpu> FromGuestTime(const VmView& view) {
  std::vector<const Thread*> guests;
  for (const Thread& thread : view.threads) {
    if (thread.stat.guest_time_ticks > 0) guests.push_back(&thread);
  }
  // VMMs start their vCPU threads in order.
  std::ranges::sort(guests, {}, [](const Thread* thread) {
    return std::tuple(thread->stat.start_time_ticks, thread->tid);
  });
  std::vector<Vcpu> vcpus;
  for (const Thread* thread : guests) {
    Vcpu vcpu;
    vcpu.index = static_cast<int>(vcpus.size());
    vcpu.tid = thread->tid;
    vcpu.found_by = FoundBy::kGuestTime;
    vcpus.push_back(vcpu);
  }
  return vcpus;
}

// Adds those of `more` that have a thread and an index of their own.
void AddMissing(std::vector<Vcpu>& vcpus, const std::vector<Vcpu>& more) {
  for (const Vcpu& candidate : more) {
    const bool known = std::ranges::any_of(vcpus, [&candidate](const Vcpu& vcpu) {
      return vcpu.tid == candidate.tid || vcpu.index == candidate.index;
    });
    if (!known) vcpus.push_back(candidate);
  }
}

Proof ProofOf(const Vcpu& vcpu, const VmView& view) {
  if (view.descriptors.vcpus > 0) return Proof::kFd;
  if (vcpu.found_by == FoundBy::kQmp) return Proof::kQmp;
  if (std::ranges::find(view.debugfs, vcpu.tid, &DebugfsVcpu::tid) != view.debugfs.end()) {
    return Proof::kDebugfs;
  }
  const auto name = ParseVcpuThreadName(FindThread(view, vcpu.tid)->name);
  return name && name->accelerator != Accelerator::kTcg ? Proof::kName : Proof::kNone;
}

// The descriptors tell KVM ids but not whose they are. Where the VM has exactly the vCPUs 0..n-1
// and as many descriptors, no slot is empty or parked, and both run in the same order.
bool DescriptorsInOrder(const std::vector<Vcpu>& vcpus, const KvmDescriptors& descriptors) {
  if (descriptors.vcpu_ids.size() != vcpus.size()) return false;
  for (size_t i = 0; i < vcpus.size(); ++i) {
    if (vcpus[i].index != static_cast<int>(i) || vcpus[i].found_by == FoundBy::kGiven) return false;
  }
  return true;
}

}  // namespace

VmView ReadVmView(const ProcTree& tree, pid_t pid) {
  VmView view{tree.Descriptors(pid), tree.DebugfsVcpus(pid), tree.Threads(pid), {}};
  if (tree.Cgroup(pid).machine.empty()) return view;
  for (const Thread& thread : view.threads) {
    const auto vcpu = tree.Cgroup(pid, thread.tid).vcpu;
    if (vcpu) view.cgroup_vcpus.emplace(thread.tid, *vcpu);
  }
  return view;
}

std::optional<std::vector<int>> KnownIndexes(const std::vector<Vcpu>& vcpus, const VmView& view) {
  auto indexes = Indexes(vcpus, [&view](const Vcpu& vcpu) { return IndexByName(vcpu, view); });
  if (indexes) return indexes;
  return Indexes(vcpus, [&view](const Vcpu& vcpu) { return IndexByCgroup(vcpu, view); });
}

std::vector<Vcpu> FindVcpuThreads(const VmView& view) {
  std::vector<Vcpu> vcpus = FromDebugfs(view);
  AddMissing(vcpus, FromNames(view));
  AddMissing(vcpus, FromCgroups(view));
  return vcpus.empty() ? FromGuestTime(view) : vcpus;
}

std::vector<Vcpu> CompleteVcpus(std::vector<Vcpu> vcpus, const VmView& view) {
  std::erase_if(vcpus, [&view](const Vcpu& vcpu) { return FindThread(view, vcpu.tid) == nullptr; });
  std::ranges::sort(vcpus, {}, &Vcpu::index);
  const bool in_order = DescriptorsInOrder(vcpus, view.descriptors);
  for (size_t i = 0; i < vcpus.size(); ++i) {
    Vcpu& vcpu = vcpus[i];
    vcpu.start_time_ticks = FindThread(view, vcpu.tid)->stat.start_time_ticks;
    vcpu.proof = ProofOf(vcpu, view);
    const auto entry = std::ranges::find(view.debugfs, vcpu.tid, &DebugfsVcpu::tid);
    if (entry != view.debugfs.end()) {
      vcpu.kvm_id = entry->vcpu_id;
    } else if (in_order) {
      vcpu.kvm_id = view.descriptors.vcpu_ids[i];
    }
  }
  return vcpus;
}

std::vector<std::string> DiscoveryNotes(const std::vector<Vcpu>& vcpus, const VmView& view,
                                        const std::vector<std::string>& qmp_addresses) {
  std::vector<std::string> notes;
  const KvmDescriptors& descriptors = view.descriptors;
  if (!descriptors.readable) {
    notes.emplace_back(
        "unproven: its descriptors may not be read, so KVM is not proven by them: run as root, or "
        "with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
  }
  if (descriptors.vms > 1) {
    notes.push_back(
        absl::StrCat("the process holds ", descriptors.vms, " KVM VMs, which are shown as one"));
  }
  if (vcpus.empty()) {
    std::string note =
        "cannot identify its vCPU threads: start QEMU with -name NAME,debug-threads=on, or give "
        "them with --qmp ADDR or --tid TID,..., or (x86, as root) mount -t debugfs none "
        "/sys/kernel/debug";
    if (!qmp_addresses.empty()) {
      absl::StrAppend(&note,
                      "; its QMP: ", absl::Utf8SafeCEscape(absl::StrJoin(qmp_addresses, ", ")));
    }
    notes.push_back(std::move(note));
    return notes;
  }
  const auto found = static_cast<int>(vcpus.size());
  const char* threads = found == 1 ? " thread" : " threads";
  if (descriptors.vcpus > found && vcpus.front().found_by != FoundBy::kGiven) {
    notes.push_back(absl::StrCat(descriptors.vcpus, " kvm-vcpu descriptors for ", found, threads,
                                 ": the others were unplugged (QEMU parks their descriptors) or "
                                 "have not run yet"));
  } else if (descriptors.vcpus > 0 && descriptors.vcpus < found) {
    notes.push_back(absl::StrCat("only ", descriptors.vcpus, " kvm-vcpu descriptors for ", found,
                                 threads, ": some of these may be no vCPU"));
  }
  if (vcpus.front().found_by == FoundBy::kGuestTime) {
    notes.emplace_back(
        "found by guest time: numbered by age, and a vCPU that has not run yet is missing");
  }
  return notes;
}

}  // namespace vcpulse::kvm
