#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/discovery/qemu_command_line.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/doctor/checks.h"
#include "kvm/proc_tree.h"

namespace vcpulse::kvm::doctor {
namespace {

using State = Finding::State;

// What a recording opens beside the counters of its vCPUs.
constexpr uint64_t kOtherDescriptors = 64;

// How a unix socket of this process is reached from here: a path is one of its own mount namespace
// (a container's, or the host's below `root`), a relative one begins in its folder. Where its root
// may not be followed (another user's process), an absolute path is taken as it is.
std::string FromHere(const std::string& root, pid_t pid, const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  if (!address.starts_with(kUnix)) return address;
  const std::string path = address.substr(kUnix.size());
  const std::string process = absl::StrCat(root, root.ends_with('/') ? "" : "/", "proc/", pid);
  if (!path.starts_with('/')) return absl::StrCat("unix:", process, "/cwd/", path);
  std::error_code error;
  if (!std::filesystem::is_directory(process + "/root", error)) return address;
  return absl::StrCat("unix:", process, "/root", path);
}

// How many vCPUs may have no thread in `vm`: kvm-vcpu descriptors beyond its threads, but for those
// that are known to be unplugged. QEMU names a vCPU's thread before it makes the descriptor, so
// with names there is no other reason; debugfs keeps the TID of a thread that is gone, and has 0
// for one that has not run.
int UnexplainedDescriptors(const ProcTree& tree, const Vm& vm, bool names_threads) {
  const int beyond = vm.vcpu_descriptors - static_cast<int>(vm.vcpus.size());
  if (beyond <= 0 || names_threads) return 0;
  const std::vector<pid_t> tids = tree.ThreadIds(vm.pid);
  const std::vector<DebugfsVcpu> vcpus = tree.DebugfsVcpus(vm.pid);
  const auto unplugged = std::ranges::count_if(vcpus, [&tids](const DebugfsVcpu& vcpu) {
    return vcpu.tid > 0 && !std::ranges::binary_search(tids, vcpu.tid);
  });
  return std::max(0, beyond - static_cast<int>(unplugged));
}

std::string CountOf(size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// "2 vCPUs, found by thread-name".
std::string FoundText(const Vm& vm) {
  std::map<std::string_view, int> routes;
  for (const Vcpu& vcpu : vm.vcpus) ++routes[ToString(vcpu.found_by)];
  const std::string names = absl::StrJoin(routes, " and ", [](std::string* out, const auto& route) {
    absl::StrAppend(out, ToAbsl(route.first));
  });
  return absl::StrCat(CountOf(vm.vcpus.size(), "vCPU"), ", found by ", names);
}

bool IsTcg(const Vm& vm) { return vm.accelerator == Accelerator::kTcg; }

// What a person has to do where no route tells the vCPU threads.
std::string VcpuRemedy(const SeenVm& seen) {
  if (!seen.qmp_addresses.empty()) {
    return absl::StrCat("`vcpulse record --qmp ", CleanLabel(seen.qmp_addresses.front()),
                        "` while nobody else holds it, or start QEMU with -name "
                        "NAME,debug-threads=on");
  }
  return "start QEMU with -name NAME,debug-threads=on, or give them with --tid TID,..., or (x86, "
         "as "
         "root) `mount -t debugfs none /sys/kernel/debug`";
}

Finding CheckVm(const SeenVm& seen) {
  const Vm& vm = seen.vm;
  const std::string name = Describe(vm);
  Finding finding{
      .id = "vcpus", .tried = absl::StrCat("the vCPU threads of ", name), .of_vm = true};
  if (IsTcg(vm)) {
    finding.state = State::kNote;
    finding.answered = absl::StrCat(name, " runs TCG, not KVM: recordings leave it out");
    finding.remedy = "start QEMU with -accel kvm";
  } else if (vm.vcpus.empty()) {
    finding.state = State::kObstacle;
    finding.answered = vm.accelerator == Accelerator::kUnknown
                           ? "there is none yet: it may be starting"
                           : "they cannot be told from its other threads";
    finding.remedy = VcpuRemedy(seen);
  } else {
    const bool may_lack =
        seen.unexplained_descriptors > 0 || vm.vcpus.front().found_by == FoundBy::kGuestTime;
    finding.state = may_lack ? State::kUnknown : vm.notes.empty() ? State::kOk : State::kNote;
    finding.answered = absl::StrCat(name, ": ", FoundText(vm), vm.notes.empty() ? "" : "; ",
                                    absl::StrJoin(vm.notes, "; "));
    if (may_lack) {
      absl::StrAppend(&finding.answered, "; whether any is missing cannot be told");
      finding.remedy = VcpuRemedy(seen);
    }
  }
  return finding;
}

}  // namespace

std::vector<SeenVm> LookAt(const std::string& root, std::span<const Vm> vms) {
  const ProcTree tree(root);
  std::vector<SeenVm> seen;
  for (const Vm& vm : vms) {
    const std::vector<std::string> arguments = tree.CommandLine(vm.pid);
    const QemuCommandLine line = ParseQemuCommandLine(arguments);
    SeenVm one{.vm = vm, .debug_threads = line.debug_threads};
    one.qemu = !arguments.empty() && IsQemuProgram(arguments.front());
    one.unexplained_descriptors = UnexplainedDescriptors(tree, vm, one.qemu && one.debug_threads);
    for (const std::string& address : line.qmp_addresses) {
      one.qmp_addresses.push_back(FromHere(root, vm.pid, address));
    }
    seen.push_back(std::move(one));
  }
  return seen;
}

std::vector<Finding> CheckVms(std::span<const SeenVm> vms) {
  if (vms.empty()) {
    return {{.id = "guests",
             .state = State::kNote,
             .tried = "processes with a kvm-vm descriptor, and QEMUs",
             .answered = "no VM runs now"}};
  }
  std::vector<Finding> findings;
  for (const SeenVm& seen : vms) findings.push_back(CheckVm(seen));
  return findings;
}

std::vector<Finding> CheckThreadNames(std::span<const SeenVm> vms) {
  std::vector<Finding> findings;
  for (const SeenVm& seen : vms) {
    if (!seen.qemu || seen.debug_threads || IsTcg(seen.vm)) continue;
    if (!seen.vm.vcpus.empty() && seen.vm.vcpus.front().found_by == FoundBy::kThreadName) continue;
    findings.push_back(
        {.id = "thread-names",
         .state = State::kNote,
         .tried = absl::StrCat("the names of the threads of ", Describe(seen.vm)),
         .answered = absl::StrCat(Describe(seen.vm), ": QEMU does not name its vCPU threads"),
         .remedy = "start QEMU with -name NAME,debug-threads=on"});
  }
  return findings;
}

std::vector<Finding> CheckQmp(std::span<const SeenVm> vms, const QmpAsker& ask, size_t most) {
  std::vector<Finding> findings;
  for (const SeenVm& seen : vms) {
    for (const std::string& address : seen.qmp_addresses) {
      Finding finding{
          .id = "qmp",
          .tried = absl::StrCat("QMP of ", Describe(seen.vm), " at ", CleanLabel(address))};
      if (findings.size() >= most) {
        // Its vCPUs are judged by "vcpus".
        finding.state = State::kNote;
        finding.answered = absl::StrCat(Describe(seen.vm), ": not tried, as there are many");
      } else if (const absl::Status status = ask(address); status.ok()) {
        finding.answered = absl::StrCat(Describe(seen.vm), ": it answers");
      } else {
        finding.state = State::kNote;
        finding.answered = absl::StrCat(Describe(seen.vm), ": ", status.message());
      }
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

Finding CheckDescriptors(const OwnRights& own, std::span<const Vm> vms, int per_vcpu) {
  Finding finding{.id = "descriptors", .tried = "the hard limit of open files (RLIMIT_NOFILE)"};
  size_t vcpus = 0;
  for (const Vm& vm : vms) vcpus += vm.vcpus.size();
  const uint64_t wanted = vcpus * static_cast<uint64_t>(per_vcpu) + kOtherDescriptors;
  if (!own.open_files) {
    finding.state = State::kUnknown;
    finding.answered = "unlimited or unknown";
    return finding;
  }
  finding.answered = absl::StrCat("the hard limit is ", *own.open_files, "; ",
                                  CountOf(vcpus, "vCPU"), " now would take up to ", wanted);
  if (wanted > *own.open_files) {
    finding.state = State::kObstacle;
    finding.prevents = true;
    finding.remedy = absl::StrCat("raise the hard limit as root, for example with `ulimit -Hn ",
                                  wanted * 2, "` or LimitNOFILE= of the service");
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor
