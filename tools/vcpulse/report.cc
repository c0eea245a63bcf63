#include "monitor/report/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
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
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "monitor/http/server.h"
#include "monitor/page/contents.h"
#include "monitor/page/page.h"
#include "monitor/page/served_timeline.h"
#include "monitor/reading/labels.h"
#include "monitor/report/explain.h"
#include "monitor/report/json_report.h"
#include "monitor/report/summary.h"
#include "monitor/report/text_format.h"
#include "monitor/report/text_report.h"
#include "monitor/report/vcpu_table.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/explain_option.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/part_options.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

// What can be said of the two options, where given, before anything is read.
absl::Status CheckPageOptions(const std::vector<std::string>& files,
                              const std::optional<std::string>& html,
                              const std::optional<std::string>& serve) {
  if (serve) {
    if (std::ranges::find(files, "-") != files.end()) {
      return absl::InvalidArgumentError(
          "--serve reads again and again, and standard input can be read once: name a file");
    }
    absl::Status status = http::ParseLoopbackAddress(*serve).status();
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("--serve: ", status.message()));
  }
  if (!html) return absl::OkStatus();
  if (html->empty()) return absl::InvalidArgumentError("--html: the file name is empty");
  return CheckNotSameFile(files, *html, "--html");
}

// Writes the page to `output`, `-` being standard output. Returns the exit code.
int WritePage(const page::Contents& contents, const std::string& output) {
  const std::string text = page::RenderPage(contents, false);
  if (output == "-") return WriteStdout(text);
  auto file = OutputFile::Create(output, OutputFile::Appears::kWhenFinished);
  if (!file.ok()) return Fail(file.status());
  absl::Status written =
      (*file)->Append(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  if (written.ok()) written = (*file)->Finish();
  if (!written.ok() && !absl::IsCancelled(written)) return Fail(written);
  if (written.ok()) SayWritten(output);
  return kExitOk;
}

// Serves the page of `files` at `address` until Ctrl-C; prints its URL. Returns the exit code.
int ServePage(const std::vector<std::string>& files, const std::string& address,
              const hotspots::GuestKernels& symbols) {
  const auto where = http::ParseLoopbackAddress(address);
  if (!where.ok()) return Fail(where.status());
  const auto input = timeline::Input::Join(files);
  if (!input.ok()) return Fail(input.status());
  page::ServedTimeline timeline(*input, symbols);
  ReadProgress progress(input->Name(), BytesToRead(input->paths()));
  // What cannot be read is said here, not in a browser.
  const auto page = timeline.Page();
  progress.Stop();
  if (!page.ok()) return Fail(ReadFailure(page.status(), *input));
  const absl::Status served = page::ServeOnLoopback(
      *where, timeline.AsSource(),
      [](const std::string& url) { return WriteToStdout(absl::StrCat(url, "\n")); });
  if (absl::IsCancelled(served)) return kExitOk;  // nobody reads the URL
  return served.ok() ? kExitOk : Fail(absl::StrCat("--serve: ", served.message()));
}

constexpr const char* kReportFooter =
    R"(Examples:
  vcpulse report web.vpt --from 2s --until 10s
  vcpulse report web.vpt --brief
  vcpulse report all.vpt --sort run_delay --top 5
  vcpulse report all.vpt --vm web --columns ghz,branch_miss_rate
  vcpulse report web.vpt --explain vcpu=1,at=12.3s
  vcpulse report web.vpt --html web.html

Columns:
  HALTED, SPINNING, PRODUCTIVE, UNKNOWN  shares of the time that has a verdict; they add up to 100 %
  starved    share of the time in ticks in which the thread waited for a CPU more than 10 % of the time
  IPC        guest instructions per guest cycle, HALTED time excluded
  residency  share of the time spent in guest code
  run-delay  share of the time spent waiting for a CPU
  cycles, instr  totals in guest mode
  -          not measured, which is never a zero; a line below the table gives the reason
  ~N         an estimate: the counters shared the PMU with others and were scaled up
  N+         at least N: counted for a part of the time only

SPINNING? is a verdict of ipc-bands, which is a hint: slow work has a low IPC, too. The evidence
classifier names a spin by its PAUSE count or by the shape of a tight loop (docs/bands.md).

Strips:
Below each table a strip per vCPU shows its bands over time. A character is a time slot, and its letter
the band with the largest share:
  .  HALTED
  S  SPINNING
  s  another band, but 5 % or more SPINNING
  #  PRODUCTIVE
  ?  UNKNOWN
  : $ % !  HALTED, SPINNING, PRODUCTIVE, UNKNOWN, and starved for half of the slot or more
  -  no verdict
  _  no sample

Markers (^name) and the time since the start follow. Strips are as wide as the terminal, or COLUMNS.

Damaged timelines:
A timeline that is damaged, or whose recording was killed, is reported as far as it can be read. The
loss is stated below the tables, in the JSON and on stderr.

Page:
The page (--html, --serve) opens in any recent browser, also as a file, and uses no network. It holds at
most 20 MiB of numbers; a longer timeline is shown in wider bins, whose width is stated. --serve adds
the detail down to single ticks from FILE, which may be growing. Press ? for the keys.

Exit status:
  0  reported
  2  usage error, or the timeline could not be read)";

