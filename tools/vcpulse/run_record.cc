// One run of `vcpulse record`, from finding the VMs to the exit code.
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/live/child_command.h"
#include "monitor/live/loop.h"
#include "monitor/live/periodic.h"
#include "monitor/live/session.h"
#include "monitor/metrics/vcpu_metrics.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/live_line.h"
#include "tools/vcpulse/metrics_endpoint.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/service_notify.h"

namespace vcpulse::tools {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kPollPeriod{50};
constexpr size_t kStatusColumns = 200;

// Each vCPU takes up to 8 descriptors: takes all that this user may have (EMFILE says so where that
// is not enough). The limit before.
rlimit RaiseDescriptorLimit() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit limit = before;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

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

}  // namespace

int RunRecord(const RecordOptions& given) {
  RecordOptions options = given;
  const rlimit descriptors = RaiseDescriptorLimit();
  const bool beside_command = !options.command.empty();
  const auto fail = [&](const absl::Status& status) {
    Fail(status);
    return beside_command ? kExitFailedBesideCommand : kExitError;
  };
  std::vector<kvm::Vm> vms;
  // Beside a command, one VM that was named is there already; else the command starts them.
  if (!beside_command || options.target.IsOne()) {
    auto found = live::FindWithPatience(options.target, options.wait);
    if (!found.ok()) return fail(found.status());
    vms = *std::move(found);
  }
  std::unique_ptr<metrics::VcpuMetrics> counted;
  std::unique_ptr<http::Server> metrics_server;
  if (!options.metrics.empty()) {
    counted = metrics::VcpuMetrics::Create();
    options.wrap_writer = std::bind_front(&metrics::VcpuMetrics::Count, counted.get());
    auto server = ServeMetrics(options.metrics, {[&counted] { return counted->Text(); }});
    if (!server.ok()) return fail(server.status());
    metrics_server = *std::move(server);
  }
  auto session = live::Session::Open(options);
  if (!session.ok()) return fail(session.status());
  LiveLine live_line;
  live::Loop loop(
      options, **session,
      {.say =
           [&live_line](const std::string& line) {
             live_line.Clear();
             Fail(line);
           },
       .show =
           [&live_line](absl::Duration elapsed, uint64_t ticks,
                        const recorder::Progress& progress) {
             live_line.Show(elapsed, ticks, progress);
             NotifyService("STATUS=" + FormatLiveLine(elapsed, ticks, progress, kStatusColumns));
           }});
  if (absl::Status status = loop.Begin(vms); !status.ok()) return fail(status);

  std::optional<live::ChildCommand> command;
  if (beside_command) {
    // For `vcpulse mark` in it, wherever it goes.
    if (!options.control.empty()) {
      setenv("VCPULSE_CONTROL", std::filesystem::absolute(options.control).c_str(), 1);
    }
    auto started = live::ChildCommand::Start(options.command, descriptors);
    if (!started.ok()) {
      Fail(started.status());
      return ExitCodeOfFailure(started.status());
    }
    command = *std::move(started);
  }
  NotifyService("READY=1");
  const absl::Status status = loop.Run(command ? &*command : nullptr);
  NotifyService("STOPPING=1");
  live_line.Clear();
  if (!status.ok()) {
    if (command) command->Signal(SIGTERM);
    return fail(status);
  }
  return command ? WaitFor(*command) : kExitOk;
}

}  // namespace vcpulse::tools
