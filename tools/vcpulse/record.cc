#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
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
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/label_options.h"
#include "tools/vcpulse/metrics_endpoint.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/target_options.h"
#include "tools/vcpulse/values.h"
#include "tools/vcpulse/view_thread.h"

namespace vcpulse::tools {
namespace {

constexpr absl::Duration kShortestInterval = absl::Milliseconds(1);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

absl::Status ParseHotspots(const RecordText& text, RecordOptions& options) {
  const auto source = ParseAddressSource("--hotspots-source", text.hotspots_source);
  if (!source.ok()) return source.status();
  options.hotspots_source = *source;
  if (!text.hotspots) {
    if (text.hotspots_source != "auto") {
      return absl::InvalidArgumentError("--hotspots-source needs --hotspots");
    }
    if (options.guest_code) return absl::InvalidArgumentError("--guest-code needs --hotspots");
    return absl::OkStatus();
  }
  const std::string& when = *text.hotspots;
  options.hotspots = {.spinning = when == "spinning" || when == "both",
                      .starved = when == "starved" || when == "both"};
  if (!options.hotspots.Any()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hotspots '", when, "': known are spinning, starved, both"));
  }
  if (options.guest_code && options.target.qmp.empty()) {
    return absl::InvalidArgumentError(kGuestCodeNeedsQmp);
  }
  if (options.hotspots_source == kvm::AddressSource::kQmp) {
    Note("--hotspots-source qmp stops the vCPUs for a moment with each sample");
  }
  return absl::OkStatus();
}

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
  UplinkOptions streaming = text.uplink;
  if (streaming.to.empty() && streaming.peer.agent_id) {  // it names the recording alone
    const auto identity = IdentityOf(streaming.peer, options.target.root);
    if (!identity.ok()) return identity.status();
    options.identity.agent_id = identity->agent_id;
    streaming.peer.agent_id.reset();
  }
  auto uplink = ParseUplink(streaming, options.target.root);
  if (!uplink.ok()) return uplink.status();
  options.uplink = *std::move(uplink);
  if (!options.uplink) return absl::OkStatus();
  options.identity.agent_id = options.uplink->uplink.identity.agent_id;
  if (options.delimited) {
    return absl::InvalidArgumentError(
        "--format delimited and --to cannot be used together: a collector takes chunks (vpt)");
  }
  if (!text.output) options.output.clear();
  return absl::OkStatus();
}

constexpr const char* kOutputGroup = "Output";
constexpr const char* kEventsGroup = "Events (docs/events.md)";
constexpr const char* kControlGroup = "Control";

void AddOutputOptions(CLI::App& command, RecordText& text, const std::string& default_output) {
  const std::array<CLI::Option*, 5> all = {
      command.add_option("-i,--interval", text.interval, "time between ticks, 1ms to 1h [100ms]")
          ->type_name("DURATION"),
      command.add_option("-d,--duration", text.duration, "stop after this time")
          ->type_name("DURATION"),
      command
          .add_option(
              "-o,--output", text.output,
              absl::StrCat("timeline to write, - for stdout; an existing FILE is renamed to "
                           "FILE.old [",
                           default_output, "]"))
          ->type_name("FILE"),
      command
          .add_option("--format", text.format,
                      "vpt, or delimited: plain protobuf records for other programs [vpt]")
          ->type_name("vpt|delimited"),
      AddRepeatable(
          command, "--label", text.labels,
          "say of this host, to find it among many: rack=12; repeat for more; keys of letters, "
          "digits and _, values without commas")
          ->type_name("KEY=VALUE"),
  };
  for (CLI::Option* option : all) option->group(kOutputGroup);
}

void AddEventOptions(CLI::App& command, RecordOptions& options, RecordText& text) {
  CLI::Option* set = command.add_option("--event-set", text.set, "the largest set to try [full]")
                         ->type_name("full|core|branches|min|cycles|degraded");
  const std::array<CLI::Option*, 11> all = {
      set,
      command
          .add_option("-e,--events", text.events,
                      "events in perf's syntax instead of a set (`vcpulse list events`)")
          ->type_name("EVENTS")
          ->excludes(set),
      command.add_flag("--multiplex", options.open.wanted.multiplex,
                       "share the PMU's counters among groups where they do not suffice; counts "
                       "become estimates"),
      command.add_flag("--require-counters", options.open.require_counters,
                       "fail where there are no hardware counters"),
      command.add_flag_callback(
          "--no-statistics", [&options] { options.statistics = false; },
          "do not read what the scheduler and KVM count of each vCPU beside its "
          "counters (docs/statistics.md), about once a second"),
      command
          .add_option("--hotspots", text.hotspots,
                      "sample for a second which code a vCPU runs that was spinning or starved for "
                      "200 ms, and keep the addresses in the timeline (docs/hotspots.md)")
          ->type_name("spinning|starved|both"),
      command
          .add_option("--hotspots-source", text.hotspots_source,
                      "of these addresses; auto takes cycles, else kvm-exit [auto]")
          ->type_name("auto|cycles|kvm-exit|qmp"),
      command.add_flag(
          "--guest-code", options.guest_code,
          "read the code around the hottest of these addresses from the guest's memory "
          "(by QMP: needs --qmp), which tells whether it waits in place"),
      command.add_flag("--competitors", options.competitors,
                       "watch for a second who has the CPU of a vCPU that was starved for 200 ms, "
                       "and keep that in the timeline (docs/competitors.md; needs root)"),
      command.add_flag("--prove", options.prove,
                       "first prove this host's counters as `doctor --prove` does (about 2 s), and "
                       "keep the proof in the timeline"),
      command.add_flag("--force-mediated-vpmu", options.open.force_mediated_vpmu,
                       "open events although KVM runs with a mediated vPMU (VMs may fail to "
                       "start)"),
  };
  for (CLI::Option* option : all) option->group(kEventsGroup);
}

void AddControlOptions(CLI::App& command, RecordOptions& options, RecordText& text) {
  std::vector<CLI::Option*> all = {
      command
          .add_option("--control", options.control,
                      "unix socket for `vcpulse mark`, pause, resume, stop and status")
          ->type_name("PATH"),
      command.add_flag("--phase-from-stdin", options.phase_from_stdin,
                       "each line of standard input is a marker: a phase begins there"),
      command
          .add_option("--reader", text.reader,
                      "how counters are read: bpf interrupts no vCPU, read is read(2); auto takes "
                      "bpf where this host gives it (docs/reading.md) [auto]")
          ->type_name("auto|bpf|read"),
      command.add_flag("--realtime", options.realtime,
                       "run the sampling thread under SCHED_FIFO: less jitter, but it may disturb "
                       "guests"),
  };
  std::ranges::copy(
      AddMetricsOptions(command, options.metrics,
                        "serve metrics for Prometheus on this machine (port 0: any free one)"),
      std::back_inserter(all));
  for (CLI::Option* option : all) option->group(kControlGroup);
}

constexpr const char* kRecordFooter =
    R"(Usage: [OPTIONS] [-- CMD [ARGS...]]
With `-- CMD`, records the VMs that CMD starts (or the selected VM, which must be running) until CMD
ends, and exits with its status.

With --to, chunks that the collector has not acknowledged stay in the spool; the next recording with
--to sends them. A lost connection is retried until the recording ends. SIGHUP reads certificates
again.

Examples:
  vcpulse record --vm web1 -d 10s            ten seconds of one VM
  vcpulse record -i 10ms -- ./run-tests.sh   the VMs that a command starts
  vcpulse record --all --to tls:collector.example:4711 --cert h.pem --key h.key --ca ca.pem

Exit status:
  0  stopped by -d, a signal, `vcpulse stop` or the last VM's end
  2  an error; one line on stderr gives the reason

Exit status with `-- CMD`:
  that of CMD  or 128+N if signal N ended it
  125          vcpulse itself failed
  126, 127     CMD could not be run, was not found

Environment:
  VCPULSE_CONTROL  set for CMD if --control is given: the socket's path

Files:
  vcpulse.vpt      the recording
  vcpulse.vpt.old  the one before it
  spool            below $STATE_DIRECTORY, or else /var/lib/vcpulse (root) or ~/.local/state/vcpulse)";

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

