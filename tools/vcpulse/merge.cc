// `vcpulse merge`: the parts of one recording as one timeline.

#include "monitor/timeline/merge.h"

#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kMergeFooter =
    R"(Usage: [OPTIONS] FILE... -o OUT
Parts may be given in any order and may overlap. Chunks are written in the order of their sequence
numbers, byte for byte as they were recorded, and duplicates once. Records that no part holds are
reported on stderr, and every reader of OUT counts them as lost. Recordings of several hosts or runs
stay separate: `report` and `export` read one, `compare` several.

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

std::string HolesText(const timeline::MergeReport& report) {
  std::vector<std::string> holes;
  holes.reserve(report.first_holes.size());
  for (const timeline::SequenceRange& hole : report.first_holes) {
    holes.push_back(hole.first == hole.last ? absl::StrCat(hole.first)
                                            : absl::StrCat(hole.first, " to ", hole.last));
  }
  const uint64_t more = report.holes - holes.size();
  return absl::StrCat("no part has records ", absl::StrJoin(holes, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more ranges") : "", ": ",
                      Plural(report.lost_records, "record"), " lost");
}

void SayWhatWasFound(const timeline::MergeReport& report, const std::string& output) {
  for (const timeline::MergeReport::Part& part : report.parts) {
    if (part.damages.empty()) continue;
    Warn(part.file, absl::StrCat("skipped ", Plural(part.damages.size(), "damaged region"),
                                 ", the first at byte ", part.damages.front().offset, ": ",
                                 part.damages.front().reason));
  }
  if (report.repeated_chunks > 0) {
    Fail(absl::StrCat(output, ": ", Plural(report.repeated_chunks, "chunk"),
                      " found in several parts, written once"));
  }
  if (report.first_sequence > 1) {
    Warn(output, absl::StrCat("begins with record ", report.first_sequence,
                              ": no part has those before it"));
  }
  if (report.holes > 0) Warn(output, HolesText(report));
  if (!report.ended_in_order) {
    Warn(output,
         "the end of the recording is in no part (it was killed, is still running, or a part is "
         "not named)");
  }
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
  SayWhatWasFound(*merged, (*output)->name());
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
