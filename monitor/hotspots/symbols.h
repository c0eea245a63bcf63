#pragma once

// Names of a guest kernel's code, from what that kernel says of itself. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/hotspots/known_code.h"
#include "monitor/hotspots/orc.h"

namespace vcpulse::hotspots {

struct Symbol {
  std::string name;      // of a module's: "name [module]"
  uint64_t address = 0;  // where it begins: names come twice
  uint64_t offset = 0;   // of the address in it
};

// The lines of /proc/kallsyms or of System.map: ADDRESS TYPE NAME, by modules with [MODULE].
class Symbols {
 public:
  Symbols() = default;  // none

  // Errors: InvalidArgument where the text is no such file, or all its addresses are 0 (read
  // without the right to see them).
  static absl::StatusOr<Symbols> Parse(std::string_view text);

  struct Entry {
    uint64_t address = 0;
    bool is_code = false;
    std::string name;
  };
  // In any order.
  static Symbols Of(std::vector<Entry> entries);

  // All addresses moved by so much: a kernel that was loaded elsewhere than its file says (KASLR).
  void Move(uint64_t by) { moved_by_ = by; }

  // The function that holds `address`; nothing where none does.
  std::optional<Symbol> Find(uint64_t address) const;
  bool empty() const { return entries_.empty(); }

 private:
  friend absl::StatusOr<uint64_t> LoadOffset(const Symbols& loaded, const Symbols& linked);

  std::vector<Entry> entries_;  // by address, one each
  uint64_t moved_by_ = 0;
};

// By how much a kernel was moved when it was loaded: what its functions say. Errors:
// InvalidArgument where these are two kernels: most functions of `loaded` are not in `linked`, or
// fewer than nine of ten of those that are agree.
absl::StatusOr<uint64_t> LoadOffset(const Symbols& loaded, const Symbols& linked);

// What is known of a guest's kernel.
struct GuestKernel {
  Symbols symbols;
  KnownCode code;  // of its vmlinux
  OrcTable orc;    // likewise, on x86

  // The files themselves say where it was loaded: kallsyms beside the vmlinux.
  bool is_placed = false;

  // Of all of it, as Symbols::Move.
  void Move(uint64_t by);
  bool empty() const { return symbols.empty() && code.empty(); }
};

// By VM.
struct GuestKernels {
  GuestKernel all;                         // of each VM that has none of its own
  std::map<std::string, GuestKernel> own;  // by the VM's name

  const GuestKernel& Of(const std::string& vm) const {
    const auto found = own.find(vm);
    return found == own.end() ? all : found->second;
  }
  GuestKernel& Of(const std::string& vm) {
    const auto found = own.find(vm);
    return found == own.end() ? all : found->second;
  }
  bool empty() const { return all.empty() && own.empty(); }
};

}  // namespace vcpulse::hotspots
