#include "kvm/discovery/vmms.h"

#include <algorithm>
#include <initializer_list>

#include "kvm/base/text.h"
#include "kvm/discovery/qemu_command_line.h"

namespace vcpulse::kvm {
namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "web" of "/run/vm/web.sock".
std::string Stem(std::string_view path) {
  const std::string_view name = FileName(path);
  const size_t dot = name.rfind('.');
  return std::string(dot == 0 ? name : name.substr(0, dot));
}

// The value of the first of these options that is given, whichever way it is written.
std::optional<std::string> Value(std::span<const std::string> arguments,
                                 std::initializer_list<std::string_view> options) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    for (const std::string_view option : options) {
      if (argument == option && i + 1 < arguments.size()) return arguments[i + 1];
      const std::string_view rest = argument.substr(std::min(option.size(), argument.size()));
      if (argument.starts_with(option) && rest.starts_with('=')) return std::string(rest.substr(1));
    }
  }
  return std::nullopt;
}

// `PATH` or `path=PATH,...`; a socket handed over as `fd=N` has no name.
std::string NameOfApiSocket(std::string_view value) {
  constexpr std::string_view kPath = "path=";
  if (value.starts_with("fd=")) return "";
  if (value.starts_with(kPath)) value.remove_prefix(kPath.size());
  return Stem(value.substr(0, value.find(',')));
}

using Arguments = std::span<const std::string>;

// In the order in which programs and thread names are tried.
constexpr std::array kVmms = {
    Vmm{.name = "QEMU",
        .is_program = IsQemuProgram,
        .threads = {{{.before = "CPU ", .behind = "/KVM", .accelerator = Accelerator::kKvm},
                     {.before = "CPU ", .behind = "/TCG", .accelerator = Accelerator::kTcg}}},
        .vm_name = [](Arguments) { return std::string(); }},
    Vmm{.name = "Cloud Hypervisor",
        .is_program = [](std::string_view file) { return file.starts_with("cloud-hyperviso"); },
        .threads = {{{.before = "vcpu"}}},
        .vm_name =
            [](Arguments arguments) {
              return NameOfApiSocket(Value(arguments, {"--api-socket"}).value_or(""));
            }},
    Vmm{.name = "Firecracker",
        .is_program = [](std::string_view file) { return file.starts_with("firecracker"); },
        .threads = {{{.before = "fc_vcpu "}}},
        .vm_name = [](Arguments arguments) { return Value(arguments, {"--id"}).value_or(""); }},
    Vmm{.name = "crosvm",
        .is_program = [](std::string_view file) { return file.starts_with("crosvm"); },
        .threads = {{{.before = "crosvm_vcpu"}}},
        .vm_name =
            [](Arguments arguments) {
              const auto name = Value(arguments, {"--name"});
              return name ? *name : Stem(Value(arguments, {"--socket", "-s"}).value_or(""));
            }},
    Vmm{.name = "kvmtool",
        .is_program =
            [](std::string_view file) {
              return file == "lkvm" || file == "lkvm-static" || file == "kvmtool";
            },
        .threads = {{{.before = "kvm-vcpu-"}}},
        .vm_name =
            [](Arguments arguments) { return Value(arguments, {"--name", "-n"}).value_or(""); }},
};

const Vmm* ByFileName(std::string_view file) {
  const auto* const found =
      std::ranges::find_if(kVmms, [file](const Vmm& vmm) { return vmm.is_program(file); });
  return found == kVmms.end() ? nullptr : found;
}

std::optional<int> IndexWithin(std::string_view comm, const Vmm::ThreadName& name) {
  if (name.before.empty() || !comm.starts_with(name.before)) return std::nullopt;
  comm.remove_prefix(name.before.size());
  if (!comm.ends_with(name.behind)) return std::nullopt;
  comm.remove_suffix(name.behind.size());
  return comm.starts_with('-') ? std::nullopt : ParseNumber<int>(comm);
}

}  // namespace

std::span<const Vmm> Vmms() { return kVmms; }

const Vmm* VmmOf(std::string_view argument0, std::string_view process_name) {
  const Vmm* const vmm = ByFileName(FileName(argument0));
  return vmm != nullptr ? vmm : ByFileName(process_name);
}

std::optional<VcpuThreadName> ParseVcpuThreadName(std::string_view comm) {
  if (comm.ends_with('\n')) comm.remove_suffix(1);
  for (const Vmm& vmm : kVmms) {
    for (const Vmm::ThreadName& name : vmm.threads) {
      if (const auto index = IndexWithin(comm, name)) {
        return VcpuThreadName{*index, name.accelerator};
      }
    }
  }
  return std::nullopt;
}

}  // namespace vcpulse::kvm
