// One run of `vcpulse record`, from finding the VMs to the exit code.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/discovery/discovery.h"
#include "tools/vcpulse/child_command.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/record_loop.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/record_session.h"

namespace vcpulse::tools {
namespace {

constexpr absl::Duration kWaitRetry = absl::Milliseconds(200);

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

// The VMs to begin with: waits for as long as was asked.
absl::StatusOr<std::vector<kvm::Vm>> FindWithPatience(const RecordOptions& options) {
  const kvm::Discovery discovery(options.target.root);
  const absl::Time give_up = absl::Now() + options.wait;
  while (true) {
    absl::StatusOr<std::vector<kvm::Vm>> found = FindTarget(discovery, options.target);
    const bool empty = found.ok() && found->empty() && !options.target.all;
    const bool unusable =
        found.ok() && !options.target.all && std::ranges::none_of(*found, IsUsable);
    const bool later =
        unusable || absl::IsNotFound(found.status()) || absl::IsUnavailable(found.status());
    if (!later) return found;
    if (absl::Now() >= give_up) {
      if (!empty) return found;
      return absl::NotFoundError(
          "no KVM guest runs here: start one, or give --wait 30s, --all or -- CMD");
    }
    absl::SleepFor(kWaitRetry);
  }
}

}  // namespace

int RunRecord(const RecordOptions& options) {
  const rlimit descriptors = RaiseDescriptorLimit();
  const bool beside_command = !options.command.empty();
  const auto fail = [&](const absl::Status& status) {
    Fail(status);
    return beside_command ? kExitFailedBesideCommand : kExitError;
  };
  std::vector<kvm::Vm> vms;
  // Beside a command, one VM that was named is there already; else the command starts them.
  if (!beside_command || options.target.IsOne()) {
    auto found = FindWithPatience(options);
    if (!found.ok()) return fail(found.status());
    vms = *std::move(found);
  }
  auto session = RecordSession::Open(options);
  if (!session.ok()) return fail(session.status());
  RecordLoop loop(options, **session);
  if (absl::Status status = loop.Begin(vms); !status.ok()) return fail(status);

  std::optional<ChildCommand> command;
  if (beside_command) {
    auto started = ChildCommand::Start(options.command, descriptors);
    if (!started.ok()) {
      Fail(started.status());
      return ExitCodeOfFailure(started.status());
    }
    command = *std::move(started);
  }
  if (absl::Status status = loop.Run(command ? &*command : nullptr); !status.ok()) {
    if (command) command->Signal(SIGTERM);
    return fail(status);
  }
  return command ? loop.WaitFor(*command) : kExitOk;
}

}  // namespace vcpulse::tools
