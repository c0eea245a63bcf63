// `vcpulse rollup`: timelines as rows of sums, per vCPU and window of the wall clock.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "monitor/rollup/row_parquet.h"
#include "monitor/rollup/row_text.h"
#include "monitor/rollup/windows.h"
#include "monitor/timeline/recordings.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/rollup_options.h"
#include "tools/vcpulse/text_file.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kRollupFooter =
    R"(An interval counts in the window in which it ends, so rows of 10 s add up to rows of 1 m, and to the
totals of `vcpulse report`, exactly. Rows hold sums and maxima, no shares: time in each band, starved
and gaps, the longest spin and starvation, counts of events, run delay, exits. What was not counted is
null (jsonl, parquet) or empty (csv), never 0. Parts of one recording that several FILEs hold are joined.
docs/rollups.md describes every column, docs/queries.md has SQL over them.

Examples:
  vcpulse rollup web.vpt --window 10s > web.csv
  vcpulse rollup /srv/vcpulse --window 10s,1m --format jsonl -o rollups/
  vcpulse rollup /srv/vcpulse --format parquet -o fleet.parquet

Exit status:
  0  written; a FILE or recording that could not be read is named on stderr and left out
  2  usage error, nothing could be read, or a file could not be written)";

constexpr std::string_view kParquet = "parquet";

struct RollupOptions {
  std::vector<std::string> files = {kDefaultTimeline};
  std::string window = "1m";
  std::string format = "csv";
  std::string output = "-";
};

// Where the rows of each window go: one file, or one per window in a folder.
class RollupOutput {
 public:
  static absl::StatusOr<RollupOutput> Open(const RollupOptions& options,
                                           const std::vector<Window>& windows) {
    RollupOutput output;
    std::error_code unknown;
    const bool is_folder =
        options.output.ends_with('/') || std::filesystem::is_directory(options.output, unknown);
    if (!is_folder) {
      const std::string names = absl::StrJoin(
          windows, ",", [](std::string* to, const Window& w) { absl::StrAppend(to, w.name); });
      absl::Status added = output.Add(options.output, options.format, names);
      if (!added.ok()) return added;
      return output;
    }
    std::error_code error;
    std::filesystem::create_directories(options.output, error);
    if (error) {
      return absl::ErrnoToStatus(error.value(),
                                 absl::StrCat("--output: cannot make directory ", options.output));
    }
    for (const Window& window : windows) {
      const std::filesystem::path folder = options.output;
      absl::Status added = output.Add(folder / absl::StrCat(window.name, ".", options.format),
                                      options.format, window.name);
      if (!added.ok()) return added;
    }
    return output;
  }

