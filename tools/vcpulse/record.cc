#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "kvm/counters/read_format.h"
#include "kvm/events/event_resolver.h"
#include "kvm/events/event_sets.h"
#include "kvm/host.h"
#include "monitor/control/listening_socket.h"
#include "monitor/http/server.h"
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/target_options.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr absl::Duration kShortestInterval = absl::Milliseconds(1);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

// Options as text, until they are parsed.
struct RecordText {
  std::string wait = "0s";
  std::string interval = "100ms";
  std::string duration;
  std::string set = "full";
  std::optional<std::string> events;
  std::string format = "vpt";
  std::optional<std::string> output;
  UplinkOptions uplink;
  ClassifierOptions classifier;
};

// The destination: a file, a collector, or both.
absl::Status ParseOutput(const RecordText& text, RecordOptions& options) {
  if (text.format != "vpt" && text.format != "delimited") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: '", text.format, "' is neither vpt nor delimited"));
  }
  options.delimited = text.format == "delimited";
  if (text.output && text.output->empty()) {
    return absl::InvalidArgumentError("--output: the file name is empty");
  }
  if (text.output) options.output = *text.output;
  auto uplink = ParseUplink(text.uplink, options.target.root);
  if (!uplink.ok()) return uplink.status();
  options.uplink = *std::move(uplink);
  if (!options.uplink) return absl::OkStatus();
  if (options.delimited) {
    return absl::InvalidArgumentError(
        "--format delimited and --to exclude each other: a collector takes chunks (vpt)");
  }
  if (!text.output) options.output.clear();
  return absl::OkStatus();
}

absl::StatusOr<RecordOptions> ParseText(RecordOptions options, const RecordText& text) {
  const auto interval = ParseDurationOption("--interval", text.interval);
  if (!interval.ok()) return interval.status();
  options.interval = *interval;
  if (!text.duration.empty()) {
    const auto duration = ParseDurationOption("--duration", text.duration);
    if (!duration.ok()) return duration.status();
    options.duration = *duration;
  }
  const auto wait = ParseDurationOption("--wait", text.wait);
  if (!wait.ok()) return wait.status();
  options.wait = *wait;
  const auto set = kvm::ParseEventSet(text.set);
  if (!set) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--event-set: '", text.set, "' is none of full, core, branches, min, cycles, degraded"));
  }
  options.open.wanted.set = *set;
  if (text.events) {
    const auto events = kvm::ResolveEvents(*text.events, kvm::EventCatalog(options.target.root));
    if (!events.ok()) return events.status();
    for (const auto& group : events->groups) {
      if (group.size() <= kvm::kMaxGroupEvents) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--events: {", group.front().name, ",...}: braces hold at most ",
                       kvm::kMaxGroupEvents, " events, which are read together"));
    }
    options.open.wanted.events = *events;
  }
  if (absl::Status status = ParseOutput(text, options); !status.ok()) return status;
  const kvm::CpuIdentity cpu = kvm::ReadCpuIdentity(options.target.root);
  auto classifier = Resolve(text.classifier, &cpu);
  if (!classifier.ok()) return classifier.status();
  options.classifier = classifier->choice;
  options.profile = std::move(classifier->profile);
  return options;
}

void AddOptions(CLI::App& command, RecordOptions& options, RecordText& text) {
  AddTargetOptions(command, options.target);
  command
      .add_option("--wait", text.wait,
                  "how long to wait for the target to appear, and for --vm to come again")
      ->type_name("DURATION");
  command.add_option("-i,--interval", text.interval, "time between ticks, 1ms to 1h [100ms]")
      ->type_name("DURATION");
  command.add_option("-d,--duration", text.duration, "stop after this time")->type_name("DURATION");
  command
      .add_option("-o,--output", text.output,
                  "file to write, - for stdout; an older one is kept as FILE.old [vcpulse.vpt, "
                  "with --to none]")
      ->type_name("FILE");
  AddUplinkOptions(command, text.uplink);
  command.add_option("--format", text.format, "vpt (chunks) or delimited (plain protobuf) [vpt]")
      ->type_name("vpt|delimited");
  CLI::Option* set = command.add_option("--event-set", text.set, "the largest set to try [full]")
                         ->type_name("full|core|branches|min|cycles|degraded");
  command
      .add_option("-e,--events", text.events,
                  "these events instead of a set, in perf's syntax: names, rNNN, pmu/term=value/, "
                  "sys:tracepoint, {a,b} read together; cycles leads (`vcpulse list events`)")
      ->type_name("EVENTS")
      ->excludes(set);
  command.add_flag("--multiplex", options.open.wanted.multiplex,
                   "where the PMU has too few counters, let groups take turns: their counts become "
                   "estimates");
  command.add_flag("--require-counters", options.open.require_counters,
                   "fail rather than record without hardware counters");
  command
      .add_option(
          "--control", options.control,
          "listen here for `vcpulse mark`, pause, resume, stop and status: a unix socket for "
          "this user alone")
      ->type_name("PATH");
  command
      .add_option(
          "--metrics", options.metrics,
          "serve metrics for Prometheus on this machine (tcp:127.0.0.1:PORT; port 0 is any, "
          "and stderr says which)")
      ->type_name("ADDR");
  command.add_flag(
      "--phase-from-stdin", options.phase_from_stdin,
      "each line of standard input is a marker; not with -- CMD, which reads it itself");
  command.add_flag("--realtime", options.realtime,
                   "run the sampling thread under SCHED_FIFO: punctual, but it perturbs");
  command.add_flag("--force-mediated-vpmu", options.open.force_mediated_vpmu,
                   "open events although KVM runs with a mediated vPMU (VMs may fail to start)");
  AddClassifierOptions(command, text.classifier, "[the one for this CPU]");
  command.add_flag("--force-profile", options.force_profile,
                   "use --profile although its PAUSE event and IPCs of spins are of other CPUs");
}

