#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/discovery/qemu_command_line.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/doctor/checks.h"
#include "kvm/events/pmu.h"
#include "kvm/proc_files.h"
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

// The kernel's list of CPUs in this file of /sys/devices/system/cpu, as text and parsed; neither
// where it has none ("(null)" for nohz_full).
struct CpuSet {
  std::string text;
  std::vector<int> cpus;  // ascending
};

CpuSet CpuSetOf(const std::string& text) {
  const std::string trimmed(absl::StripAsciiWhitespace(text));
  auto cpus = ParseCpuList(trimmed);
  return cpus ? CpuSet{.text = trimmed, .cpus = *std::move(cpus)} : CpuSet();
}

CpuSet SystemCpuSet(const std::string& root, const char* name) {
  return CpuSetOf(ReadSmallFile(absl::StrCat(root, "/sys/devices/system/cpu/", name)).value_or(""));
}

// Where this thread may run.
CpuSet AllowedCpus(const std::string& root, pid_t pid, pid_t tid) {
  constexpr std::string_view kLabel = "\nCpus_allowed_list:";
  const std::string status =
      ReadSmallFile(absl::StrCat(root, "/proc/", pid, "/task/", tid, "/status")).value_or("");
  const size_t at = status.find(kLabel);
  if (at == std::string::npos) return {};
  const size_t begin = at + kLabel.size();
  return CpuSetOf(status.substr(begin, status.find('\n', begin) - begin));
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
    finding.fix = "start QEMU with -accel kvm";
  } else if (vm.vcpus.empty()) {
    finding.state = State::kFail;
    finding.answered = vm.accelerator == Accelerator::kUnknown
                           ? "there is none yet: it may be starting"
                           : "cannot tell them from its other threads";
    finding.fix = VcpuRemedy(seen);
  } else {
    const bool may_lack =
        seen.unexplained_descriptors > 0 || vm.vcpus.front().found_by == FoundBy::kGuestTime;
    finding.state = may_lack ? State::kUnknown : vm.notes.empty() ? State::kOk : State::kNote;
    finding.answered = absl::StrCat(name, ": ", FoundText(vm), vm.notes.empty() ? "" : "; ",
                                    absl::StrJoin(vm.notes, "; "));
    if (may_lack) {
      absl::StrAppend(&finding.answered, "; cannot tell whether any is missing");
      finding.fix = VcpuRemedy(seen);
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
         .fix = "start QEMU with -name NAME,debug-threads=on"});
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

Finding CheckIsolatedCpus(const std::string& root, std::span<const Vm> vms) {
  Finding finding{.id = "isolated-cpus",
                  .tried =
                      "isolated and nohz_full of /sys/devices/system/cpu, and where vCPU "
                      "threads may run"};
  std::vector<int> quiet;
  std::vector<std::string> sets;
  for (const char* name : {"isolated", "nohz_full"}) {
    const CpuSet set = SystemCpuSet(root, name);
    if (set.cpus.empty()) continue;
    sets.push_back(absl::StrCat(name, " ", set.text));
    quiet.insert(quiet.end(), set.cpus.begin(), set.cpus.end());
  }
  if (sets.empty()) {
    finding.answered = "none";
    return finding;
  }
  std::ranges::sort(quiet);
  quiet.erase(std::unique(quiet.begin(), quiet.end()), quiet.end());
  std::vector<std::string> pinned;
  size_t unknown = 0;
  for (const Vm& vm : vms) {
    for (const Vcpu& vcpu : vm.vcpus) {
      const CpuSet allowed = AllowedCpus(root, vm.pid, vcpu.tid);
      if (allowed.cpus.empty()) {
        ++unknown;
      } else if (std::ranges::includes(quiet, allowed.cpus)) {
        pinned.push_back(
            absl::StrCat("vCPU ", vcpu.index, " of ", Describe(vm), " on CPU ", allowed.text));
      }
    }
  }
  finding.answered = absl::StrJoin(sets, ", ");
  if (!pinned.empty()) {
    constexpr size_t kShown = 8;
    const size_t hidden = pinned.size() - std::min(pinned.size(), kShown);
    pinned.resize(pinned.size() - hidden);
    finding.state = State::kNote;
    absl::StrAppend(
        &finding.answered,
        "; pinned there, and interrupted at each tick while it runs: ", absl::StrJoin(pinned, ", "),
        hidden > 0 ? absl::StrCat(" and ", hidden, " more") : "");
    finding.fix = "a longer `record --interval`, or only other VMs (--vm, --pid)";
  } else if (unknown > 0) {
    finding.state = State::kUnknown;
    absl::StrAppend(&finding.answered, "; cannot read where ", CountOf(unknown, "vCPU"),
                    " may run");
  } else {
    absl::StrAppend(&finding.answered, "; no vCPU that was found is pinned there");
  }
  return finding;
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
    finding.state = State::kFail;
    finding.prevents = true;
    finding.fix = absl::StrCat("raise the hard limit as root, for example with `ulimit -Hn ",
                               wanted * 2, "` or LimitNOFILE= of the service");
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor
