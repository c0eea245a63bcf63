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

absl::StatusOr<hotspots::Symbols> ReadFile(const std::string& file,
                                           std::optional<uint64_t> moved_by) {
  const absl::StatusOr<std::string> text = ReadWhole(file, kLongestSymbols);
  if (!text.ok()) return text.status();
  absl::StatusOr<hotspots::Symbols> symbols = hotspots::Symbols::Parse(*text);
  if (!symbols.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", symbols.status().message()));
  }
  if (moved_by) symbols->Move(*moved_by);
  return symbols;
}

absl::StatusOr<std::optional<uint64_t>> ParseOffset(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const bool has_prefix = text.starts_with("0x");
  const auto offset = ParseNumber<uint64_t>(std::string_view(text).substr(has_prefix ? 2 : 0), 16);
  if (offset) return offset;
  return absl::InvalidArgumentError(
      absl::StrCat("--guest-kaslr-offset '", text, "': a number of up to 16 hexadecimal digits"));
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
  command
      .add_option("--guest-kaslr-offset", options.kaslr_offset,
                  "load address of the guest's kernel minus its address in FILE [0]")
      ->type_name("HEX");
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
  if (!options.kaslr_offset.empty() && options.file.empty()) {
    return absl::InvalidArgumentError(
        "--guest-kaslr-offset needs --guest-kallsyms or --guest-system-map");
  }
  hotspots::GuestSymbols all;
  if (!options.file.empty()) {
    const absl::StatusOr<std::optional<uint64_t>> offset = ParseOffset(options.kaslr_offset);
    if (!offset.ok()) return offset.status();
    absl::StatusOr<hotspots::Symbols> symbols = ReadFile(options.file, *offset);
    if (!symbols.ok()) return symbols.status();
    all.all = *std::move(symbols);
  }
  for (const std::string& of_vm : options.of_vms) {
    const size_t equals = of_vm.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == of_vm.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--guest-symbols '", of_vm, "': VM=FILE is needed"));
    }
    absl::StatusOr<hotspots::Symbols> symbols = ReadFile(of_vm.substr(equals + 1), std::nullopt);
    if (!symbols.ok()) return symbols.status();
    all.own[of_vm.substr(0, equals)] = *std::move(symbols);
  }
  return all;
}

}  // namespace vcpulse::tools
