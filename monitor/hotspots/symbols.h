#pragma once

// Names of a guest kernel's code, from what that kernel says of itself. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

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

  // All addresses moved by so much: a kernel that was loaded elsewhere than System.map says
  // (KASLR).
  void Move(uint64_t by) { moved_by_ = by; }

  // The function that holds `address`; nothing where none does.
  std::optional<Symbol> Find(uint64_t address) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    uint64_t address = 0;
    bool is_code = false;
    std::string name;
  };

  std::vector<Entry> entries_;  // by address; of one address the first that is code
  uint64_t moved_by_ = 0;
};

// Symbols by VM.
struct GuestSymbols {
  Symbols all;                         // of each VM that has none of its own
  std::map<std::string, Symbols> own;  // by the VM's name

  const Symbols& Of(const std::string& vm) const {
    const auto found = own.find(vm);
    return found == own.end() ? all : found->second;
  }
  bool empty() const { return all.empty() && own.empty(); }
};

}  // namespace vcpulse::hotspots
