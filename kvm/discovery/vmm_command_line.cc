#include "kvm/discovery/vmm_command_line.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

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

VmmProgram ByFileName(std::string_view name) {
  if (IsQemuProgram(name)) return VmmProgram::kQemu;
  // comm cuts "cloud-hypervisor" to 15 characters.
  if (name.starts_with("cloud-hyperviso")) return VmmProgram::kCloudHypervisor;
  if (name.starts_with("firecracker")) return VmmProgram::kFirecracker;
  if (name.starts_with("crosvm")) return VmmProgram::kCrosvm;
  if (name == "lkvm" || name == "lkvm-static" || name == "kvmtool") return VmmProgram::kKvmtool;
  return VmmProgram::kOther;
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

}  // namespace

VmmProgram VmmProgramOf(std::string_view argument0, std::string_view process_name) {
  const VmmProgram program = ByFileName(FileName(argument0));
  return program != VmmProgram::kOther ? program : ByFileName(process_name);
}

std::string VmNameOnCommandLine(VmmProgram program, std::span<const std::string> arguments) {
  switch (program) {
    case VmmProgram::kFirecracker:
      return Value(arguments, {"--id"}).value_or("");
    case VmmProgram::kCrosvm:
      if (const auto name = Value(arguments, {"--name"})) return *name;
      return Stem(Value(arguments, {"--socket", "-s"}).value_or(""));
    case VmmProgram::kKvmtool:
      return Value(arguments, {"--name", "-n"}).value_or("");
    case VmmProgram::kCloudHypervisor:
      return NameOfApiSocket(Value(arguments, {"--api-socket"}).value_or(""));
    case VmmProgram::kQemu:
    case VmmProgram::kOther:
      return "";
  }
  return "";
}

}  // namespace vcpulse::kvm
