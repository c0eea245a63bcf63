#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vcpulse::kvm {

// The VMMs whose thread names are known.
enum class VmmProgram { kQemu, kCloudHypervisor, kFirecracker, kCrosvm, kKvmtool, kOther };

// Which of them this program is, by the file name in its first argument, else by its process name
// (comm, cut to 15 characters): a jailer may have started it under another one.
VmmProgram VmmProgramOf(std::string_view argument0, std::string_view process_name);

// What a VMM that is no QEMU calls its VM on its command line, or "" where it does not say:
// Firecracker `--id`, crosvm `--name` (else the stem of its `--socket` file), kvmtool `-n`,
// `--name`, Cloud Hypervisor the stem of its `--api-socket` file. `arguments` begins with the
// program. Options may be `--key value` and `--key=value`.
std::string VmNameOnCommandLine(VmmProgram program, std::span<const std::string> arguments);

}  // namespace vcpulse::kvm
