#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kvm/vm.h"

namespace vcpulse::kvm {

// A VMM whose processes, threads and VMs are known by name. A new one is a row of the table in
// vmms.cc, and one in docs/discovery.md.
struct Vmm {
  // Text around the index in the name of a vCPU thread; empty: there is none.
  struct ThreadName {
    std::string_view before;
    std::string_view behind;
    Accelerator accelerator = Accelerator::kUnknown;  // QEMU's names alone tell it
  };

  std::string_view name;
  // Whether a program of this file name is it. comm cuts a name to 15 characters.
  bool (*is_program)(std::string_view file_name);
  std::array<ThreadName, 2> threads;
  // What it calls its VM on its command line, which begins with the program; "" where it does not
  // say. QEMU's is in qemu_command_line.h.
  std::string (*vm_name)(std::span<const std::string> arguments);

  bool IsQemu() const { return name == "QEMU"; }
};

// All of them.
std::span<const Vmm> Vmms();

// Which of them this program is, by the file name in its first argument, else by its process name
// (comm, cut to 15 characters): a jailer may have started it under another one. Null: none.
const Vmm* VmmOf(std::string_view argument0, std::string_view process_name);

// A vCPU thread by its name.
struct VcpuThreadName {
  int index = 0;
  Accelerator accelerator = Accelerator::kUnknown;

  bool operator==(const VcpuThreadName&) const = default;
};

// By the thread names of any VMM; nothing for any other name. One trailing newline is allowed. A
// name is no proof: any process may choose it.
std::optional<VcpuThreadName> ParseVcpuThreadName(std::string_view comm);

}  // namespace vcpulse::kvm
