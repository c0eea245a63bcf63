// `vcpulse symbolize`: a timeline whose hot addresses have their names in it.

#include "monitor/hotspots/symbolize.h"

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "monitor/hotspots/placements.h"
#include "monitor/hotspots/symbols.h"
#include "monitor/timeline/merge.h"
#include "monitor/timeline/recut.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/merge_losses.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kSymbolizeFooter =
    R"(Usage: [OPTIONS] FILE -o OUT
Hot addresses (`record --hotspots`) get the names of their functions, and of a
vmlinux the code around them, so that every reader of OUT names them without
those files. What an earlier `symbolize` wrote is replaced. Other records stay
as they are, and so do gaps where records were lost. Where FILE holds code of
the guest (`record --guest-code`), a vmlinux is moved to where that code says
that the kernel was loaded (KASLR).

Examples:
  vcpulse symbolize web.vpt --guest-symbols web=web.kallsyms -o named.vpt
  vcpulse symbolize web.vpt --guest-vmlinux vmlinux -o named.vpt

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
  for (const std::string& symbol_file : symbols.Files()) {
    if (absl::Status status = CheckNotSameFile(symbol_file, output); !status.ok()) return status;
  }
  return CheckNotSameFile(file, output);
}

// Names what it is given, and counts.
class Namer {
 public:
  explicit Namer(hotspots::GuestKernels& kernels) : kernels_(kernels) {}

  // Of a first reading, to find where kernels were loaded.
  void Look(const timeline::Entry& entry) {
    if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
      names_[set->vm()] = set->instance().name();
    }
    const auto* hot = std::get_if<v1::HotAddresses>(&entry.record);
    if (hot != nullptr) placements_.Add(entry.sequence, *hot, kernels_.Of(names_[hot->vm()]));
  }

  // Of the second one: whether it changed a record of the chunk.
  bool Edit(v1::ChunkPayload& content) {
    bool any = false;
    for (v1::TimelineRecord& record : *content.mutable_records()) {
      if (!record.has_hot_addresses()) continue;
      v1::HotAddresses& hot = *record.mutable_hot_addresses();
      hotspots::GuestKernel& kernel = kernels_.Of(names_[hot.vm()]);
      if (kernel.empty() || placements_.IsAnotherKernel(hot.vm())) continue;
      const uint64_t moved_by = placements_.MovedBy(hot.vm(), record.sequence());
      if (moved_by != 0) kernel.Move(moved_by);
      const hotspots::Symbolized samples = hotspots::Symbolize(kernel, hot);
      if (moved_by != 0) kernel.Move(0);
      any = true;
      ++windows_;
      moves_.insert(moved_by);
      named_ += samples.named;
      all_ += samples.all;
    }
    return any;
  }

  std::vector<std::string> Vms() const {
    std::vector<std::string> vms;
    vms.reserve(names_.size());
    for (const auto& [number, name] : names_) vms.push_back(name);
    return vms;
  }
  // Those that are not named, as their code is not in the file of their kernel.
  std::vector<std::string> OtherKernels() const {
    std::vector<std::string> vms;
    for (const auto& [number, name] : names_) {
      if (placements_.IsAnotherKernel(number)) vms.push_back(Printable(name));
    }
    return vms;
  }
  uint64_t windows() const { return windows_; }
  uint64_t named() const { return named_; }

  // "named 60 of 70 samples in kernel mode, of 1 window; kernels were found moved by 0x2a000000"
  std::string Done() const {
    std::vector<std::string> moves;
    for (const uint64_t by : moves_) {
      if (by != 0) moves.push_back(absl::StrCat("0x", absl::Hex(by)));
    }
    return absl::StrCat("named ", named_, " of ", Plural(all_, "sample"), " in kernel mode, of ",
                        Plural(windows_, "window"),
                        moves.empty() ? "" : "; by its code the kernel was moved by ",
                        Listed(moves, 3));
  }

 private:
  hotspots::GuestKernels& kernels_;
  std::map<uint32_t, std::string> names_;  // of VMs
  hotspots::Placements placements_;
  std::set<uint64_t> moves_;
  uint64_t windows_ = 0;
  uint64_t named_ = 0;
  uint64_t all_ = 0;
};

// Why nothing was named.
std::string NothingNamed(const Namer& namer) {
  if (!namer.OtherKernels().empty()) {
    return "the code that it holds is not that of the vmlinux: another kernel";
  }
  return namer.windows() == 0
             ? "holds no hot addresses of the VMs that symbols are given for (`record --hotspots`)"
             : "no address lies in the symbols: they are another kernel's or another boot's "
               "(KASLR)";
}

int RunSymbolize(const SymbolizeOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  absl::StatusOr<hotspots::GuestKernels> kernels = ReadSymbols(options.symbols);
  if (!kernels.ok()) return Fail(kernels.status());
  const auto output = OutputFile::Create(options.output, OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return Fail(output.status());
  constexpr uint64_t kReadings = 3;
  ReadProgress progress(NameOf(options.file), BytesToRead({options.file}, kReadings),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  Namer namer(*kernels);
  const auto looked = ReadInput(options.file, [&namer](const timeline::Entry& entry) {
    namer.Look(entry);
    return absl::OkStatus();
  });
  if (!looked.ok()) return Fail(looked.status());
  const std::vector<std::string> files = {options.file};
  const auto read = timeline::MergeTimelines(files, [&](std::span<const uint8_t> chunk) {
    return timeline::EditChunk(
        chunk, [&namer](v1::ChunkPayload& content) { return namer.Edit(content); },
        [&output](std::span<const uint8_t> bytes) { return (*output)->Append(bytes); });
  });
  progress.Stop();
  if (absl::IsCancelled(read.status())) return kExitOk;  // the reader of OUT has seen enough
  if (!read.ok()) return Fail(read.status());
  SayLosses(*read, (*output)->name());
  const std::string unknown = UnknownVms(*kernels, namer.Vms());
  if (!unknown.empty()) Note(unknown);
  if (namer.named() == 0) {
    return Fail(absl::StrCat(NameOf(options.file), ": ", NothingNamed(namer)));
  }
  for (const std::string& vm : namer.OtherKernels()) {
    Note(absl::StrCat("VM ", vm, " is not named: its code is not that of the vmlinux"));
  }
  if (absl::Status status = (*output)->Finish(); !status.ok()) return Fail(status);
  Note(namer.Done());
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
