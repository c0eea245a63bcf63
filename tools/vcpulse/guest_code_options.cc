#include "tools/vcpulse/guest_code_options.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

// A kernel's kallsyms are some 10 MB.
constexpr size_t kLongestSymbols = size_t{128} << 20;

absl::StatusOr<hotspots::Symbols> ReadFile(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadWhole(file, kLongestSymbols);
  if (!text.ok()) return text.status();
  absl::StatusOr<hotspots::Symbols> symbols = hotspots::Symbols::Parse(*text);
  if (!symbols.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", symbols.status().message()));
  }
  return symbols;
}

absl::StatusOr<uint64_t> ParseOffset(const std::string& text) {
  const bool has_prefix = text.starts_with("0x");
  const auto offset = ParseNumber<uint64_t>(std::string_view(text).substr(has_prefix ? 2 : 0), 16);
  if (offset) return *offset;
  return absl::InvalidArgumentError(
      absl::StrCat("--guest-kaslr-offset '", text, "': a number of up to 16 hexadecimal digits"));
}

// Moves the symbols that each offset is of.
absl::Status Move(const std::vector<std::string>& offsets, hotspots::GuestSymbols& symbols) {
  for (const std::string& text : offsets) {
    const size_t equals = text.rfind('=');
    const bool of_all = equals == std::string::npos;
    const absl::StatusOr<uint64_t> offset = ParseOffset(of_all ? text : text.substr(equals + 1));
    if (!offset.ok()) return offset.status();
    if (of_all) {
      if (symbols.all.empty()) {
        return absl::InvalidArgumentError(
            "--guest-kaslr-offset needs --guest-kallsyms or --guest-system-map");
      }
      symbols.all.Move(*offset);
      continue;
    }
    const auto own = symbols.own.find(text.substr(0, equals));
    if (own == symbols.own.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--guest-kaslr-offset '", text, "': --guest-symbols gives that VM no file"));
    }
    own->second.Move(*offset);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<kvm::AddressSource>> ParseAddressSource(const std::string& flag,
                                                                     const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (const auto source = kvm::FindAddressSource(text)) return source;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " '", text, "': known are auto, cycles, kvm-exit, qmp"));
}

void AddSymbolOptions(CLI::App& command, SymbolOptions& options) {
  CLI::Option* const kallsyms =
      command
          .add_option("--guest-kallsyms,--guestkallsyms", options.file,
                      "/proc/kallsyms of the running guest, read there as root")
          ->type_name("FILE");
  command
      .add_option("--guest-system-map,--guest-map", options.file,
                  "System.map of the guest's kernel")
      ->type_name("FILE")
      ->excludes(kallsyms);
  AddRepeatable(
      command, "--guest-symbols", options.of_vms,
      "either of them, of the VM of this name alone and where it was loaded; may be given "
      "several times")
      ->type_name("VM=FILE");
  AddRepeatable(
      command, "--guest-kaslr-offset", options.kaslr_offsets,
      "load address of the guest's kernel minus its address in FILE; with VM=, in the FILE that "
      "--guest-symbols gives that VM; may be given several times [0]")
      ->type_name("[VM=]HEX");
}

std::string UnknownVms(const hotspots::GuestSymbols& symbols, const std::vector<std::string>& vms) {
  std::string unknown;
  for (const auto& [name, unused] : symbols.own) {
    if (std::ranges::find(vms, name) != vms.end()) continue;
    absl::StrAppend(&unknown, unknown.empty() ? "" : ", ", "'", Printable(name), "'");
  }
  if (unknown.empty()) return "";
  return absl::StrCat("--guest-symbols: no VM is called ", unknown);
}

absl::StatusOr<hotspots::GuestSymbols> ReadSymbols(const SymbolOptions& options) {
  hotspots::GuestSymbols all;
  if (!options.file.empty()) {
    absl::StatusOr<hotspots::Symbols> symbols = ReadFile(options.file);
    if (!symbols.ok()) return symbols.status();
    all.all = *std::move(symbols);
  }
  for (const std::string& of_vm : options.of_vms) {
    const size_t equals = of_vm.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == of_vm.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--guest-symbols '", of_vm, "': VM=FILE is needed"));
    }
    absl::StatusOr<hotspots::Symbols> symbols = ReadFile(of_vm.substr(equals + 1));
    if (!symbols.ok()) return symbols.status();
    all.own[of_vm.substr(0, equals)] = *std::move(symbols);
  }
  if (absl::Status status = Move(options.kaslr_offsets, all); !status.ok()) return status;
  return all;
}

}  // namespace vcpulse::tools
