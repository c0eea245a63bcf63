#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "kvm/events/pmu.h"
#include "monitor/calibrate/calibration.h"
#include "monitor/calibrate/measured_profile.h"
#include "monitor/calibrate/run.h"
#include "monitor/profile/installed.h"
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
  vcpulse calibrate --cpus 16-17           on two of the E cores of a hybrid host
  vcpulse calibrate --install              use what was measured here, where that is better

Exit status:
  0  calibrated
  1  nothing can be calibrated here: no /dev/kvm, no hardware counters, or guests that fail; or a profile that was
     asked for was not written or installed
  2  usage or run-time error, or stopped by a signal

Files:
  /etc/vcpulse/profiles/*.json   profiles that were installed; `record` uses the one of its CPU)";

struct CalibrateOptions {
  std::string each = "2s";
  std::string interval = "50ms";
  std::string output;
  std::string report;
  std::string write_profile;
  bool install = false;
  std::optional<std::string> profile;
  std::optional<std::string> cpus;
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

absl::Status CheckInstall(const CalibrateOptions& options) {
  if (options.install && options.profile) {
    return absl::InvalidArgumentError(
        "--install and --profile cannot be used together: what is installed takes the place of the "
        "profile that `record` uses");
  }
  if (options.install && options.cpus && kvm::CorePmus(kvm::ReadPmus("/")).size() > 1) {
    return absl::InvalidArgumentError(
        "--install and --cpus cannot be used together on a host with several kinds of cores: "
        "profiles are chosen by the model alone; use --write-profile, and `record --profile`");
  }
  return absl::OkStatus();
}

absl::StatusOr<calibrate::RunOptions> Resolve(const CalibrateOptions& options) {
  calibrate::RunOptions run;
  if (absl::Status status = CheckInstall(options); !status.ok()) return status;
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
  if (options.cpus) {
    const auto cpus = kvm::ParseCpuList(*options.cpus);
    if (!cpus) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cpus: ", Quoted(*options.cpus), " is not a list of CPUs such as 0-3,8"));
    }
    run.cpus = *cpus;
  }
  auto classifier = Resolve(ClassifierOptions{.profile = options.profile}, "/");
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

using File = std::unique_ptr<OutputFile>;

// Before a minute of work. Null for no name.
absl::StatusOr<File> Begin(const std::string& name) {
  if (name.empty()) return nullptr;
  return OutputFile::Create(name, OutputFile::Appears::kWhenFinished);
}

absl::Status Write(OutputFile& file, const std::string& text) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (absl::Status status = file.Append(bytes); !status.ok()) return status;
  return file.Finish();
}

// Writes and installs the profile that was measured, as far as that is asked for. Returns the exit
// code.
int UseProfile(const calibrate::Calibration& calibration, const CalibrateOptions& options,
               OutputFile* file) {
  if (file != nullptr) {
    if (!calibration.measured.ok()) {
      Fail(absl::StrCat("no profile was measured: ", calibration.measured.status().message()));
      return kExitChecksFailed;
    }
    absl::Status status = Write(*file, profile::ToJson(calibration.measured->profile));
    if (!status.ok()) return Fail(status);
    SayWritten(options.write_profile);
  }
  if (!options.install) return kExitOk;
  const auto path = calibrate::InstallIfBetter(calibration, "/");
  if (path.ok()) {
    SayWritten(*path);
    return kExitOk;
  }
  const int exit_code = Fail(path.status());
  return absl::IsFailedPrecondition(path.status()) ? kExitChecksFailed : exit_code;
}

int RunCalibrate(const CalibrateOptions& options) {
  if (options.output == "-") {
    return Fail("--output: - is not possible here: name a file for the timeline");
  }
  if (options.write_profile == "-") {
    return Fail("--write-profile: - is not possible here: name a file for the profile");
  }
  const std::array<std::string, 3> files = {options.output, options.report, options.write_profile};
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].empty() || std::ranges::count(files, files[i]) == 1) continue;
    return Fail(absl::StrCat(QuotedPath(files[i]),
                             " is named by two of --output, --report and --write-profile"));
  }
  const auto run = Resolve(options);
  if (!run.ok()) return Fail(run.status());
  if (absl::Status status = calibrate::CheckCpus(run->cpus); !status.ok()) return Fail(status);
  const auto report = Begin(options.report);
  if (!report.ok()) return Fail(report.status());
  const auto profile = Begin(options.write_profile);
  if (!profile.ok()) return Fail(profile.status());
  if (options.install) {
    if (absl::Status status = profile::CanInstall("/"); !status.ok()) return Fail(status);
  }
  const auto machine = calibrate::MakeMachine();
  if (!machine.ok()) {
    Fail(absl::StrCat("calibrate: ", machine.status().message()));
    return kExitChecksFailed;
  }
  const auto calibration = calibrate::Run(*run, **machine);
  EndProgress();
  if (!calibration.ok()) {
    const int code = Fail(absl::StrCat("calibrate: ", calibration.status().message()));
    return absl::IsUnavailable(calibration.status()) ? kExitChecksFailed : code;
  }
  if (*report) {
    if (absl::Status status = Write(**report, calibrate::ToJson(*calibration)); !status.ok()) {
      return Fail(status);
    }
    if (options.report != "-") SayWritten(options.report);
  }
  if (options.report != "-") {
    if (const int code = WriteStdout(calibrate::ToText(*calibration)); code != kExitOk) return code;
  }
  return UseProfile(*calibration, options, profile->get());
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
      ->add_option("--write-profile", options->write_profile,
                   "write the profile that was measured, for `record --profile FILE`")
      ->type_name("FILE");
  command->add_flag("--install", options->install,
                    "install that profile for this model of CPU where evidence is more often right "
                    "with it; `record` uses it from then on");
  command->add_option("--cpus", options->cpus, "keep the guests to these CPUs [any]")
      ->type_name("LIST");
  command
      ->add_option("--profile", options->profile,
                   "profile to calibrate, a name or a file [that of this CPU]")
      ->type_name("NAME|FILE");
  command->callback([options, &exit_code] { exit_code = RunCalibrate(*options); });
}

}  // namespace vcpulse::tools
