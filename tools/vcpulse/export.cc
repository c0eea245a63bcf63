#include <memory>
#include <span>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "monitor/recorder/output_file.h"
#include "monitor/report/jsonl_export.h"
#include "monitor/report/loss_text.h"
#include "monitor/timeline/reader.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/same_file.h"
#include "tools/vcpulse/standard_output.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr size_t kWrittenAtOnce = 1 << 16;

constexpr const char* kFooter =
    R"(jsonl: one JSON object per line, one per vCPU and tick: time, VM, vCPU, the count of each event in
the interval, times on the CPU and on the PMU, state, residency, IPC, and the verdict. What was not
counted is null, never 0. The first sample of an epoch has nothing to be subtracted from: no line.
Field list: monitor/report/jsonl_export.h. What FILE lost is warned of on stderr.
Exit codes: 0 exported, 2 usage error, or nothing could be read or written.)";

struct ExportOptions {
  std::string file;
  std::string format;
  std::string output = "-";

  absl::Status Validate() const;
};

absl::Status ExportOptions::Validate() const {
  if (format != "jsonl") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: '", format, "' is not known; jsonl is"));
  }
  if (output.empty()) return absl::InvalidArgumentError("--output: the file name is empty");
  return CheckNotSameFile(file, output);
}

// Gathers lines, so that each is no system call of its own.
class LineOutput {
 public:
  static absl::StatusOr<LineOutput> Open(const std::string& path) {
    LineOutput output;
    if (path == "-") return output;
    auto file = recorder::OutputFile::Create(path, recorder::OutputFile::Appears::kWhenFinished);
    if (!file.ok()) return file.status();
    output.file_ = *std::move(file);
    return output;
  }

  absl::Status Append(const std::string& line) {
    gathered_ += line;
    return gathered_.size() < kWrittenAtOnce ? absl::OkStatus() : Write();
  }

  // After the last line: the file takes its name, also where there was no line.
  absl::Status Finish() {
    absl::Status status = Write();
    if (status.ok() && file_ != nullptr) status = file_->Finish();
    return status;
  }

 private:
  LineOutput() = default;

  absl::Status Write() {
    absl::Status status;
    if (file_ == nullptr) {
      status = WriteToStdout(gathered_);
    } else {
      const auto* bytes = reinterpret_cast<const uint8_t*>(gathered_.data());
      status = file_->Append(std::span(bytes, gathered_.size()));
    }
    gathered_.clear();
    return status;
  }

  std::unique_ptr<recorder::OutputFile> file_;  // null: standard output
  std::string gathered_;
};

int RunExport(const ExportOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  auto output = LineOutput::Open(options.output);
  if (!output.ok()) return Fail(output.status());
  absl::Status written;
  report::JsonlExport rows([&](const std::string& line) {
    written = output->Append(line);
    return written;
  });
  const auto read = ReadInput(options.file, [&](const timeline::Entry& entry) {
    absl::Status status = rows.Add(entry);
    if (status.ok() || !written.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(NameOf(options.file), ": ", status.message()));
  });
  if (absl::IsCancelled(written)) return kExitOk;  // `| head` has seen enough
  if (!read.ok()) return Fail(read.status());
  const std::string loss = report::DescribeLoss(*read, rows.unusable_ticks(), read->ended_in_order);
  if (read->records == 0) {
    return Fail(absl::StrCat(NameOf(options.file), ": holds no record that can be read",
                             loss.empty() ? "" : ": ", loss));
  }
  written = output->Finish();
  if (!written.ok() && !absl::IsCancelled(written)) return Fail(written);
  Warn(options.file, loss);
  return kExitOk;
}

}  // namespace

void AddExportCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "A timeline as rows for other programs: FILE --format jsonl");
  command->footer(kFooter);
  command->add_option("FILE", options->file, "Timeline to read; - is standard input")->required();
  command->add_option("--format", options->format, "one JSON object per line")
      ->type_name("jsonl")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "file to write; an older one is kept as OUT.old [- : stdout]")
      ->type_name("OUT");
  command->callback([options, &exit_code] { exit_code = RunExport(*options); });
}

}  // namespace vcpulse::tools