absl::StatusOr<RecordOptions> ParseRecording(RecordOptions options, const RecordText& text) {
  const auto interval = ParseDurationOption("--interval", text.interval);
  if (!interval.ok()) return interval.status();
  options.interval = *interval;
  if (!text.duration.empty()) {
    const auto duration = ParseTimeOption("--duration", text.duration);
    if (!duration.ok()) return duration.status();
    options.duration = *duration;
  }
  const auto wait = ParseDurationOption("--wait", text.wait);
  if (!wait.ok()) return wait.status();
  options.wait = *wait;
  if (text.rewait) {
    if (options.target.vm.empty()) {
      return absl::InvalidArgumentError("--rewait: name the VM that may start again with --vm");
    }
    const auto rewait = ParseDurationOption("--rewait", *text.rewait);
    if (!rewait.ok()) return rewait.status();
    options.rewait = *rewait;
  }
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
  const auto reader = live::ParseReader(text.reader);
  if (!reader) {
    return absl::InvalidArgumentError(
        absl::StrCat("--reader: '", text.reader, "' is none of auto, bpf, read"));
  }
  options.reader = *reader;
  if (absl::Status status = ParseHotspots(text, options); !status.ok()) return status;
  if (absl::Status status = ParseOutput(text, options); !status.ok()) return status;
  auto labels = ParseLabels(text.labels);
  if (!labels.ok()) return labels.status();
  options.identity.labels = *std::move(labels);
  auto classifier = Resolve(text.classifier, options.target.root);
  if (!classifier.ok()) return classifier.status();
  if (!classifier->note.empty()) Fail(classifier->note);
  options.classifier = classifier->choice;
  options.profile = std::move(classifier->profile);
  return options;
}

