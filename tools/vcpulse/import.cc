// `vcpulse import csv`: counter deltas from elsewhere as a timeline.
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/text.h"
#include "monitor/import/csv_import.h"
#include "monitor/import/csv_reader.h"
#include "monitor/import/csv_table.h"
#include "monitor/recorder/output_file.h"
#include "monitor/recorder/stream_id.h"
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/read_whole.h"
#include "tools/vcpulse/same_file.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr char kColumns[] =
    "Columns, found by their names in the first row: t_ns (when the interval ended, "
    "CLOCK_MONOTONIC "
    "or any other count of ns), dt_ns (how long it was), vm, vcpu, cycles, instructions, branches, "
    "branch_misses, cache_misses, ref_cycles, pause (PAUSE instructions), pause_cycles (cycles in "
    "PAUSE), time_enabled_ns (the vCPU's thread was on a CPU), time_running_ns (thereof counted), "
    "run_ns and run_delay_ns (schedstat), state (S D I R T t Z X, or blocked runnable stopped "
    "paused exited). Counts are those of the interval. A missing column or an empty cell is an "
    "absent value, never 0. t_ns or dt_ns is needed. Rows are held in memory: at most 4,000,000.";

// More is no table of so many rows.
constexpr size_t kMaxFileBytes = size_t{2} << 30;

struct ImportOptions {
  std::string file;
  std::string output;
  std::optional<double> tsc_hz;
  std::optional<double> max_hz;
  ClassifierOptions classifier;
};

