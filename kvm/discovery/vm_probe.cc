#include "kvm/discovery/vm_probe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kvm/discovery/qemu_command_line.h"
#include "kvm/discovery/vmms.h"

namespace vcpulse::kvm {
namespace {

// Bytes of the UTF-8 character at the beginning of `text`, or 0 where there is none (RFC 3629:
// neither overlong forms nor surrogates, at most U+10FFFF).
size_t Utf8Length(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

const Vmm* VmmOfProcess(const ProcTree& tree, pid_t pid,
                        const std::vector<std::string>& arguments) {
  return VmmOf(arguments.empty() ? "" : arguments.front(), tree.ProcessName(pid));
}

// What this VMM calls its VM, else libvirt, else "pid-PID".
std::string NameOf(const ProcTree& tree, pid_t pid, const Vmm* vmm, const QemuCommandLine& qemu,
                   const std::vector<std::string>& arguments) {
  std::string name = CleanLabel(qemu.name);
  if (name.empty() && vmm != nullptr) name = CleanLabel(vmm->vm_name(arguments));
  if (name.empty()) name = CleanLabel(tree.Cgroup(pid).machine);
  return name.empty() ? absl::StrCat("pid-", pid) : name;
}

// Where its descriptors may not be read, a VMM is known by its program; one that is no QEMU also
// needs a vCPU thread to show, as its program does other things too.
bool LooksLikeVmm(const ProcTree& tree, pid_t pid, const Vmm* vmm) {
  if (vmm == nullptr || vmm->IsQemu()) return vmm != nullptr;
  const VmView view = ReadVmView(tree, pid);
  return !view.cgroup_vcpus.empty() || std::ranges::any_of(view.threads, [](const Thread& thread) {
    return ParseVcpuThreadName(thread.name).has_value();
  });
}

}  // namespace

std::optional<Vm> IdentifyVm(const ProcTree& tree, pid_t pid) {
  const auto stat = tree.ProcessStat(pid);
  if (!stat || stat->kernel_thread || stat->Exited()) return std::nullopt;
  const std::optional<bool> holds_vm = tree.HoldsVm(pid);
  const std::vector<std::string> arguments = tree.CommandLine(pid);
  const Vmm* const vmm = VmmOfProcess(tree, pid, arguments);
  if (holds_vm == false && (vmm == nullptr || !vmm->IsQemu())) return std::nullopt;
  if (!holds_vm.has_value() && !LooksLikeVmm(tree, pid, vmm)) return std::nullopt;

  const QemuCommandLine command_line =
      vmm == nullptr || vmm->IsQemu() ? ParseQemuCommandLine(arguments) : QemuCommandLine();
  Vm vm;
  vm.pid = pid;
  vm.start_time_ticks = stat->start_time_ticks;
  vm.name = NameOf(tree, pid, vmm, command_line, arguments);
  vm.uuid = CleanUuid(command_line.uuid);
  vm.userspace_irqchip = command_line.userspace_irqchip;
  vm.is_confidential = command_line.is_confidential;
  if (holds_vm == true) {
    vm.accelerator = Accelerator::kKvm;
  } else if (!holds_vm.has_value()) {
    vm.accelerator = command_line.accelerator;
  } else if (command_line.accelerator == Accelerator::kKvm) {
    vm.accelerator = Accelerator::kUnknown;
    vm.notes.emplace_back(
        "it was started with KVM but holds no kvm-vm descriptor yet: try again, it may be "
        "starting");
  } else {
    vm.accelerator = Accelerator::kTcg;
  }
  return vm;
}

bool RunsKnownVmm(const ProcTree& tree, pid_t pid) {
  return VmmOfProcess(tree, pid, tree.CommandLine(pid)) != nullptr;
}

Accelerator AcceleratorByNames(const VmView& view) {
  for (const Thread& thread : view.threads) {
    const auto name = ParseVcpuThreadName(thread.name);
    if (name && name->accelerator != Accelerator::kUnknown) return name->accelerator;
    if (thread.name == "ALL CPUs/TCG") return Accelerator::kTcg;
  }
  return Accelerator::kUnknown;
}

void FillVcpus(const ProcTree& tree, Vm& vm) {
  if (vm.accelerator == Accelerator::kTcg) return;
  const VmView view = ReadVmView(tree, vm.pid);
  if (!view.descriptors.readable) {
    const Accelerator told = AcceleratorByNames(view);
    if (told != Accelerator::kUnknown) vm.accelerator = told;
    if (vm.accelerator == Accelerator::kTcg) return;
  }
  SetVcpus(tree, view, FindVcpuThreads(view), vm);
}

void SetVcpus(const ProcTree& tree, const VmView& view, std::vector<Vcpu> vcpus, Vm& vm) {
  vm.vcpus = CompleteVcpus(std::move(vcpus), view);
  vm.vcpu_descriptors = view.descriptors.vcpus;
  if (view.descriptors.readable && view.descriptors.vms == 0) return;  // still starting
  if (!vm.vcpus.empty()) vm.accelerator = Accelerator::kKvm;
  std::vector<std::string> qmp_addresses;
  if (vm.vcpus.empty()) {
    qmp_addresses = ParseQemuCommandLine(tree.CommandLine(vm.pid)).qmp_addresses;
  }
  vm.notes = DiscoveryNotes(vm.vcpus, view, qmp_addresses);
}

absl::Status MayBeMeasured(const Vm& vm) {
  if (vm.accelerator == Accelerator::kTcg) {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(vm),
        " runs TCG, not KVM: its counters would read zero; start QEMU with -accel kvm"));
  }
  if (vm.accelerator == Accelerator::kUnknown && vm.vcpus.empty()) {
    return absl::UnavailableError(absl::StrCat(Describe(vm), vm.notes.empty() ? "" : ": ",
                                               vm.notes.empty() ? "" : vm.notes.front()));
  }
  return absl::OkStatus();
}

std::string Describe(const Vm& vm) { return absl::StrCat("VM '", vm.name, "' (PID ", vm.pid, ")"); }

std::string CleanLabel(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // C1 controls (U+0080 to U+009F) drive terminals too.
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || c1 || first < 0x20 || first == 0x7f) {
      clean += '?';
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

std::string CleanUuid(std::string_view text) {
  std::string uuid = CleanLabel(text);
  absl::AsciiStrToLower(&uuid);
  const bool null = std::ranges::all_of(uuid, [](char c) { return c == '0' || c == '-'; });
  return null ? std::string() : uuid;
}

}  // namespace vcpulse::kvm
