#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvm/vm.h"

namespace vcpulse::kvm {

// What QEMU was asked for on its command line.
struct QemuCommandLine {
  std::string name;  // -name; empty where not given
  std::string uuid;  // -uuid; empty where not given
  // What was asked for, which is a hint only: kvm-vm descriptors tell what runs. kUnknown where
  // nothing or a choice (`kvm:tcg`) was given.
  Accelerator accelerator = Accelerator::kUnknown;
  bool debug_threads = false;
  bool userspace_irqchip = false;  // kernel_irqchip=off: halted vCPUs wait in QEMU, not in KVM
  bool is_confidential = false;    // its memory and registers are encrypted (SEV, TDX, PEF, CCA)
  // QMP servers that a client can reach, as `unix:PATH` and `tcp:HOST:PORT`.
  std::vector<std::string> qmp_addresses;

  bool operator==(const QemuCommandLine&) const = default;
};

// The options of one QEMU process; `arguments` begins with the program. Options of which nothing is
// known are passed over, later ones override earlier ones as QEMU does it.
QemuCommandLine ParseQemuCommandLine(std::span<const std::string> arguments);

// Whether this program is a system emulator by the file name in its first argument
// (qemu-system-ARCH, qemu-kvm, kvm, also wrapped ones).
bool IsQemuProgram(std::string_view argument0);

// One QEMU option argument as key and value pairs: items separated by ',', where ",," stands for a
// comma. A first item without '=' is the value of `implied_key`; another item without '=' has the
// value "on".
std::vector<std::pair<std::string, std::string>> ParseQemuOptions(std::string_view text,
                                                                  std::string_view implied_key);

}  // namespace vcpulse::kvm
