#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/output_file.h"
#include "kvm/host.h"
#include "monitor/calibrate/calibration.h"
#include "monitor/calibrate/run.h"
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr absl::Duration kShortestScene = absl::Milliseconds(200);
constexpr absl::Duration kLongestScene = absl::Minutes(10);

constexpr const char* kCalibrateFooter =
    R"(Runs guests of a few instructions on /dev/kvm, whose truth is known: halted, spinning, productive, or a known share of
time. Records them as `record` does, and prints what both classifiers said of them. docs/accuracy.md has the method.
Runs about 20 programs, so it takes about a minute; bands are only right on a host that is otherwise idle.

Examples:
  vcpulse calibrate
  vcpulse calibrate --report here.json     also write the numbers, to send to the project
  vcpulse calibrate --each 10s -o here.vpt also keep the timeline, a phase for each program

Exit status:
  0  calibrated
  1  nothing can be calibrated here: no /dev/kvm, or no hardware counters
  2  usage or run-time error, or stopped by a signal)";

struct CalibrateOptions {
  std::string each = "2s";
  std::string interval = "50ms";
  std::string output;
  std::string report;
  std::optional<std::string> profile;
};

// On a terminal, the program that runs now; the numbers are of what comes after it, too.
void ShowProgress(size_t scene, size_t scenes, const std::string& what, absl::Duration each) {
  if (isatty(STDERR_FILENO) != 1) return;
  const absl::Duration left = each * static_cast<double>(scenes - scene);
  std::fprintf(stderr, "\r\033[Kvcpulse: %zu of %zu, %s; %s left", scene + 1, scenes, what.c_str(),
               absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))).c_str());
}

void EndProgress() {
  if (isatty(STDERR_FILENO) == 1) std::fputs("\r\033[K", stderr);
}

absl::StatusOr<calibrate::RunOptions> Resolve(const CalibrateOptions& options) {
  calibrate::RunOptions run;
  const auto each = ParseTimeOption("--each", options.each);
  if (!each.ok()) return each.status();
  if (*each < kShortestScene || *each > kLongestScene) {
    return absl::InvalidArgumentError(
        absl::StrCat("--each: ", absl::FormatDuration(*each), " is outside 200ms to 10m"));
  }
  const auto interval = ParseTimeOption("--interval", options.interval);
  if (!interval.ok()) return interval.status();
  if (*interval < absl::Milliseconds(1) || 4 * *interval > *each) {
    return absl::InvalidArgumentError(absl::StrCat("--interval: ", absl::FormatDuration(*interval),
                                                   " is outside 1ms to a quarter of --each"));
  }
  const kvm::CpuIdentity cpu = kvm::ReadCpuIdentity("/");
  auto classifier = Resolve(ClassifierOptions{.profile = options.profile}, &cpu);
  if (!classifier.ok()) return classifier.status();
  run.each = *each;
  run.interval = *interval;
  run.output = options.output;
  run.profile = std::move(classifier->profile);
  run.tool_version = VCPULSE_VERSION;
  run.say = [](const std::string& line) {
    EndProgress();
    Fail(line);
  };
  run.begins = [each = *each](size_t scene, size_t scenes, const std::string& what) {
    ShowProgress(scene, scenes, what, each);
  };
  return run;
}

int RunCalibrate(const CalibrateOptions& options) {
  if (options.output == "-") {
    return Fail("--output: - is not possible here: name a file for the timeline");
  }
  if (!options.report.empty() && options.report == options.output) {
    return Fail("--report: this is the file of --output: name another one");
  }
  const auto run = Resolve(options);
  if (!run.ok()) return Fail(run.status());
  const auto machine = calibrate::MakeMachine();
  if (!machine.ok()) {
    Fail(absl::StrCat("calibrate: ", machine.status().message()));
    return kExitChecksFailed;
  }
  // Before a minute of work.
  std::unique_ptr<OutputFile> report;
  if (!options.report.empty()) {
    auto file = OutputFile::Create(options.report, OutputFile::Appears::kWhenFinished);
    if (!file.ok()) return Fail(file.status());
    report = *std::move(file);
  }
  const auto calibration = calibrate::Run(*run, **machine);
  EndProgress();
  if (!calibration.ok()) {
    return Fail(absl::StrCat("calibrate: ", calibration.status().message()));
  }
  if (report) {
    const std::string json = calibrate::ToJson(*calibration);
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(json.data()),
                                         json.size());
    absl::Status status = report->Append(bytes);
    if (status.ok()) status = report->Finish();
    if (!status.ok()) return Fail(status);
    if (options.report == "-") return kExitOk;
    SayWritten(options.report);
  }
  return WriteStdout(calibrate::ToText(*calibration));
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure how right the bands are on this host, with guests of known truth");
  command->footer(kCalibrateFooter);
  command
      ->add_option("--report", options->report,
                   "also write the numbers as JSON, without names or addresses; - for stdout, "
                   "in place of the text")
      ->type_name("FILE");
  command->add_option("-o,--output", options->output, "also keep the timeline, to replay or report")
      ->type_name("FILE");
  command->add_option("--each", options->each, "how long each program runs, 200ms to 10m [2s]")
      ->type_name("DURATION");
  command->add_option("-i,--interval", options->interval, "time between ticks [50ms]")
      ->type_name("DURATION");
  command
      ->add_option("--profile", options->profile,
                   "profile to calibrate, a name or a file [that of this CPU]")
      ->type_name("NAME|FILE");
  command->callback([options, &exit_code] { exit_code = RunCalibrate(*options); });
}

}  // namespace vcpulse::tools
