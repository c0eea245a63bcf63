// One run of `vcpulse record`, from finding the VMs to the exit code.
#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/follow/live_line.h"
#include "monitor/live/child_command.h"
#include "monitor/live/loop.h"
#include "monitor/live/periodic.h"
#include "monitor/live/session.h"
#include "monitor/prometheus/stream_metrics.h"
#include "monitor/prometheus/vcpu_metrics.h"
#include "monitor/report/text_report.h"
#include "monitor/stream/net/record_uplink.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/metrics_endpoint.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/service.h"
#include "tools/vcpulse/uplink_options.h"

namespace vcpulse::tools {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kPollPeriod{50};
constexpr size_t kStatusColumns = 200;

// After the recording: waits for the command's end, passing signals on to it. Its exit code.
int WaitFor(live::ChildCommand& command) {
  if (const std::optional<int> code = command.Poll()) return *code;
  std::fputs("vcpulse: the recording has ended; waiting for the command\n", stderr);
  std::optional<int> code;
  asio::io_context context;
  asio::signal_set signals(context, SIGINT, SIGTERM, SIGHUP);
  std::function<void(const boost::system::error_code&, int)> pass_on =
      [&](const boost::system::error_code& error, int signal) {
        if (error) return;
        command.Signal(signal);
        signals.async_wait(pass_on);
      };
  signals.async_wait(pass_on);
  const live::Periodic poll(context, kPollPeriod, [&] {
    code = command.Poll();
    if (code) context.stop();
    return !code;
  });
  context.run();
  return code.value_or(kExitFailedBesideCommand);
}

// 127 where the command was not found, 126 where it could not be run, 125 for an error of ours.
int ExitCodeOfFailure(const absl::Status& status) {
  if (absl::IsInternal(status)) return kExitFailedBesideCommand;
  return absl::IsNotFound(status) ? 127 : 126;
}

// Has the chunks of the recording to come go to the collector too. Null without --to.
absl::StatusOr<std::unique_ptr<stream::RecordUplink>> StartUplink(RecordOptions& options) {
  if (!options.uplink) return nullptr;
  options.uplink->say = [](const std::string& line) { Fail(line); };
  auto uplink = stream::RecordUplink::Start(*options.uplink);
  if (!uplink.ok()) return uplink.status();
  options.chunk_sink =
      live::ChunkSink{.name = options.uplink->uplink.Destination(),
                      .take = std::bind_front(&stream::RecordUplink::Take, uplink->get())};
  options.hang_up = std::bind_front(&stream::RecordUplink::ReloadCredentials, uplink->get());
  return uplink;
}

// Has the display see every chunk, beside where they go already.
void ShowChunks(const Display& display, RecordOptions& options) {
  const auto sink = options.chunk_sink.value_or(live::ChunkSink());
  options.chunk_sink = live::ChunkSink{
      .name = sink.name,
      .take = [show = display.chunk, take = sink.take](std::span<const uint8_t> chunk) {
        show(chunk);
        if (take) take(chunk);
      }};
}

// What is scraped while the recording runs.
struct Scraped {
  std::unique_ptr<prometheus::VcpuMetrics> vcpus;
  MetricsEndpoint endpoint;
};

// Counts the records of the recording to come, and serves that. Nothing without --metrics. The
// uplink, which may be null, must outlive it.
absl::StatusOr<Scraped> StartMetrics(RecordOptions& options, const stream::RecordUplink* uplink) {
  Scraped scraped;
  if (options.metrics.address.empty()) return scraped;
  scraped.vcpus = prometheus::VcpuMetrics::Create(options.metrics.Level());
  options.wrap_writer = std::bind_front(&prometheus::VcpuMetrics::Count, scraped.vcpus.get());
  std::vector<std::function<std::string()>> sources;
  sources.push_back([vcpus = scraped.vcpus.get()] { return vcpus->Text(); });
  if (uplink != nullptr) {
    sources.push_back([uplink] { return prometheus::TextOf(uplink->stats()); });
  }
  auto endpoint = ServeMetrics(options.metrics.address, "vcpulse record", std::move(sources));
  if (!endpoint.ok()) return endpoint.status();
  scraped.endpoint = *std::move(endpoint);
  return scraped;
}

// Whether something of an earlier recording went out, or was found to be lost.
bool HasSettledAny(const stream::Uplink::Stats& stats) {
  return stats.acknowledged_chunks > 0 || stats.lost_chunks > 0;
}

// The VMs to begin with. Beside a command, one VM that was named is there already; else the command
// starts them.
absl::StatusOr<std::vector<kvm::Vm>> FindVms(const RecordOptions& options) {
  if (!options.command.empty() && !options.target.IsOne()) return std::vector<kvm::Vm>();
  return live::FindWithPatience(options.target, options.wait, [&options] {
    const std::string& vm = options.target.vm;
    Fail(absl::StrCat("waiting up to ", absl::FormatDuration(options.wait), " for ",
                      !vm.empty()              ? absl::StrCat("VM ", Quoted(vm))
                      : options.target.IsOne() ? "the VM"
                                               : "a VM"));
  });
}

// What would else fail only after a long wait: the folder of the output is not there.
absl::Status CheckFolderOf(const std::string& output) {
  if (output.empty() || output == "-") return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::path(output).parent_path();
  struct stat info{};
  if (folder.empty() || stat(folder.c_str(), &info) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", output));
}

// Starts the command after `--`, with this limit of descriptors.
absl::StatusOr<live::ChildCommand> StartCommand(const RecordOptions& options,
                                                const rlimit& descriptors) {
  // For `vcpulse mark` in it, wherever it goes.
  if (!options.control.empty()) {
    setenv("VCPULSE_CONTROL", std::filesystem::absolute(options.control).c_str(), 1);
  }
  return live::ChildCommand::Start(options.command, descriptors);
}

// What a person and the service manager see of it.
live::View ViewOn(follow::LiveLine& live_line) {
  return {
      .say =
          [&live_line](const std::string& line) {
            live_line.Clear();
            Fail(line);
          },
      .show =
          [&live_line](absl::Duration elapsed, uint64_t ticks, const recorder::Progress& progress) {
            live_line.Show(elapsed, ticks, progress);
            NotifyService("STATUS=" +
                          follow::FormatLiveLine(elapsed, ticks, progress, kStatusColumns));
          }};
}

}  // namespace

int RunRecord(const RecordOptions& given, const Display* display) {
  RecordOptions options = given;
  // Each vCPU takes up to 8; EMFILE says so where all that this user may have is not enough.
  const rlimit descriptors = RaiseDescriptorLimit();
  const bool beside_command = !options.command.empty();
  const auto fail = [&](const absl::Status& status) {
    Fail(status);
    return beside_command ? kExitFailedBesideCommand : kExitError;
  };
  // What an earlier recording left in the spool goes out while a VM is waited for.
  const auto uplink = StartUplink(options);
  if (!uplink.ok()) return fail(uplink.status());
  if (display != nullptr) ShowChunks(*display, options);
  if (absl::Status status = CheckFolderOf(options.output); !status.ok()) return fail(status);
  const auto vms = FindVms(options);
  if (!vms.ok()) {
    if (*uplink && HasSettledAny((*uplink)->stats())) Fail((*uplink)->Drain());
    return fail(vms.status());
  }
  const auto scraped = StartMetrics(options, uplink->get());
  if (!scraped.ok()) return fail(scraped.status());
  auto session = live::Session::Open(options);
  if (!session.ok()) return fail(session.status());
  if ((*session)->proof()) Fail(report::ProofText(*(*session)->proof()));
  follow::LiveLine live_line(beside_command);
  const live::View view = display != nullptr ? display->view : ViewOn(live_line);
  live::Loop loop(options, **session, view);
  if (absl::Status status = loop.Begin(*vms); !status.ok()) return fail(status);

  std::optional<live::ChildCommand> command;
  if (beside_command) {
    auto started = StartCommand(options, descriptors);
    if (!started.ok()) {
      Fail(started.status());
      return ExitCodeOfFailure(started.status());
    }
    command = *std::move(started);
  }
  loop.TakeSignals();
  if (*uplink) (*uplink)->lines().GoThrough(std::bind_front(&live::Loop::Post, &loop), view.say);
  // Said by the loop: not before the output is known to take the first write.
  if (!scraped->endpoint.url.empty()) {
    loop.Post([&] { view.say(absl::StrCat("metrics at ", scraped->endpoint.url)); });
  }
  if (display != nullptr) display->begin(loop);
  NotifyService("READY=1");
  const absl::Status status = loop.Run(command ? &*command : nullptr);
  NotifyService("STOPPING=1");
  live_line.Clear();
  if (display != nullptr) display->ended(status, loop.end_reason() == "signal");
  if (*uplink) (*uplink)->lines().GoDirectly();
  int exit_code = kExitOk;
  if (!status.ok()) {
    if (command) command->Signal(SIGTERM);
    exit_code = fail(status);
  } else if (command) {
    exit_code = WaitFor(*command);  // chunks go out meanwhile
  }
  const bool has_samples = (*session)->recording().progress().samples > 0;
  if (options.require_guest && !has_samples && exit_code == kExitOk) {
    exit_code = fail(absl::NotFoundError("--require-guest: no KVM guest was recorded"));
  }
  if (*uplink) {
    Fail((*uplink)->Drain());
    if (exit_code == kExitOk && (*uplink)->HasFailed()) {
      exit_code = beside_command ? kExitFailedBesideCommand : kExitError;
    }
  }
  return exit_code;
}

}  // namespace vcpulse::tools
