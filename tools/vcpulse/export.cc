// `vcpulse export`: a timeline for other programs.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/export/csv.h"
#include "monitor/export/event_columns.h"
#include "monitor/export/jsonl.h"
#include "monitor/export/parquet.h"
#include "monitor/export/perfetto.h"
#include "monitor/reading/part.h"
#include "monitor/report/text_format.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/part_options.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/text_file.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

std::string ExportFooter() {
  return absl::StrCat(
      R"(Values that were not counted are null (jsonl, parquet) or empty (csv), never 0. Data that FILE has lost is
reported on stderr.

Examples:
  vcpulse export web.vpt --format jsonl > web.jsonl
  vcpulse export web.vpt --format csv --phase body -o web.csv
  vcpulse export web.vpt --format parquet -o web.parquet
  vcpulse export web.vpt --format perfetto -o web.pftrace

Formats:
  jsonl     a JSON object per vCPU and tick: t_mono_ns, t_wall_ns, interval_s, tick, vm, vm_name, vm_pid,
            vm_start_time, vm_uuid, epoch, vcpu, tid, kvm_id, the count of each event by perf's name,
            time_enabled_ns, time_running_ns, run_ns, run_delay_ns, state, )",
      RowMetrics(), R"(, band, raw_band, rule, confidence, starved
  csv       the same as a table: t_ns, t_wall_ns, dt_ns, tick, vm, vm_number, vm_pid, vm_uuid, epoch,
            vcpu, tid, kvm_id, a column per event, and the rest as above; `vcpulse import csv` reads it
  parquet   the columns of csv with their types, compressed, for DuckDB, pandas, Spark
  perfetto  a trace for ui.perfetto.dev: host, VMs, vCPUs; slices of one band, counters IPC and
            residency, starved, markers, gaps, windows of hot code and competitors; with --tracks threads it joins a system trace

The first sample of an epoch only begins an interval and has no row. jsonl, csv and
parquet hold no markers and no gaps. Every key and column: docs/export.md, docs/parquet.md.

Exit status:
  0  exported
  2  usage error, or a file could not be read or written)");
}

constexpr std::array<std::string_view, 4> kExportFormats = {"jsonl", "csv", "parquet", "perfetto"};

struct ExportOptions {
  std::vector<std::string> files = {kDefaultTimeline};
  std::string format;
  std::string output = "-";
  std::string tracks = "vms";
  PartOptions part;
  SymbolOptions symbols;

  absl::Status Validate() const;
};

absl::Status ExportOptions::Validate() const {
  if (std::ranges::find(kExportFormats, format) == kExportFormats.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: '", format, "' is none of jsonl, csv, parquet, perfetto"));
  }
  if (tracks != "vms" && format != "perfetto") {
    return absl::InvalidArgumentError("--tracks means nothing without --format perfetto");
  }
  if (symbols.Any() && format != "perfetto") {
    return absl::InvalidArgumentError(
        "--guest-...: rows hold no hot addresses to be named; they are in --format perfetto");
  }
  if (output.empty()) return absl::InvalidArgumentError("--output: the file name is empty");
  if (format == "perfetto" || format == "parquet") {
    absl::Status takes =
        CheckTakesBinary(output, format == "perfetto" ? "a Perfetto trace" : "a Parquet file");
    if (!takes.ok()) return takes;
  }
  return CheckNotSameFile(files, output);
}

// Whether the columns are those of all events of the file, so that they are looked for before.
bool IsTable(std::string_view format) { return format == "csv" || format == "parquet"; }

// `table` with a column for each event of the file.
template <typename Table>
absl::StatusOr<std::unique_ptr<exporting::Exporter>> Expecting(std::unique_ptr<Table> table,
                                                               const timeline::Input& input) {
  if (!input.IsStandardInput()) {
    const absl::Status status =
        exporting::FindSets(input, [&table](const v1::VcpuSet& set) { table->Expect(set); });
    if (!status.ok()) return ReadFailure(status, input);
  }
  return table;
}

