#include "tools/vcpulse/guest_code_options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "monitor/guest_image/vmlinux.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

// A kernel's kallsyms are some 10 MB.
constexpr size_t kLongestSymbols = size_t{128} << 20;

absl::Status At(const std::string& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

// What the first bytes of a file say that it is.
enum class KernelFile { kText, kElf, kCompressedKernel };

KernelFile KindOf(std::string_view head) {
  if (head.starts_with("\177ELF")) return KernelFile::kElf;
  // gzip, and the PE header that a bootable image begins with.
  if (head.starts_with("\x1f\x8b") || head.starts_with("MZ")) return KernelFile::kCompressedKernel;
  return KernelFile::kText;
}

absl::StatusOr<hotspots::GuestKernel> ParseText(std::string_view text) {
  absl::StatusOr<hotspots::Symbols> symbols = hotspots::Symbols::Parse(text);
  if (!symbols.ok()) return symbols.status();
  return hotspots::GuestKernel{.symbols = *std::move(symbols)};
}

// kallsyms, System.map or vmlinux, whatever it is.
absl::StatusOr<hotspots::GuestKernel> ReadFile(const std::string& file) {
  const absl::StatusOr<Fd> fd = OpenRereadable(file);
  if (!fd.ok()) return fd.status();
  std::string head(4, '\0');
  const ssize_t got = pread(fd->get(), head.data(), head.size(), 0);
  if (got < 0 || lseek(fd->get(), 0, SEEK_SET) != 0) return absl::ErrnoToStatus(errno, file);
  head.resize(static_cast<size_t>(got));
  absl::StatusOr<hotspots::GuestKernel> kernel = absl::InvalidArgumentError(
      "a compressed kernel has no symbols: give its vmlinux (Debian: linux-image-*-dbg)");
  const KernelFile kind = KindOf(head);
  if (kind == KernelFile::kElf) kernel = guest_image::ReadVmlinux(fd->get());
  if (kind == KernelFile::kText) {
    const absl::StatusOr<std::string> text = ReadWhole(*fd, file, kLongestSymbols);
    if (!text.ok()) return text.status();
    kernel = ParseText(*text);
  }
  if (!kernel.ok()) return At(file, kernel.status());
  return kernel;
}

// Adds what `file` has to what is known: names where the kernel lies of kallsyms, code of vmlinux.
absl::Status AddFile(const std::string& file, hotspots::GuestKernel& kernel) {
  absl::StatusOr<hotspots::GuestKernel> read = ReadFile(file);
  if (!read.ok()) return read.status();
  if (kernel.empty()) {
    kernel = *std::move(read);
    return absl::OkStatus();
  }
  if (kernel.code.empty() == read->code.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": a second file of one kernel: kallsyms and vmlinux may be given together"));
  }
  hotspots::GuestKernel& vmlinux = kernel.code.empty() ? *read : kernel;
  hotspots::Symbols& loaded = kernel.code.empty() ? kernel.symbols : read->symbols;
  const absl::StatusOr<uint64_t> offset = hotspots::LoadOffset(loaded, vmlinux.symbols);
  if (!offset.ok()) return At(file, offset.status());
  vmlinux.code.Move(*offset);
  vmlinux.orc.Move(*offset);
  kernel = {.symbols = std::move(loaded),
            .code = std::move(vmlinux.code),
            .orc = std::move(vmlinux.orc),
            .is_placed = true};
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ParseOffset(const std::string& text) {
  const bool has_prefix = text.starts_with("0x");
  const auto offset = ParseNumber<uint64_t>(std::string_view(text).substr(has_prefix ? 2 : 0), 16);
  if (offset) return *offset;
  return absl::InvalidArgumentError(
      absl::StrCat("--guest-kaslr-offset '", text, "': a number of up to 16 hexadecimal digits"));
}

