#pragma once

// Options of what samples guest code, and of what names it.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/hotspots/address_sampler.h"
#include "monitor/hotspots/symbols.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// Nothing for "auto". Errors: InvalidArgument in one line that begins with the flag.
absl::StatusOr<std::optional<kvm::AddressSource>> ParseAddressSource(const std::string& flag,
                                                                     const std::string& text);

inline constexpr char kGuestCodeNeedsQmp[] =
    "--guest-code needs --qmp: the guest's memory is read through it";

struct SymbolOptions {
  std::string file;                        // kallsyms or System.map, of all VMs
  std::string vmlinux;                     // likewise
  std::vector<std::string> kaslr_offsets;  // HEX, or VM=HEX
  std::vector<std::string> of_vms;         // NAME=FILE

  // All of them.
  std::vector<std::string> Files() const;
  bool Any() const {
    return !file.empty() || !vmlinux.empty() || !kaslr_offsets.empty() || !of_vms.empty();
  }
};

// Adds --guest-kallsyms, --guest-system-map, --guest-vmlinux, --guest-symbols and
// --guest-kaslr-offset.
void AddSymbolOptions(CLI::App& command, SymbolOptions& options);

// A line about the names in `symbols` that no VM of these has; empty where there are none.
std::string UnknownVms(const hotspots::GuestKernels& symbols, const std::vector<std::string>& vms);

// Reads the files. Errors: InvalidArgument, or what the system said, naming the file.
absl::StatusOr<hotspots::GuestKernels> ReadSymbols(const SymbolOptions& options);

}  // namespace vcpulse::tools