struct ReportOptions {
  std::vector<std::string> files = {kDefaultTimeline};
  bool json = false;
  std::string color = "auto";
  std::optional<std::string> columns;
  std::optional<std::string> vm;
  std::optional<std::string> vcpu;
  std::optional<std::string> sort;
  std::optional<std::string> top;
  bool brief = false;
  PartOptions part;
  SymbolOptions symbols;
  std::optional<std::string> explain;
  std::optional<std::string> html;
  std::optional<std::string> serve;
};

// Why there is nothing to report, where that is so.
std::optional<std::string> NothingToReport(const report::Report& report,
                                           const ReportOptions& options, const std::string& name) {
  const std::vector<timeline::Damage>& damages = report.read.damages;
  if (report.read.records == 0 && !damages.empty()) {
    return absl::StrCat(name, ": nothing could be read: ", Plural(damages.size(), "damaged region"),
                        ", the first: ", damages.front().reason);
  }
  if ((report.phase || report.IsPart()) && report.summary.own_cost().ticks == 0) {
    return absl::StrCat(name, ": ", NothingInPart(options.part));
  }
  if (report.read.records == 0) return absl::StrCat(name, ": holds no record");
  return std::nullopt;
}

// Which rows the tables have, but for --vm: that takes a timeline. Errors: InvalidArgument.
absl::StatusOr<report::TextOptions> ParseRows(const ReportOptions& options) {
  report::TextOptions rows;
  rows.brief = options.brief;
  if (options.vcpu) {
    rows.vcpu = ParseNumber<uint32_t>(*options.vcpu);
    if (!rows.vcpu) {
      return absl::InvalidArgumentError(
          absl::StrCat("--vcpu '", Printable(*options.vcpu), "' is not a vCPU's index"));
    }
  }
  if (options.top) {
    rows.top = ParseNumber<uint32_t>(*options.top);
    if (!rows.top) {
      return absl::InvalidArgumentError(
          absl::StrCat("--top '", Printable(*options.top), "' is not a number of vCPUs"));
    }
  }
  if (options.sort) {
    const auto metrics = ParseMetrics(*options.sort);
    if (!metrics.ok() || metrics->size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--sort: ", metrics.ok() ? "one metric is needed" : metrics.status().message()));
    }
    rows.sort = metrics->front();
    rows.columns = {*rows.sort};  // where it is not shown anyway
  }
  return rows;
}

// The VM that --vm means, by its number. Errors: InvalidArgument, with those that there are.
absl::StatusOr<uint32_t> FindVm(const std::string& text, const report::Summary& summary) {
  std::map<uint32_t, const v1::VmInstance*> vms;
  std::vector<std::string> labels;
  labels.reserve(summary.vms().size());
  for (const auto& [number, vm] : summary.vms()) {
    vms[number] = &vm.instance;
    labels.push_back(report::VmLabel(number, vm));
  }
  const std::vector<uint32_t> meant = reading::VmsMeant(text, vms);
  if (meant.size() == 1) return meant.front();
  constexpr size_t kListed = 8;
  return absl::InvalidArgumentError(
      absl::StrCat("--vm: ", meant.empty() ? "no VM '" : "several VMs are '", Printable(text),
                   meant.empty() ? "'; VMs are: " : "', so a PID or number is needed; VMs are: ",
                   Listed(labels, kListed)));
}

bool IsRecorded(const report::TextOptions& rows, const report::Summary& summary) {
  return std::ranges::any_of(summary.vms(), [&rows](const auto& vm) {
    return (!rows.vm || *rows.vm == vm.first) && !report::RowsOf({&vm}, rows).empty();
  });
}