absl::StatusOr<std::unique_ptr<exporting::Exporter>> NewExporter(
    const ExportOptions& options, const timeline::Input& input,
    const hotspots::GuestKernels& symbols, exporting::Sink sink) {
  if (options.format == "jsonl") return std::make_unique<exporting::JsonlExport>(std::move(sink));
  if (options.format == "perfetto") {
    using Tracks = exporting::PerfettoExport::Tracks;
    return std::make_unique<exporting::PerfettoExport>(
        std::move(sink), options.tracks == "threads" ? Tracks::kOfThreads : Tracks::kOfVms,
        symbols);
  }
  if (options.format == "csv") {
    return Expecting(std::make_unique<exporting::CsvExport>(std::move(sink)), input);
  }
  return Expecting(std::make_unique<exporting::ParquetExport>(std::move(sink), VCPULSE_VERSION),
                   input);
}

int RunExport(const ExportOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  const auto part = ParsePart(options.part);
  if (!part.ok()) return Fail(part.status());
  const absl::StatusOr<hotspots::GuestKernels> symbols = ReadSymbols(options.symbols);
  if (!symbols.ok()) return Fail(symbols.status());
  const auto input = timeline::Input::Join(options.files);
  if (!input.ok()) return Fail(input.status());
  auto output = TextFile::Open(options.output);
  if (!output.ok()) return Fail(output.status());
  const std::string name = input->Name();
  ReadProgress progress(name, BytesOfPart(*input, options.part, IsTable(options.format) ? 2 : 1),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  absl::Status written;
  const auto exporter = NewExporter(options, *input, *symbols, [&](std::string_view text) {
    written = output->Append(text);
    return written;
  });
  if (!exporter.ok()) {
    progress.Stop();
    return Fail(exporter.status());
  }
  bool any_tick = false;
  absl::Status taken;
  const auto read = reading::ReadPart(*input, *part, [&](const timeline::Entry& entry) {
    any_tick = any_tick || std::holds_alternative<timeline::TickEntry>(entry.record);
    taken = (*exporter)->Add(entry);
    return taken;
  });
  progress.Stop();
  if (absl::IsCancelled(written)) return kExitOk;  // `| head` has seen enough
  if (!written.ok()) return Fail(written);
  if (!taken.ok()) return Fail(absl::StrCat(name, ": ", taken.message()));
  if (!read.ok()) return Fail(ReadFailure(read.status(), *input));
  const std::string loss = report::DescribeLoss(read->read, (*exporter)->unusable_ticks(),
                                                part->to_ns || read->read.ended_in_order);
  const bool is_part = part->from_ns || part->to_ns || part->phase;
  if (is_part && !any_tick && read->read.damages.empty()) {
    return Fail(absl::StrCat(name, ": ", NothingInPart(options.part)));
  }
  if (read->read.records == 0) {
    return Fail(
        absl::StrCat(name, ": holds no record that can be read", loss.empty() ? "" : ": ", loss));
  }
  if ((*exporter)->Finish().ok()) written = output->Finish();
  if (!written.ok() && !absl::IsCancelled(written)) return Fail(written);
  Warn(name, loss);
  SayWritten(options.output);
  return kExitOk;
}

}  // namespace

void AddExportCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export", "Convert a timeline for other programs: JSON Lines, CSV, Parquet, Perfetto");
  command->footer(ExportFooter());
  AddInputOption(*command, options->files);
  command
      ->add_option("--format", options->format,
                   "JSON objects, a table as text or as Parquet, or a trace for ui.perfetto.dev")
      ->type_name("jsonl|csv|parquet|perfetto")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "file to write; an older one is kept as OUT.old [- : stdout]")
      ->type_name("OUT");
  command
      ->add_option("--tracks", options->tracks,
                   "perfetto: bands below their VMs, or below their threads, as in a trace of the "
                   "host's scheduler")
      ->check(
          [](const std::string& tracks) {
            return tracks == "vms" || tracks == "threads"
                       ? std::string()
                       : absl::StrCat("'", Printable(tracks), "' is neither vms nor threads");
          },
          "")
      ->type_name("vms|threads")
      ->capture_default_str();
  AddSymbolOptions(*command, options->symbols);
  AddPartOptions(*command, options->part);
  command->callback([options, &exit_code] { exit_code = RunExport(*options); });
}

}  // namespace vcpulse::tools