  absl::Status Add(size_t level, const rollup::Row& row) {
    absl::Status added = tables_[level % tables_.size()]->Add(row);
    has_failed_ = !added.ok();
    return added;
  }
  // The last row could not be written.
  bool has_failed() const { return has_failed_; }
  absl::Status Finish() {
    for (const auto& table : tables_) {
      if (absl::Status status = table->Finish(); !status.ok()) return status;
    }
    for (const auto& file : files_) {
      if (absl::Status status = file->Finish(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // A file with the rows of `windows`, "10s,1m".
  absl::Status Add(const std::string& path, const std::string& format, const std::string& windows) {
    auto file = TextFile::Open(path);
    if (!file.ok()) return file.status();
    TextFile* const to = files_.emplace_back(std::make_unique<TextFile>(*std::move(file))).get();
    const auto sink = [to](std::string_view bytes) { return to->Append(bytes); };
    if (const auto text = rollup::FindFormat(format)) {
      tables_.push_back(std::make_unique<rollup::RowText>(*text, sink));
      return absl::OkStatus();
    }
    auto table = rollup::RowParquet::Create(sink, {.version = VCPULSE_VERSION, .window = windows});
    if (!table.ok()) return table.status();
    tables_.push_back(*std::move(table));
    return absl::OkStatus();
  }

  std::vector<std::unique_ptr<TextFile>> files_;
  std::vector<std::unique_ptr<rollup::RowWriter>> tables_;
  bool has_failed_ = false;
};

// Adds the rows of one recording. Errors: those of reading and of the output.
absl::Status RollUp(const timeline::Recording& recording, const std::vector<int64_t>& lengths_ns,
                    RollupOutput& output) {
  const auto input = timeline::Input::Join(recording.paths);
  if (!input.ok()) return ReadFailure(input.status(), recording.paths.front());
  const std::string name = input->Name();
  rollup::Windows windows(lengths_ns, [&output](size_t level, const rollup::Row& row) {
    return output.Add(level, row);
  });
  absl::Status refused;
  const auto read = ReadInput(*input, [&](const timeline::Entry& entry) {
    absl::Status added = windows.Add(entry);
    if (absl::IsInvalidArgument(added)) {
      added = absl::InvalidArgumentError(absl::StrCat(name, ": ", added.message()));
    }
    return added;
  });
  if (!read.ok()) return read.status();
  const std::string loss =
      report::DescribeLoss(*read, windows.unusable_ticks(), read->ended_in_order);
  if (read->records == 0) {
    return absl::DataLossError(
        absl::StrCat(name, ": holds no record that can be read", loss.empty() ? "" : ": ", loss));
  }
  if (absl::Status status = windows.Finish(); !status.ok()) return status;
  Warn(name, loss);
  if (windows.undated_intervals() > 0) {
    Warn(name, absl::StrCat(Plural(windows.undated_intervals(), "interval"),
                            " in no row: the recording does not hold the time of day"));
  }
  return absl::OkStatus();
}

// `status` names the recording.
void WarnLeftOut(const absl::Status& status) {
  std::fprintf(stderr, "vcpulse: warning: %s: left out\n", std::string(status.message()).c_str());
}

// The rows of all recordings that can be read; of the others it warns. Errors: those of the output,
// and where none can be read, that of the last one.
absl::Status WriteRows(const timeline::FoundRecordings& found,
                       const std::vector<int64_t>& lengths_ns, RollupOutput& output) {
  bool has_any = false;
  std::vector<absl::Status> unread = found.left_out;
  for (const timeline::Recording& recording : found.recordings) {
    absl::Status status = RollUp(recording, lengths_ns, output);
    if (output.has_failed()) return status;
    has_any = has_any || status.ok();
    if (!status.ok()) unread.push_back(std::move(status));
  }
  const size_t warned = unread.size() - (has_any ? 0 : 1);
  for (size_t i = 0; i < warned; ++i) WarnLeftOut(unread[i]);
  return has_any ? output.Finish() : unread.back();
}

int RunRollup(const RollupOptions& options) {
  const auto windows = ParseWindows("--window", options.window);
  if (!windows.ok()) return Fail(windows.status());
  const bool is_parquet = options.format == kParquet;
  if (!is_parquet && !rollup::FindFormat(options.format)) {
    return Fail(
        absl::StrCat("--format: ", Quoted(options.format), " is none of csv, jsonl, parquet"));
  }
  if (options.output.empty()) return Fail("--output: the file name is empty");
  if (is_parquet) {
    absl::Status takes = CheckTakesBinary(options.output, "a Parquet file");
    if (!takes.ok()) return Fail(takes);
  }
  if (absl::Status status = CheckNotSameFile(options.files, options.output); !status.ok()) {
    return Fail(status);
  }
  const auto found = timeline::FindRecordings(options.files);
  if (found.recordings.empty()) {
    for (size_t i = 0; i + 1 < found.left_out.size(); ++i) WarnLeftOut(found.left_out[i]);
    return Fail(ReadFailure(found.left_out.back(), options.files.front()));
  }
  auto output = RollupOutput::Open(options, *windows);
  if (!output.ok()) return Fail(output.status());
  std::vector<int64_t> lengths_ns;
  std::vector<std::string> paths;
  for (const Window& window : *windows) lengths_ns.push_back(window.length_ns);
  for (const timeline::Recording& recording : found.recordings) {
    paths.insert(paths.end(), recording.paths.begin(), recording.paths.end());
  }
  ReadProgress progress(Plural(found.recordings.size(), "recording"), BytesToRead(paths),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  const absl::Status status = WriteRows(found, lengths_ns, *output);
  progress.Stop();
  if (absl::IsCancelled(status)) return kExitOk;  // `| head` has seen enough
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace

void AddRollupCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RollupOptions>();
  CLI::App* command =
      app.add_subcommand("rollup", "Sum timelines up: a row per vCPU and window of time");
  command->footer(kRollupFooter);
  AddInputOption(*command, options->files,
                 "timelines, folders of parts, or a collector's directory; - is standard input");
  command
      ->add_option("--window", options->window,
                   "lengths of the windows, at most 24h, with commas between")
      ->type_name("DURATION,...")
      ->capture_default_str();
  command
      ->add_option("--format", options->format,
                   "a table as text or as Parquet, or a JSON object per row")
      ->type_name("csv|jsonl|parquet")
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->output,
                   "file to write, an older one is kept as OUT.old; or a folder (OUT/), for a file "
                   "per window [- : stdout]")
      ->type_name("OUT");
  command->callback([options, &exit_code] { exit_code = RunRollup(*options); });
}

}  // namespace vcpulse::tools