int RunExplain(const ReportOptions& options) {
  const absl::StatusOr<report::ExplainTarget> target = ParseExplainTarget(*options.explain);
  if (!target.ok()) return Fail(target.status());
  report::Explainer explainer(*target);
  const auto input = timeline::Input::Join(options.files);
  if (!input.ok()) return Fail(input.status());
  const std::string name = input->Name();
  ReadProgress progress(name, BytesToRead(input->paths()));
  const auto read = ReadInput(*input, [&](const timeline::Entry& entry) {
    absl::Status status = explainer.Add(entry);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
  });
  progress.Stop();
  if (!read.ok()) return Fail(read.status());
  const std::string loss =
      report::DescribeLoss(*read, explainer.unusable_ticks(), read->ended_in_order);
  if (read->records == 0) {
    return Fail(
        absl::StrCat(name, ": holds no record that can be read", loss.empty() ? "" : ": ", loss));
  }
  Warn(name, loss);
  const absl::StatusOr<report::Explanation> explanation = explainer.Finish();
  if (!explanation.ok()) {
    return Fail(absl::StrCat(name, ": ", explanation.status().message()));
  }
  return WriteStdout(options.json ? report::RenderExplanationJson(*explanation)
                                  : report::RenderExplanation(*explanation));
}

int RunHtml(const ReportOptions& options, const hotspots::GuestKernels& symbols) {
  const absl::StatusOr<reading::Part> part = ParsePart(options.part);
  if (!part.ok()) return Fail(part.status());
  const auto input = timeline::Input::Join(options.files);
  if (!input.ok()) return Fail(input.status());
  ReadProgress progress(input->Name(), BytesOfPart(*input, options.part));
  const auto contents = page::Contents::Read(*input, *part);
  progress.Stop();
  if (!contents.ok()) return Fail(ReadFailure(contents.status(), *input));
  (*contents)->NameBy(symbols);
  const report::Report& report = (*contents)->report();
  if (const auto nothing = NothingToReport(report, options, input->Name())) {
    return Fail(*nothing);
  }
  Warn(input->Name(), report::DescribeLoss(report));
  return WritePage(**contents, *options.html);
}

int RunReport(const ReportOptions& options) {
  if (options.explain) return RunExplain(options);
  const absl::StatusOr<hotspots::GuestKernels> symbols = ReadSymbols(options.symbols);
  if (!symbols.ok()) return Fail(symbols.status());
  if (options.html || options.serve) {
    const absl::Status status = CheckPageOptions(options.files, options.html, options.serve);
    if (!status.ok()) return Fail(status);
    return options.html ? RunHtml(options, *symbols)
                        : ServePage(options.files, *options.serve, *symbols);
  }
  const absl::StatusOr<reading::Part> part = ParsePart(options.part);
  if (!part.ok()) return Fail(part.status());
  std::vector<metric::Metric> columns;
  if (options.columns) {
    auto metrics = ParseMetrics(*options.columns);
    if (!metrics.ok()) return Fail(absl::StrCat("--columns: ", metrics.status().message()));
    columns = *std::move(metrics);
  }
  absl::StatusOr<report::TextOptions> rows = ParseRows(options);
  if (!rows.ok()) return Fail(rows.status());

  constexpr size_t kNarrowestStrip = 40;
  constexpr size_t kWidestStrip = 1000;
  const size_t width = std::clamp(WidthOfStdout().value_or(report::StripOptions{}.width),
                                  kNarrowestStrip, kWidestStrip);
  report::Summary summary;
  report::Strips strips;
  const auto input = timeline::Input::Join(options.files);
  if (!input.ok()) return Fail(input.status());
  const std::string name = input->Name();
  ReadProgress progress(name, BytesOfPart(*input, options.part));
  absl::StatusOr<report::Report> read =
      report::ReadPart(*input, *part, summary, [&](const timeline::Entry& entry) {
        if (!options.json) strips.Add(entry);
        return absl::OkStatus();
      });
  progress.Stop();
  if (!read.ok()) return Fail(ReadFailure(read.status(), *input));
  strips.Finish();
  read->symbols = *symbols;
  const report::Report& report = *read;
  if (const auto nothing = NothingToReport(report, options, name)) return Fail(*nothing);

  Warn(name, report::DescribeLoss(report));
  std::vector<std::string> names;
  for (const auto& [number, vm] : summary.vms()) names.push_back(vm.instance.name());
  if (const std::string unknown = UnknownVms(*symbols, names); !unknown.empty()) Note(unknown);
  if (options.json) return WriteStdout(report::RenderJson(report));
  if (options.vm) {
    const absl::StatusOr<uint32_t> vm = FindVm(*options.vm, summary);
    if (!vm.ok()) return Fail(absl::StrCat(name, ": ", vm.status().message()));
    rows->vm = *vm;
  }
  if (rows->vcpu && !IsRecorded(*rows, summary)) {
    return Fail(absl::StrCat(name, ": --vcpu ", *options.vcpu, ": no such vCPU was recorded"));
  }
  rows->colour = WantsColour(options.color);
  rows->strips = &strips;
  rows->width = width;
  rows->columns.insert(rows->columns.end(), columns.begin(), columns.end());
  return WriteStdout(report::RenderText(report, *rows));
}

}  // namespace

void AddReportCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Summarize a timeline: band shares, IPC, residency and gaps per vCPU");
  command->footer(kReportFooter);
  AddInputOption(*command, options->files);
  command->add_flag("--json", options->json, "JSON instead of text");
  command
      ->add_option(
          "--color", options->color,
          "Colours: on a terminal unless NO_COLOR is set, always (for `| less -R`), or never")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool is_choice = text == "auto" || text == "always" || text == "never";
            return is_choice ? "" : Quoted(text) + " is none of auto, always, never";
          },
          ""))
      ->type_name("auto|always|never")
      ->capture_default_str();
  command
      ->add_option("--columns", options->columns,
                   "Further columns of the tables, with commas between: metrics of "
                   "docs/metrics.md, such as cache_miss_rate")
      ->type_name("METRIC,...")
      ->excludes("--json");
  command
      ->add_option("--vm", options->vm,
                   "only this VM: its name, UUID, PID or number; its tables and strips in full")
      ->type_name("VM");
  command->add_option("--vcpu", options->vcpu, "only the vCPUs of this index")->type_name("N");
  command
      ->add_option("--sort", options->sort,
                   "vCPUs with most of this metric first [by VM and index; of many VMs by "
                   "SPINNING and starved]")
      ->type_name("METRIC");
  command
      ->add_option("--top", options->top,
                   "at most N vCPUs of a table, 0: all [all; of three or more VMs 16]")
      ->type_name("N");
  command->add_flag("--brief", options->brief,
                    "only the worst vCPUs, a line per VM, and one per phase and VM");
  AddPartOptions(*command, options->part);
  AddSymbolOptions(*command, options->symbols);
  command
      ->add_option("--explain", options->explain,
                   "Why a vCPU was judged as it was: what was measured, each rule, the runner-up. "
                   "vm= (name, UUID, PID or number) where there are several; at=, a time after the "
                   "start: the first window that ends then or later; else the last verdict")
      ->type_name("vcpu=N[,vm=VM][,at=T]")
      ->excludes("--columns")
      ->excludes("--from")
      ->excludes("--until")
      ->excludes("--phase");
  command
      ->add_option("--html", options->html,
                   "Write one self-contained page: heat map, charts, tables; - is standard output; "
                   "an older one is kept as OUT.old")
      ->type_name("OUT")
      ->excludes("--json")
      ->excludes("--columns")
      ->excludes("--explain");
  command
      ->add_option("--serve", options->serve,
                   "Serve that page, and every detail of FILE to it, to browsers on this machine "
                   "(tcp:127.0.0.1:PORT; port 0 is any) until Ctrl-C; prints its URL")
      ->type_name("ADDR")
      ->excludes("--html")
      ->excludes("--json")
      ->excludes("--columns")
      ->excludes("--explain")
      ->excludes("--from")
      ->excludes("--until")
      ->excludes("--phase");
  // Rows are those of the text.
  for (const char* const rows : {"--vm", "--vcpu", "--sort", "--top", "--brief"}) {
    for (const char* const other : {"--json", "--explain", "--html", "--serve"}) {
      command->get_option(rows)->excludes(other);
    }
  }
  for (const char* const rows : {"--vcpu", "--sort", "--top", "--columns"}) {
    command->get_option("--brief")->excludes(rows);  // it has no row of a vCPU
  }
  command->callback([options, &exit_code] { exit_code = RunReport(*options); });
}

}  // namespace vcpulse::tools