void AddRecordingOptions(CLI::App& command, RecordOptions& options, RecordText& text,
                         const std::string& default_output) {
  AddTargetOptions(command, options.target);
  const std::array<CLI::Option*, 3> waiting = {
      command.add_option("--wait", text.wait, "wait up to this long for the target to appear [0s]")
          ->type_name("DURATION"),
      command
          .add_option("--rewait", text.rewait,
                      "after --vm has ended, wait up to this long for it to start again [0s]")
          ->type_name("DURATION"),
      command.add_flag("--require-guest", options.require_guest,
                       "fail if no KVM guest was recorded"),
  };
  for (CLI::Option* option : waiting) option->group(kTargetGroup);
  AddOutputOptions(command, text, default_output);
  AddEventOptions(command, options, text);
  AddClassifierOptions(command, text.classifier, "[that of this CPU]");
  command
      .add_flag("--force-profile", options.force_profile,
                "use --profile although it is for other CPUs")
      ->needs("--profile")
      ->group(kBandsGroup);
  AddUplinkOptions(command, text.uplink);
  AddControlOptions(command, options, text);
}

absl::Status RecordOptions::Validate() const {
  if (open.require_counters && open.wanted.set == kvm::EventSet::kDegraded) {
    return absl::InvalidArgumentError(
        "--require-counters and --event-set degraded cannot be used together");
  }
  if (interval < kShortestInterval || interval > kLongestInterval) {
    return absl::InvalidArgumentError(
        absl::StrCat("--interval: ", absl::FormatDuration(interval), " is outside 1ms to 1h"));
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
  if (absl::Status status = metrics.Validate(); !status.ok()) return status;
  if (phase_from_stdin && fcntl(STDIN_FILENO, F_GETFL) < 0) {
    return absl::InvalidArgumentError("--phase-from-stdin: standard input is closed");
  }
  if (phase_from_stdin && !command.empty()) {
    return absl::InvalidArgumentError(
        "--phase-from-stdin and -- CMD cannot be used together: CMD reads standard input; give "
        "--control "
        "PATH and let CMD run `vcpulse mark NAME`");
  }
  if (!command.empty() && target.all) {
    return absl::InvalidArgumentError("--all and -- CMD cannot be used together");
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
  auto shows_top = std::make_shared<bool>(false);
  CLI::App* record = app.add_subcommand("record", "Record what each vCPU does");
  record->footer(kRecordFooter);
  AddRecordingOptions(*record, *options, *text, "vcpulse.vpt; none with --to");
  record
      ->add_flag("--top", *shows_top,
                 "meanwhile show every vCPU on the terminal, as `vcpulse top` does (docs/top.md)")
      ->group(kOutputGroup);
  record->callback([options, text, shows_top, &exit_code] {
    absl::StatusOr<RecordOptions> parsed = ParseRecording(*options, *text);
    absl::Status status = parsed.ok() ? parsed->Validate() : parsed.status();
    const auto keymap = *shows_top ? LoadKeymap(std::nullopt) : top::Keymap();
    if (status.ok()) status = keymap.status();
    if (!status.ok()) {
      exit_code = Fail(status);
    } else if (*shows_top) {
      exit_code = RecordWithView(*parsed, *keymap, false);
    } else {
      exit_code = RunRecord(*parsed);
    }
  });
}

}  // namespace vcpulse::tools
