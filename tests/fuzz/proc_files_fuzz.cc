// The parsers of /proc texts: what they accept must survive being written again.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "kvm/discovery/libvirt_cgroup.h"
#include "kvm/discovery/pause.h"
#include "kvm/discovery/vmms.h"
#include "kvm/host.h"
#include "kvm/own_rights.h"
#include "kvm/proc_files.h"

namespace {

using namespace vcpulse::kvm;

void Check(bool condition) {
  if (!condition) std::abort();
}

void CheckStat(std::string_view text) {
  const auto stat = ParseTaskStat(text);
  const auto state = ParseTaskState(text);
  if (!stat) return;
  std::string again = std::string("1 (a) ") + stat->state + " " + std::to_string(stat->parent);
  for (int field = 5; field <= 43; ++field) {
    again += ' ';
    again += std::to_string(field == 9    ? (stat->kernel_thread ? 0x200000 : 0)
                            : field == 22 ? stat->start_time_ticks
                            : field == 39 ? static_cast<uint64_t>(stat->cpu)
                            : field == 43 ? stat->guest_time_ticks
                                          : 0);
  }
  Check(ParseTaskStat(again) == stat);
  if (state) Check(*state == stat->state);
  // A name without a later ')' never moves the fields.
  Check(ParseTaskStat("2 (x) 1 2 (" + again) == stat);
}

void CheckSchedStat(std::string_view text) {
  const auto stat = ParseSchedStat(text);
  if (!stat) return;
  Check(ParseSchedStat(std::to_string(stat->run_ns) + " " + std::to_string(stat->run_delay_ns) +
                       " " + std::to_string(stat->timeslices) + "\n") == stat);
}

void CheckTaskSched(std::string_view text) {
  const auto sched = ParseTaskSched(text);
  if (!sched) return;
  const std::string below_ms = std::to_string(1'000'000 + sched->run_ns % 1'000'000).substr(1);
  Check(ParseTaskSched("se.sum_exec_runtime : " + std::to_string(sched->run_ns / 1'000'000) + "." +
                       below_ms + "\nse.nr_migrations : " + std::to_string(sched->migrations) +
                       "\nnr_voluntary_switches : " + std::to_string(sched->voluntary_switches) +
                       "\nnr_involuntary_switches : " +
                       std::to_string(sched->involuntary_switches) + "\n") == sched);
}

void CheckLink(std::string_view text) {
  const auto link = ParseKvmLink(text);
  if (!link) return;
  std::string again = link->kind == KvmLink::Kind::kVm     ? "kvm-vm"
                      : link->kind == KvmLink::Kind::kVcpu ? "kvm-vcpu"
                                                           : "kvm-vcpu-stats";
  if (link->vcpu_id) {
    Check(*link->vcpu_id >= 0 && link->kind != KvmLink::Kind::kVm);
    again += ":" + std::to_string(*link->vcpu_id);
  }
  Check(ParseKvmLink("anon_inode:" + again) == link);
  Check(ParseKvmLink("anon_inode:[" + again + "]") == link);
}

void CheckNames(std::string_view text) {
  if (const auto name = ParseVcpuThreadName(text)) {
    Check(name->index >= 0);
    const char* suffix = name->accelerator == Accelerator::kKvm   ? "/KVM"
                         : name->accelerator == Accelerator::kTcg ? "/TCG"
                                                                  : nullptr;
    const std::string number = std::to_string(name->index);
    Check(ParseVcpuThreadName(suffix ? "CPU " + number + suffix : "vcpu" + number) == name);
  }
  if (const auto dir = ParseDebugfsVmDir(text)) {
    Check(dir->pid > 0 && dir->vm_fd >= 0);
    Check(ParseDebugfsVmDir(std::to_string(dir->pid) + "-" + std::to_string(dir->vm_fd)) == dir);
  }
}

void CheckCmdline(std::string_view text) {
  std::string again;
  for (const std::string& argument : ParseCmdline(text)) again += argument + '\0';
  // The last NUL alone may have been missing.
  Check(again == text || again == std::string(text) + '\0');
}

void CheckStatus(std::string_view text) {
  const auto pids = ParseNsPids(text);
  std::string again = "NSpid:";
  for (const pid_t pid : pids) {
    Check(pid > 0);
    again += "\t" + std::to_string(pid);
  }
  Check(ParseNsPids(again) == pids);
  const auto group = ParseStatusPid(text, "Tgid");
  Check(!group || *group > 0);
}

void CheckOwnRights(std::string_view text) {
  const OwnRights rights = ParseOwnRights(text);
  Check(!rights.open_files);
  Check(rights.effective || !rights.MayMonitor());
  std::ostringstream again;
  if (rights.effective) again << "CapEff:\t" << std::hex << *rights.effective << std::dec << '\n';
  if (rights.seccomp) again << "Seccomp:\t" << *rights.seccomp << '\n';
  if (rights.effective_uid) again << "Uid:\t0\t" << *rights.effective_uid << "\t0\t0\n";
  const OwnRights reread = ParseOwnRights(again.str());
  Check(reread.effective == rights.effective && reread.seccomp == rights.seccomp &&
        reread.effective_uid == rights.effective_uid);
}

void CheckCgroup(std::string_view text) {
  const LibvirtCgroup found = ParseLibvirtCgroup(text);
  Check(!found.vcpu || (*found.vcpu >= 0 && !found.machine.empty()));
  // A name that looks like "DRIVER-ID-NAME" is cut again, one with a '/' becomes two groups.
  if (found.machine.empty() || found.machine.starts_with("qemu") ||
      found.machine.find_first_of(std::string_view("/\n\0", 3)) != std::string::npos) {
    return;
  }
  std::string again = "0::/machine/" + found.machine + ".libvirt-qemu";
  if (found.vcpu) again += "/vcpu" + std::to_string(*found.vcpu);
  Check(ParseLibvirtCgroup(again) == found);
}

void CheckWchan(std::string_view text) {
  const WaitPlace place = ParseWchan(text);
  Check(place != WaitPlace::kUserspace || text.find("futex_") <= 2);
  Check(place != WaitPlace::kKvm || text.starts_with("kvm_"));
}

void CheckCpuIdentity(std::string_view text) {
  const CpuIdentity cpu = ParseCpuIdentity(text);
  Check(cpu.vendor.size() <= 12);
  std::ostringstream again;
  if (cpu.family != 0 || !cpu.vendor.starts_with("0x")) {
    again << "vendor_id\t: " << cpu.vendor << "\ncpu family\t: " << cpu.family
          << "\nmodel\t\t: " << cpu.model << "\nstepping\t: " << cpu.stepping << '\n';
    if (!cpu.microcode.empty()) again << "microcode\t: " << cpu.microcode << '\n';
    Check(ParseCpuIdentity(again.str()) == cpu);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckStat(text);
  CheckSchedStat(text);
  CheckTaskSched(text);
  CheckLink(text);
  CheckNames(text);
  CheckCmdline(text);
  CheckStatus(text);
  CheckOwnRights(text);
  CheckCgroup(text);
  CheckCpuIdentity(text);
  CheckWchan(text);
  return 0;
}
