#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/control/client.h"
#include "monitor/control/request.h"
#include "monitor/recorder/recording.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kPathVariable = "VCPULSE_CONTROL";
constexpr absl::Duration kWaitRetry = absl::Milliseconds(50);

// Options of all of them.
struct ControlOptions {
  std::string path;
  std::string timeout = "5s";
  std::string wait = "0s";
  std::string name;  // of mark
  bool json = false;
};

struct Parsed {
  std::string path;
  absl::Duration timeout;
  absl::Duration wait;
};

absl::StatusOr<Parsed> Parse(const ControlOptions& options) {
  Parsed parsed{.path = options.path};
  if (parsed.path.empty()) {
    const char* from_environment = std::getenv(kPathVariable);
    if (from_environment != nullptr) parsed.path = from_environment;
  }
  if (parsed.path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("which recording? Give --control PATH, as to `vcpulse record --control PATH`, "
                     "or set ",
                     kPathVariable));
  }
  const auto timeout = ParseTimeOption("--timeout", options.timeout);
  if (!timeout.ok()) return timeout.status();
  parsed.timeout = *timeout;
  const auto wait = ParseDurationOption("--wait", options.wait);
  if (!wait.ok()) return wait.status();
  parsed.wait = *wait;
  return parsed;
}

// A recording that is about to begin has no socket yet, or one that a killed one left over.
absl::StatusOr<control::Answer> AskWithPatience(const Parsed& options,
                                                const control::Request& request) {
  const Deadline give_up(options.wait);
  while (true) {
    auto answer = control::Ask(options.path, request, options.timeout);
    const bool absent = absl::IsNotFound(answer.status()) || absl::IsUnavailable(answer.status());
    // What was sent may have been done: it is not sent again.
    const bool later = absent && control::NobodyWasAsked(answer.status());
    if (!later || give_up.over()) return answer;
    absl::SleepFor(kWaitRetry);
  }
}

std::string StatusText(const control::RecordingStatus& status) {
  const absl::Duration elapsed =
      absl::Trunc(absl::Nanoseconds(status.elapsed_ns), absl::Milliseconds(1));
  std::string text = absl::StrCat(
      std::string(ToString(status.state)), ", ", absl::FormatDuration(elapsed),
      " since the start: ", recorder::Counted(status.ticks, status.vcpu_samples, status.gaps),
      "\n");
  if (!status.output.empty()) absl::StrAppend(&text, "output: ", Printable(status.output), "\n");
  if (!status.reader.empty()) {
    absl::StrAppend(&text, "reader: ", Printable(status.reader), "\n");
  }
  if (status.phase) {
    absl::StrAppend(&text, "phase: ", Printable(*status.phase), " (",
                    Plural(status.markers, "marker"), ")\n");
  }
  if (status.vms.empty()) return absl::StrCat(text, "no VM\n");
  std::vector<std::vector<std::string>> rows{{"VM", "PID", "vCPUs"}};
  for (const control::RecordingStatus::Vm& vm : status.vms) {
    rows.push_back({Printable(vm.name), absl::StrCat(vm.pid), absl::StrCat(vm.vcpus)});
  }
  text += Aligned(rows, 0);
  if (status.vms_left_out > 0) absl::StrAppend(&text, "and ", status.vms_left_out, " more\n");
  return text;
}

int Run(const ControlOptions& options, control::Request request) {
  const absl::StatusOr<Parsed> parsed = Parse(options);
  if (!parsed.ok()) return Fail(parsed.status());
  if (request.verb == control::Verb::kMark) {
    auto name = control::CheckMarkerName(options.name);
    if (!name.ok()) return Fail(absl::StrCat("NAME: ", name.status().message()));
    request.name = *std::move(name);
  }
  const auto answer = AskWithPatience(*parsed, request);
  // It ended, as it was to, for another reason than this request: a second `stop`, for example.
  const bool ended =
      absl::IsUnavailable(answer.status()) && !control::NobodyWasAsked(answer.status());
  if (request.verb == control::Verb::kStop && ended) return kExitOk;
  if (!answer.ok()) return Fail(answer.status());
  if (!answer->response.error.ok()) return Fail(answer->response.error);
  if (request.verb != control::Verb::kStatus) return kExitOk;
  if (!answer->response.status) return Fail("the answer holds no status");
  return WriteStdout(options.json ? answer->line + "\n" : StatusText(*answer->response.status));
}

}  // namespace

void AddControlCommands(CLI::App& app, int& exit_code) {
  const auto add = [&](control::Verb verb, const char* what) {
    auto options = std::make_shared<ControlOptions>();
    CLI::App* command = app.add_subcommand(std::string(ToString(verb)), what);
    command
        ->add_option("--control", options->path,
                     absl::StrCat("socket of the recording [$", kPathVariable, "]"))
        ->type_name("PATH");
    command->add_option("--timeout", options->timeout, "how long to wait for the answer [5s]")
        ->type_name("DURATION");
    command
        ->add_option("--wait", options->wait, "how long to wait for the recording to listen [0s]")
        ->type_name("DURATION");
    command->footer(
        "Exit status:\n"
        "  0  done\n"
        "  2  not done; one line on stderr gives the reason\n"
        "Environment:\n"
        "  VCPULSE_CONTROL  the socket's path, unless --control is given");
    command->callback([options, verb, &exit_code] { exit_code = Run(*options, {.verb = verb}); });
    return std::pair(command, options);
  };
  const auto [mark, mark_options] =
      add(control::Verb::kMark, "Put a marker into a running recording: a phase begins here");
  mark->add_option("NAME", mark_options->name,
                   "of the phase: at most 256 bytes of UTF-8 without control characters")
      ->required();
  add(control::Verb::kPause, "Close the counters of a running recording until it is resumed");
  add(control::Verb::kResume, "Resume a paused recording");
  add(control::Verb::kStop, "End a running recording; return when its output is complete");
  const auto [status, status_options] =
      add(control::Verb::kStatus, "Show what a running recording has so far, and of which VMs");
  status->add_flag("--json", status_options->json, "the answer as one line of JSON");
}

}  // namespace vcpulse::tools