// The path with its links followed, as far as it is there.
std::filesystem::path Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::path(path) : resolved;
}

// The output takes its name after the socket has, and an older one is put aside as OUTPUT.old.
absl::Status CheckApart(const std::string& control, const std::string& output) {
  if (output.empty() || output == "-") return absl::OkStatus();
  const std::filesystem::path socket = Resolved(control);
  if (socket != Resolved(output) && socket != Resolved(output + ".old")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--control: ", vcpulse::QuotedPath(control),
                   " is a path that --output writes to: name another one"));
}

}  // namespace

absl::Status RecordOptions::Validate() const {
  if (open.require_counters && open.wanted.set == kvm::EventSet::kDegraded) {
    return absl::InvalidArgumentError(
        "--require-counters and --event-set degraded exclude each other");
  }
  if (interval < kShortestInterval || interval > kLongestInterval) {
    return absl::InvalidArgumentError(
        absl::StrCat("--interval: ", absl::FormatDuration(interval), " is outside 1ms to 1h"));
  }
  if (duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--duration: must be more than 0");
  }
  if (output == "-" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "--output: - is a terminal, and a timeline is binary: redirect it or name a file");
  }
  if (!control.empty()) {
    const auto address = vcpulse::control::AddressOf(control);
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--control: ", address.status().message()));
    }
    if (absl::Status status = CheckApart(control, output); !status.ok()) return status;
  }
  if (!metrics.empty()) {
    if (const auto address = http::ParseLoopbackAddress(metrics); !address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--metrics: ", address.status().message()));
    }
  }
  if (phase_from_stdin && fcntl(STDIN_FILENO, F_GETFL) < 0) {
    return absl::InvalidArgumentError("--phase-from-stdin: standard input is closed");
  }
  if (phase_from_stdin && !command.empty()) {
    return absl::InvalidArgumentError(
        "--phase-from-stdin and -- CMD exclude each other: CMD reads standard input; give "
        "--control "
        "PATH and let CMD run `vcpulse mark NAME`");
  }
  if (!command.empty() && target.all) {
    return absl::InvalidArgumentError("--all and -- CMD exclude each other");
  }
  if (absl::Status status = CheckRoot(target.root); !status.ok()) return status;
  return CheckPidsAreOurs(target.root);
}

void AddRecordCommand(CLI::App& app, std::vector<std::string> command, int& exit_code) {
  auto options = std::make_shared<RecordOptions>();
  auto text = std::make_shared<RecordText>();
  options->command = std::move(command);
  options->beside_command = !options->command.empty();
  options->tool_version = VCPULSE_VERSION;
  CLI::App* record = app.add_subcommand(
      "record", "records what each vCPU does: [TARGET] [options] [-- CMD ARGS...]");
  record->footer(
      "With -- CMD, records the VMs that CMD starts (or the TARGET that is given and runs already) "
      "while it runs, waits for its end, and returns CMD's exit status "
      "(125 vcpulse failed, 126 or 127 CMD could not be run, 128+n it died of signal n).\n"
      "With --control, CMD finds the socket's path in VCPULSE_CONTROL, and the control commands "
      "too.\n"
      "With --to, chunks that the collector has not acknowledged are kept in the spool, also "
      "beyond "
      "the end of the recording: the next one with --to sends them. It goes on without a collector "
      "and connects again for ever. SIGHUP then reads the certificate files anew and ends "
      "nothing.\n"
      "Without -- CMD: exit 0 when stopped by -d, a signal or the last VM's end, 2 on an error. An "
      "output "
      "that takes no data delays the end by at most 2 s; then it is an error that says what was "
      "not written.");
  AddOptions(*record, *options, *text);
  record->callback([options, text, &exit_code] {
    absl::StatusOr<RecordOptions> parsed = ParseText(*options, *text);
    absl::Status status = parsed.ok() ? parsed->Validate() : parsed.status();
    exit_code = status.ok() ? RunRecord(*parsed) : Fail(status);
  });
}

}  // namespace vcpulse::tools