absl::Status CheckHz(const char* flag, const std::optional<double>& hz) {
  if (!hz || (std::isfinite(*hz) && *hz >= 1e6 && *hz <= 1e11)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", *hz, " is no frequency of a CPU in Hz (2.5e9 is 2.5 GHz)"));
}

std::string Plural(uint64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// What the columns could have told, and did not for want of an option.
std::vector<std::string> Unused(const csv::FieldSet& columns, const csv::ImportOptions& options) {
  const auto has = [&columns](csv::Field field) { return columns[static_cast<size_t>(field)]; };
  std::vector<std::string> unused;
  if (has(csv::Field::kRefCycles) && !options.tsc_hz) {
    unused.emplace_back("ref_cycles are not used: --tsc-hz says what they are a share of");
  }
  if (!has(csv::Field::kRefCycles) && options.tsc_hz) {
    unused.emplace_back("--tsc-hz is not used: there is no column ref_cycles");
  }
  if (has(csv::Field::kPause) && !options.profile.values.evidence.pause_cycles_each) {
    unused.push_back(absl::StrCat("pause counts instructions, and profile '", options.profile.name,
                                  "' does not say how long one takes: --profile names the CPU's "
                                  "(`vcpulse list profiles`)"));
  }
  return unused;
}

void Say(const csv::CsvTable& table, const csv::ImportOptions& options,
         const csv::ImportReport& report) {
  const auto note = [&](const std::string& text) {
    std::fprintf(stderr, "vcpulse: %s: %s\n", table.name.c_str(), text.c_str());
  };
  for (const std::string& substitution : report.substitutions) note(substitution);
  for (const std::string& unused : Unused(table.columns, options)) note(unused);
  if (report.only_begin > 0) {
    note(absl::StrCat(Plural(report.only_begin, "row"),
                      " without dt_ns came first of their vCPU: they only say when the next "
                      "interval began"));
  }
  if (report.says_nothing > 0) {
    note(absl::StrCat("left out ", Plural(report.says_nothing, "row"),
                      " with neither a count nor a time: nothing says what their vCPU did"));
  }
  std::vector<std::string> ignored;
  ignored.reserve(table.ignored.size());
  for (const std::string& column : table.ignored) ignored.push_back(csv::Quoted(column));
  if (!ignored.empty()) note(absl::StrCat("ignored columns: ", absl::StrJoin(ignored, ", ")));
  note(absl::StrCat("imported ", Plural(report.intervals, "row"), ": ", Plural(report.vms, "VM"),
                    ", ", Plural(report.vcpus, "vCPU"), ", ", Plural(report.ticks, "tick")));
}

absl::Status Import(const ImportOptions& options) {
  if (options.output.empty()) {
    return absl::InvalidArgumentError("--output: the file name is empty");
  }
  if (options.output == "-" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "--output: - is a terminal, and a timeline is binary: redirect it or name a file");
  }
  absl::Status status = CheckNotSameFile(options.file, options.output);
  status.Update(CheckHz("--tsc-hz", options.tsc_hz));
  status.Update(CheckHz("--max-hz", options.max_hz));
  if (!status.ok()) return status;
  csv::ImportOptions import{.tsc_hz = options.tsc_hz, .max_hz = options.max_hz};
  // Whose CPU it was, the file does not say: a profile is "generic" unless it is named.
  absl::StatusOr<ResolvedClassifier> resolved = Resolve(options.classifier, /*cpu=*/nullptr);
  if (!resolved.ok()) return resolved.status();
  import.classifier = resolved->choice;
  import.profile = std::move(resolved->profile);
  import.tool_version = VCPULSE_VERSION;
  const absl::StatusOr<timeline::StreamId> id = recorder::RandomStreamId();
  if (!id.ok()) return id.status();
  import.stream_id = *id;

  absl::StatusOr<csv::CsvTable> table = [&]() -> absl::StatusOr<csv::CsvTable> {
    const absl::StatusOr<std::string> text = ReadWhole(options.file, kMaxFileBytes);
    if (!text.ok()) return text.status();
    return csv::ParseCsv(*text, NameOf(options.file));
  }();
  if (!table.ok()) return table.status();
  auto output =
      recorder::OutputFile::Create(options.output, recorder::OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return output.status();
  // Nothing is written before all of it is known to be good.
  std::vector<uint8_t> bytes;
  const auto writer =
      timeline::NewChunkWriter(import.stream_id, [&](std::span<const uint8_t> chunk) {
        bytes.insert(bytes.end(), chunk.begin(), chunk.end());
        return absl::OkStatus();
      });
  const absl::StatusOr<csv::ImportReport> report = csv::ImportCsv(*table, import, *writer);
  if (!report.ok()) return report.status();
  status = (*output)->Append(bytes);
  if (status.ok()) status = (*output)->Finish();
  if (!status.ok()) return status;
  Say(*table, import, *report);
  return absl::OkStatus();
}

int RunImport(const ImportOptions& options) {
  const absl::Status status = Import(options);
  // Cancelled: the reader of OUT has seen enough.
  return status.ok() || absl::IsCancelled(status) ? kExitOk : Fail(status);
}

}  // namespace

void AddImportCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  // No variable here is called `import`: clang-format takes it for the module keyword.
  CLI::App* parent =
      app.add_subcommand("import", "A timeline of counters that came from elsewhere");
  parent->callback([parent, &exit_code] {
    if (parent->get_subcommands().empty()) {
      exit_code = Fail("import: csv is what can be imported: vcpulse import csv FILE -o OUT");
    }
  });
  CLI::App* command =
      parent->add_subcommand("csv", "Counter deltas in a CSV file, one row per vCPU and interval");
  command->footer(kColumns);
  command->add_option("FILE", options->file, "CSV file to read; - is standard input")
      ->type_name("CSV")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "timeline to write, - for stdout; an older one is kept as OUT.old")
      ->type_name("OUT")
      ->required();
  command->add_option("--tsc-hz", options->tsc_hz, "TSC frequency: what ref_cycles are a share of")
      ->type_name("HZ");
  command
      ->add_option("--max-hz", options->max_hz,
                   "highest core frequency: what cycles are a share of [the highest rate seen]")
      ->type_name("HZ");
  AddClassifierOptions(*command, options->classifier, "[generic]");
  command->callback([options, &exit_code] { exit_code = RunImport(*options); });
}

}  // namespace vcpulse::tools