absl::Status MoveOne(hotspots::GuestKernel& kernel, uint64_t offset) {
  if (kernel.is_placed) {
    return absl::InvalidArgumentError(
        "--guest-kaslr-offset: kallsyms tells already where the kernel of the vmlinux was loaded");
  }
  kernel.Move(offset);
  return absl::OkStatus();
}

// Moves the symbols that each offset is of.
absl::Status Move(const std::vector<std::string>& offsets, hotspots::GuestKernels& symbols) {
  for (const std::string& text : offsets) {
    const size_t equals = text.rfind('=');
    const bool of_all = equals == std::string::npos;
    const absl::StatusOr<uint64_t> offset = ParseOffset(of_all ? text : text.substr(equals + 1));
    if (!offset.ok()) return offset.status();
    if (of_all) {
      if (symbols.all.empty()) {
        return absl::InvalidArgumentError(
            "--guest-kaslr-offset needs --guest-kallsyms, --guest-system-map or --guest-vmlinux "
            "(VM=HEX is that of a file of --guest-symbols)");
      }
      if (absl::Status status = MoveOne(symbols.all, *offset); !status.ok()) return status;
      continue;
    }
    const auto own = symbols.own.find(text.substr(0, equals));
    if (own == symbols.own.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--guest-kaslr-offset '", text, "': --guest-symbols gives that VM no file"));
    }
    if (absl::Status status = MoveOne(own->second, *offset); !status.ok()) return status;
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
  command
      .add_option("--guest-vmlinux,--guestvmlinux", options.vmlinux,
                  "vmlinux of the guest's kernel, for names and code; with --guest-kallsyms for "
                  "code alone, which is then found where that kernel was loaded")
      ->type_name("FILE");
  AddRepeatable(command, "--guest-symbols", options.of_vms,
                "any of them, of the VM of this name alone; may be given several times")
      ->type_name("VM=FILE");
  AddRepeatable(
      command, "--guest-kaslr-offset", options.kaslr_offsets,
      "load address of the guest's kernel minus its address in FILE; with VM=, in the FILE that "
      "--guest-symbols gives that VM; may be given several times [0]")
      ->type_name("[VM=]HEX");
}

std::vector<std::string> SymbolOptions::Files() const {
  std::vector<std::string> files;
  for (const std::string& one : {file, vmlinux}) {
    if (!one.empty()) files.push_back(one);
  }
  for (const std::string& of_vm : of_vms) files.push_back(of_vm.substr(of_vm.find('=') + 1));
  return files;
}

std::string UnknownVms(const hotspots::GuestKernels& symbols, const std::vector<std::string>& vms) {
  std::string unknown;
  for (const auto& [name, unused] : symbols.own) {
    if (std::ranges::find(vms, name) != vms.end()) continue;
    absl::StrAppend(&unknown, unknown.empty() ? "" : ", ", "'", Printable(name), "'");
  }
  if (unknown.empty()) return "";
  return absl::StrCat("--guest-symbols: no VM is called ", unknown, "; there ",
                      vms.size() == 1 ? "is " : "are ", Listed(vms, 5));
}

absl::StatusOr<hotspots::GuestKernels> ReadSymbols(const SymbolOptions& options) {
  hotspots::GuestKernels all;
  for (const std::string& file : {options.file, options.vmlinux}) {
    if (file.empty()) continue;
    if (absl::Status status = AddFile(file, all.all); !status.ok()) return status;
  }
  for (const std::string& of_vm : options.of_vms) {
    const size_t equals = of_vm.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == of_vm.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--guest-symbols '", of_vm, "': VM=FILE is needed"));
    }
    hotspots::GuestKernel& own = all.own[of_vm.substr(0, equals)];
    if (absl::Status status = AddFile(of_vm.substr(equals + 1), own); !status.ok()) return status;
  }
  if (absl::Status status = Move(options.kaslr_offsets, all); !status.ok()) return status;
  return all;
}

}  // namespace vcpulse::tools
