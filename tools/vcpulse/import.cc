// `vcpulse import`: counters from elsewhere as a timeline.
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/fd.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "monitor/import/csv_reader.h"
#include "monitor/import/csv_table.h"
#include "monitor/import/importer.h"
#include "monitor/import/perf_json.h"
#include "monitor/import/table.h"
#include "monitor/import/text_source.h"
#include "monitor/recorder/session_record.h"
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr size_t kMostNames = 10;

std::string Plural(uint64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// What the columns could have told, and did not for want of an option.
void AddUnused(const importing::Table& table, const importing::ImportOptions& options,
               std::vector<std::string>& notes) {
  const bool ref_cycles = table.IsCounted("ref-cycles");
  if (ref_cycles && !options.tsc_hz) {
    notes.emplace_back("ref_cycles are ignored: --tsc-hz HZ would say what they are a share of");
  }
  if (!ref_cycles && options.tsc_hz) {
    notes.emplace_back("--tsc-hz is not used: nothing counts ref_cycles");
  }
  if (table.has_verdicts) {
    notes.push_back(
        absl::StrCat("bands in the file are not used: they are judged anew from its "
                     "counts, with profile '",
                     options.profile.name, "'"));
  }
  if (table.FindEvent("pause") && !options.profile.values.evidence.pause_cycles_each) {
    notes.push_back(absl::StrCat("pause counts instructions, and profile '", options.profile.name,
                                 "' does not say how long one takes: --profile names the CPU's "
                                 "(`vcpulse list profiles`)"));
  }
}

void AddLeftOut(const importing::Table& table, const importing::ImportReport& report,
                std::vector<std::string>& notes) {
  if (report.only_begin > 0) {
    notes.push_back(absl::StrCat(Plural(report.only_begin, table.unit),
                                 " without dt_ns came first of their vCPU: they only say when the "
                                 "next interval began"));
  }
  if (report.says_nothing > 0) {
    notes.push_back(absl::StrCat("left out ", Plural(report.says_nothing, table.unit),
                                 " with neither a count nor a time: nothing says what their vCPU "
                                 "did"));
  }
  if (report.impossible > 0) {
    notes.push_back(absl::StrCat(Plural(report.impossible, table.unit),
                                 " with counts that no CPU makes (more than 10 GHz or 20 "
                                 "instructions per cycle), first ",
                                 table.unit, " ", report.first_impossible,
                                 ": imported as they are"));
  }
  for (const importing::Skipped& kind : table.skipped) {
    notes.push_back(absl::StrCat("skipped ", Plural(kind.lines, "line"), ", first line ",
                                 kind.first, ": ", kind.what));
  }
  std::vector<std::string> ignored;
  for (const std::string& name : table.ignored) {
    if (ignored.size() == kMostNames) break;
    ignored.push_back(Quoted(name));
  }
  if (ignored.empty()) return;
  const size_t more = table.ignored.size() - ignored.size();
  notes.push_back(absl::StrCat("ignored ", table.unit == "line" ? "keys" : "columns", ": ",
                               absl::StrJoin(ignored, ", "),
                               more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

// What a person is told after an import: what stands for what, what was left out and why, and last
// how much came in. A line each, safe for a terminal.
std::vector<std::string> ImportNotes(const importing::Table& table,
                                     const importing::ImportOptions& options,
                                     const importing::ImportReport& report) {
  std::vector<std::string> notes = report.substitutions;
  AddUnused(table, options, notes);
  AddLeftOut(table, report, notes);
  notes.push_back(absl::StrCat(
      "imported ", Plural(report.intervals, table.unit == "line" ? "interval" : table.unit), ": ",
      Plural(report.vms, "VM"), ", ", Plural(report.vcpus, "vCPU"), ", ",
      Plural(report.ticks, "tick")));
  for (std::string& note : notes) note = Printable(note);
  return notes;
}

constexpr char kColumns[] =
    R"(Columns are found by their names in the first row. t_ns or dt_ns is required. A missing column or an
empty cell is an absent value, never 0. Derived values (bands, residency, ...) are recomputed.

Examples:
  vcpulse import csv counters.csv --tsc-hz 2.5e9 --profile intel-ice-lake-sp -o other.vpt

Columns:
  t_ns             when the interval ended: CLOCK_MONOTONIC or any other count of ns
  dt_ns            its length
  vm, vcpu         the VM's name and the vCPU's number
  cycles, instructions, branches, branch_misses, cache_misses, ref_cycles  counts of the interval
  pause            PAUSE instructions
  pause_cycles     cycles in PAUSE
  time_enabled_ns  time for which the vCPU's thread was on a CPU
  time_running_ns  time of it that was counted
  run_ns, run_delay_ns  on a CPU, and waiting for one, by schedstat
  state            S D I R T t Z X, or blocked runnable stopped paused io-wait exited
  vm_number, vm_pid, vm_start_time, vm_uuid  identify VMs that share a name
  tid, kvm_id, epoch, tick, t_wall_ns  kept
  EVENT            a count, by perf's name: L1-dcache-load-misses, r01a8, kvm:kvm_exit,
                   cpu/event=0x3c/, a.name; in a file of `vcpulse export` any other column as well

Files of any length are read twice. Memory stays constant where rows are sorted by time; a row may be
2,000,000 rows late.

Exit status:
  0  written
  2  usage error, or a file could not be read or written)";

constexpr char kKeys[] =
    R"(Reads one JSON object per vCPU and interval, as `vcpulse export --format jsonl` writes them. t_mono_ns
or interval_s is required. A missing key or null is an absent value, never 0. Derived values (bands,
residency, ...) are recomputed. A last line that was cut off is skipped.

Examples:
  vcpulse import jsonl rows.jsonl -o again.vpt

Keys:
  t_mono_ns        when the interval ended
  interval_s       its length, seconds
  vm               the VM's number
  vcpu             the vCPU's number
  vm_name, vm_pid, vm_start_time, vm_uuid, tid, kvm_id, epoch, tick, t_wall_ns  kept
  time_enabled_ns, time_running_ns, run_ns, run_delay_ns, state, counted_share  as exported
  EVENT            a count, by perf's name

Files of any length are read twice. Memory stays constant where lines are sorted by time; a line may be
2,000,000 lines late.

Exit status:
  0  written
  2  usage error, or a file could not be read or written)";

constexpr char kPerf[] =
    R"(Reads the output of `perf stat -I 100 -j --per-thread -e cycles:G,instructions:G -t TIDS -o FILE`.
Threads with the names of vCPUs (CPU 0/KVM) are the vCPUs. With several VMs, a vCPU number that
repeats with rising TIDs belongs to the next VM. With -A each CPU of the host stands for a vCPU.
Without --per-thread the total is vCPU 0. Totals of cores, dies, sockets and nodes are skipped.

Counts are perf's: where events took turns, it has extrapolated them. <not counted> and <not
supported> are absent values, never 0, unless the thread was off its CPU throughout. Events that count
the host too (without :G) keep their modifier in their name (cycles:H) and give no verdict. Lines that
are not counts are skipped and listed by kind. At most 4,000,000 intervals of threads are read.

Examples:
  vcpulse import perf-json perf.json -o perf.vpt

Exit status:
  0  written
  2  usage error, or a file could not be read or written)";

// More is no table of so many rows.
constexpr size_t kMaxFileBytes = size_t{2} << 30;

using RowsOf = std::unique_ptr<importing::RowReader> (*)(importing::TextSource& source,
                                                         const std::string& name);

struct ImportOptions {
  RowsOf rows = nullptr;  // nothing for perf-json
  std::string file;
  std::string output;
  std::optional<double> tsc_hz;
  std::optional<double> max_hz;
  ClassifierOptions classifier;
};

absl::Status CheckHz(const char* flag, const std::optional<double>& hz) {
  if (!hz || (std::isfinite(*hz) && *hz >= 1e6 && *hz <= 1e11)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", *hz, " is not a frequency of a CPU in Hz (2.5e9 is 2.5 GHz)"));
}

absl::StatusOr<importing::ImportOptions> Settings(const ImportOptions& options) {
  importing::ImportOptions settings{.tsc_hz = options.tsc_hz, .max_hz = options.max_hz};
  // Whose CPU it was, the file does not say: a profile is "generic" unless it is named.
  absl::StatusOr<ResolvedClassifier> resolved = Resolve(options.classifier, /*root=*/std::nullopt);
  if (!resolved.ok()) return resolved.status();
  settings.classifier = resolved->choice;
  settings.profile = std::move(resolved->profile);
  settings.tool_version = VCPULSE_VERSION;
  settings.stream_id = timeline::RandomStreamId();
  return settings;
}

// Notes for people, of a text of any length.
absl::StatusOr<std::vector<std::string>> ImportStreamed(const ImportOptions& options,
                                                        const importing::ImportOptions& settings,
                                                        timeline::RecordWriter& writer) {
  const absl::StatusOr<Fd> fd = OpenRereadable(options.file);
  if (!fd.ok()) return fd.status();
  const std::string name = NameOf(options.file);
  const auto read = [&](uint64_t offset, std::span<char> into) -> absl::StatusOr<size_t> {
    while (true) {
      const ssize_t got = ::pread(fd->get(), into.data(), into.size(), static_cast<off_t>(offset));
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
    }
  };
  importing::PiecedText text(read, options.rows == &importing::CsvRows);
  const std::unique_ptr<importing::RowReader> rows = options.rows(text, name);
  const absl::StatusOr<importing::ImportReport> report =
      importing::ImportRows(*rows, settings, writer);
  if (!report.ok()) return report.status();
  return ImportNotes(rows->table(), settings, *report);
}

// The same of a text that must fit into memory.
absl::StatusOr<std::vector<std::string>> ImportWhole(const ImportOptions& options,
                                                     const importing::ImportOptions& settings,
                                                     timeline::RecordWriter& writer) {
  absl::StatusOr<importing::Table> table = [&]() -> absl::StatusOr<importing::Table> {
    const absl::StatusOr<std::string> text = ReadWhole(options.file, kMaxFileBytes);
    if (!text.ok()) return text.status();
    return importing::ParsePerfJson(*text, NameOf(options.file));
  }();
  if (!table.ok()) return table.status();
  const absl::StatusOr<importing::ImportReport> report =
      importing::ImportTable(*table, settings, writer);
  if (!report.ok()) return report.status();
  return ImportNotes(*table, settings, *report);
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
  const absl::StatusOr<importing::ImportOptions> settings = Settings(options);
  if (!settings.ok()) return settings.status();

  // What it says of the input leaves an older output alone.
  const auto output = OutputFile::Create(options.output, OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return output.status();
  const auto writer = timeline::NewChunkWriter(
      settings->stream_id,
      [&](std::span<const uint8_t> chunk) { return (*output)->Append(chunk); });
  constexpr uint64_t kReadings = 2;  // for what all rows have, then to write them
  ReadProgress progress(NameOf(options.file),
                        BytesToRead({options.file}, options.rows != nullptr ? kReadings : 1),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  const absl::StatusOr<std::vector<std::string>> notes =
      options.rows != nullptr ? ImportStreamed(options, *settings, *writer)
                              : ImportWhole(options, *settings, *writer);
  progress.Stop();
  if (!notes.ok()) return notes.status();
  status = (*output)->Finish();
  if (!status.ok()) return status;
  for (const std::string& note : *notes) {
    std::fprintf(stderr, "vcpulse: %s: %s\n", NameOf(options.file).c_str(), note.c_str());
  }
  SayWritten(options.output);
  return absl::OkStatus();
}

int RunImport(const ImportOptions& options) {
  const absl::Status status = Import(options);
  // Cancelled: the reader of OUT has seen enough.
  return status.ok() || absl::IsCancelled(status) ? kExitOk : Fail(status);
}

void AddFormat(CLI::App& parent, const char* name, const char* what, const char* footer,
               const char* file_type, RowsOf rows, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  options->rows = rows;
  CLI::App* command = parent.add_subcommand(name, what);
  command->footer(footer);
  command->add_option("FILE", options->file, "file to read; - is standard input")
      ->type_name(file_type)
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

}  // namespace

void AddImportCommand(CLI::App& app, int& exit_code) {
  // No variable here is called `import`: clang-format takes it for the module keyword.
  CLI::App* parent = app.add_subcommand("import", "Make a timeline of counters from other tools");
  parent->callback([parent, &exit_code] {
    if (parent->get_subcommands().empty()) {
      exit_code = Fail(
          "import: csv, jsonl and perf-json are what can be imported: vcpulse import csv FILE -o "
          "OUT");
    }
  });
  AddFormat(*parent, "csv", "Counter deltas in a CSV file, one row per vCPU and interval", kColumns,
            "CSV", &importing::CsvRows, exit_code);
  AddFormat(*parent, "jsonl", "JSON lines as `vcpulse export --format jsonl` writes them", kKeys,
            "JSONL", &importing::JsonlRows, exit_code);
  AddFormat(*parent, "perf-json", "Output of `perf stat -I N -j`", kPerf, "JSON", nullptr,
            exit_code);
}

}  // namespace vcpulse::tools
