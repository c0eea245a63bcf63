// `vcpulse merge`: the parts of one recording as one timeline.

#include "monitor/timeline/merge.h"

#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/merge_losses.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kMergeFooter =
    R"(Usage: [OPTIONS] FILE... -o OUT
Parts may be given in any order and may overlap. Chunks are written in the order of their sequence
numbers, byte for byte as they were recorded, and duplicates once. Records that no part holds are
reported on stderr, and every reader of OUT counts them as lost. Empty files and folders are
skipped, with a warning. Recordings of several hosts or runs stay separate: `report` and `export`
read one, `compare` several.

Examples:
  vcpulse merge part1.vpt part2.vpt -o whole.vpt
  vcpulse merge /srv/vcpulse/host1/20261122T072146Z-* -o host1.vpt

Exit status:
  0  written, also where records are missing from all parts
  2  usage error, or a file could not be read or written)";

constexpr int kMostParts = 1'000'000;

struct MergeOptions {
  std::vector<std::string> files;
  std::string output;

  absl::Status Validate() const;
};

absl::Status MergeOptions::Validate() const {
  if (output == "-" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "--output: - is a terminal, and a timeline is binary: redirect it or name a file");
  }
  for (const std::string& file : files) {
    if (file == "-") {
      return absl::InvalidArgumentError(
          "standard input cannot be a part, as parts are read twice: name a file");
    }
    if (absl::Status status = CheckNotSameFile(file, output); !status.ok()) return status;
  }
  return absl::OkStatus();
}

int RunMerge(const MergeOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  const auto output = OutputFile::Create(options.output, OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return Fail(output.status());
  constexpr uint64_t kReadings = 2;  // for the order of the chunks, then to write them
  ReadProgress progress(Plural(options.files.size(), "part"), BytesToRead(options.files, kReadings),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  const auto merged = timeline::MergeTimelines(
      options.files,
      [&output](std::span<const uint8_t> bytes) { return (*output)->Append(bytes); });
  progress.Stop();
  if (absl::IsCancelled(merged.status())) return kExitOk;  // the reader of OUT has seen enough
  if (!merged.ok()) return Fail(merged.status());
  if (absl::Status status = (*output)->Finish(); !status.ok()) return Fail(status);
  SayLosses(*merged, (*output)->name());
  SayWritten(options.output);
  return kExitOk;
}

}  // namespace

void AddMergeCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "Join the parts of one recording");
  command->footer(kMergeFooter);
  // By a callback: an option that is a vector takes "[a,b]" apart.
  const auto take = [options](const std::vector<std::string>& values) {
    options->files = values;
    return true;
  };
  command
      ->add_option("FILE", take,
                   "Parts of one recording, or folders of parts, as a collector keeps them")
      ->expected(1, kMostParts)
      ->allow_extra_args()
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "file to write, - for stdout; an older one is kept as OUT.old")
      ->type_name("OUT")
      ->required();
  command->callback([options, &exit_code] { exit_code = RunMerge(*options); });
}

}  // namespace vcpulse::tools
