// `vcpulse symbolize`: a timeline whose hot addresses have their names in it.

#include "monitor/hotspots/symbolize.h"

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "monitor/hotspots/code_record.h"
#include "monitor/hotspots/symbols.h"
#include "monitor/timeline/merge.h"
#include "monitor/timeline/recut.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kSymbolizeFooter =
    R"(Usage: [OPTIONS] FILE -o OUT
Hot addresses (`record --hotspots`) get the names of their functions, and of a vmlinux the code around them, so
that every reader of OUT names them without those files. Names that FILE has already are replaced. All
else, lost records too, stays as it is.
Where FILE holds code of the guest (`record --guest-code`), a vmlinux is moved to where that code says that the
kernel was loaded (KASLR).

Examples:
  vcpulse symbolize web.vpt --guest-symbols web=web.kallsyms -o named.vpt
  vcpulse symbolize web.vpt --guest-kallsyms web.kallsyms --guest-vmlinux vmlinux -o named.vpt

Exit status:
  0  written
  2  usage error; a file could not be read or written; FILE has no hot address that got a name)";

struct SymbolizeOptions {
  std::string file;
  std::string output;
  SymbolOptions symbols;

  absl::Status Validate() const;
};

absl::Status SymbolizeOptions::Validate() const {
  if (!symbols.Any()) {
    return absl::InvalidArgumentError(
        "no symbols are given: --guest-kallsyms, --guest-system-map, --guest-vmlinux or "
        "--guest-symbols");
  }
  if (file == "-") {
    return absl::InvalidArgumentError("standard input cannot be read twice: name a file");
  }
  if (output == "-" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "--output: - is a terminal, and a timeline is binary: redirect it or name a file");
  }
  return CheckNotSameFile(file, output);
}

// Names what it is given, and counts.
class Namer {
 public:
  explicit Namer(hotspots::GuestKernels& kernels) : kernels_(kernels) {}

  // Whether it changed a record of the chunk.
  bool Edit(v1::ChunkPayload& content) {
    for (const v1::VcpuSet& set : content.vcpu_sets()) names_[set.vm()] = set.instance().name();
    bool any = false;
    for (v1::TimelineRecord& record : *content.mutable_records()) {
      if (record.has_vcpu_set()) {
        names_[record.vcpu_set().vm()] = record.vcpu_set().instance().name();
      }
      if (!record.has_hot_addresses()) continue;
      v1::HotAddresses& hot = *record.mutable_hot_addresses();
      hotspots::GuestKernel& kernel = kernels_.Of(names_[hot.vm()]);
      if (kernel.empty()) continue;
      any = true;
      ++windows_;
      const uint64_t moved_by = LoadOffset(kernel, hot);
      if (moved_by != 0) kernel.Move(moved_by);
      named_samples_ += hotspots::Symbolize(kernel, hot);
      if (moved_by != 0) kernel.Move(0);
    }
    return any;
  }

  std::vector<std::string> Vms() const {
    std::vector<std::string> vms;
    for (const auto& [number, name] : names_) vms.push_back(name);
    return vms;
  }
  uint64_t windows() const { return windows_; }
  uint64_t named_samples() const { return named_samples_; }

 private:
  // By how much the kernel of a VM was moved, as far as code of a window told; 0: it is not known,
  // or the files say it.
  uint64_t LoadOffset(const hotspots::GuestKernel& kernel, const v1::HotAddresses& hot) {
    const auto known = moved_by_.find(hot.vm());
    if (known != moved_by_.end()) return known->second;
    std::vector<kvm::GuestCode> code;
    for (const v1::GuestCode& piece : hot.code()) {
      if (auto read = hotspots::CodeOf(piece)) code.push_back(*std::move(read));
    }
    const auto moved_by = kernel.code.LoadOffset(code);
    if (moved_by) moved_by_[hot.vm()] = *moved_by;
    return moved_by.value_or(0);
  }

  hotspots::GuestKernels& kernels_;
  std::map<uint32_t, std::string> names_;  // of VMs
  std::map<uint32_t, uint64_t> moved_by_;
  uint64_t windows_ = 0;
  uint64_t named_samples_ = 0;
};

int RunSymbolize(const SymbolizeOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  absl::StatusOr<hotspots::GuestKernels> kernels = ReadSymbols(options.symbols);
  if (!kernels.ok()) return Fail(kernels.status());
  const auto output = OutputFile::Create(options.output, OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return Fail(output.status());
  constexpr uint64_t kReadings = 2;
  ReadProgress progress(NameOf(options.file), BytesToRead({options.file}, kReadings),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  Namer namer(*kernels);
  const std::vector<std::string> files = {options.file};
  const auto read = timeline::MergeTimelines(files, [&](std::span<const uint8_t> chunk) {
    return timeline::EditChunk(
        chunk, [&namer](v1::ChunkPayload& content) { return namer.Edit(content); },
        [&output](std::span<const uint8_t> bytes) { return (*output)->Append(bytes); });
  });
  progress.Stop();
  if (absl::IsCancelled(read.status())) return kExitOk;  // the reader of OUT has seen enough
  if (!read.ok()) return Fail(read.status());
  const std::string unknown = UnknownVms(*kernels, namer.Vms());
  if (!unknown.empty()) Note(unknown);
  if (namer.named_samples() == 0) {
    return Fail(absl::StrCat(
        NameOf(options.file), ": ",
        namer.windows() == 0
            ? "holds no hot addresses of the VMs that symbols are given for (`record --hotspots`)"
            : "no address lies in the symbols: they are another kernel's or another boot's "
              "(KASLR)"));
  }
  if (absl::Status status = (*output)->Finish(); !status.ok()) return Fail(status);
  Note(absl::StrCat("named ", Plural(namer.named_samples(), "sample"), " of ",
                    Plural(namer.windows(), "window")));
  SayWritten(options.output);
  return kExitOk;
}

}  // namespace

void AddSymbolizeCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SymbolizeOptions>();
  CLI::App* command = app.add_subcommand(
      "symbolize", "Name the hot addresses of a timeline in the timeline itself");
  command->footer(kSymbolizeFooter);
  command->add_option("FILE", options->file, "timeline, or a folder of its parts")->required();
  command
      ->add_option("-o,--output", options->output,
                   "file to write, - for stdout; an older one is kept as OUT.old")
      ->type_name("OUT")
      ->required();
  AddSymbolOptions(*command, options->symbols);
  command->callback([options, &exit_code] { exit_code = RunSymbolize(*options); });
}

}  // namespace vcpulse::tools
