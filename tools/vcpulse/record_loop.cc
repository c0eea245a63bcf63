// The control thread of `vcpulse record`: which VMs there are, when to write, when to end. The
// sampling is the tick thread's.

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "kvm/discovery.h"
#include "kvm/fd.h"
#include "monitor/sampler/tick_thread.h"
#include "tools/vcpulse/child_command.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/live_line.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/record_session.h"

namespace vcpulse::tools {
namespace {

namespace asio = boost::asio;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kDrainPeriod{50};
// A killed recording loses at most its last second: this, and the time to wake and write.
constexpr Milliseconds kFlushPeriod{800};
constexpr Milliseconds kRescanPeriod{1000};
// A guest that a command starts is to be seen from its beginning.
constexpr Milliseconds kRescanPeriodForCommand{200};
constexpr Milliseconds kLivePeriod{250};
constexpr absl::Duration kWaitRetry = absl::Milliseconds(200);

bool IsTcg(const kvm::Vm& vm) { return vm.accelerator == kvm::Accelerator::kTcg; }

bool IsUsable(const kvm::Vm& vm) { return !IsTcg(vm) && !vm.vcpus.empty(); }

// Calls `action` each `period` until it returns false.
class Periodic {
 public:
  Periodic(asio::io_context& context, Milliseconds period, std::function<bool()> action)
      : timer_(context), period_(period), action_(std::move(action)) {
    timer_.expires_after(period_);
    Wait();
  }

 private:
  void Wait() {
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error || !action_()) return;
      timer_.expires_after(period_);
      Wait();
    });
  }

  asio::steady_timer timer_;
  Milliseconds period_;
  std::function<bool()> action_;
};

class RecordLoop {
 public:
  RecordLoop(const RecordOptions& options, RecordSession& session)
      : options_(options),
        session_(session),
        recording_(session.recording()),
        signals_(context_, SIGINT, SIGTERM, SIGHUP),
        deadline_(context_) {}

  // Begins with these VMs. Errors: of the one that was asked for, or of all of them.
  absl::Status Begin(const std::vector<kvm::Vm>& vms);

  // Ticks until the end. Errors: an output that cannot be written any more, --realtime refused.
  absl::Status Run(ChildCommand* command);

  // After Run: waits for the command's end, passing signals on to it. Its exit code.
  int WaitFor(ChildCommand& command);

 private:
  // Records the VM, or notes why not.
  absl::Status Take(const kvm::Vm& vm);
  void Watch(const kvm::Vm& vm);
  void Rescan();
  void RescanOne(const kvm::Vm& vm);
  void WakeForNews();
  void LookForMore();
  void VmEnded(const recorder::InstanceKey& key, const std::string& detail);
  void SetUpTimers();
  void Drain();
  bool Flush();
  void PrintNotices();
  void End(const std::string& reason);
  absl::Status Finish();

  const RecordOptions& options_;
  RecordSession& session_;
  recorder::Recording& recording_;
  kvm::Discovery discovery_;
  asio::io_context context_;
  asio::signal_set signals_;
  asio::steady_timer deadline_;
  std::vector<std::unique_ptr<Periodic>> timers_;
  // One pidfd per VM: readable when the VMM has ended.
  std::map<recorder::InstanceKey, std::unique_ptr<asio::posix::stream_descriptor>> watched_;
  std::map<recorder::InstanceKey, std::string> rescan_errors_;  // said once
  // Guests whose vCPU threads cannot be told so far, and why: said at the end, they may be
  // starting.
  std::map<recorder::InstanceKey, std::string> left_out_;
  std::unique_ptr<sampler::TickThread> ticker_;
  ChildCommand* command_ = nullptr;
  LiveLine live_line_;
  absl::Time start_ = absl::Now();
  std::string end_reason_;
  absl::Status write_status_;
};

absl::Status RecordLoop::Begin(const std::vector<kvm::Vm>& vms) {
  absl::Status first_error;
  bool any = false;
  for (const kvm::Vm& vm : vms) {
    const absl::Status status = Take(vm);
    any = any || status.ok();
    if (first_error.ok()) first_error = status;
  }
  return any || vms.empty() || options_.target.all ? absl::OkStatus() : first_error;
}

absl::Status RecordLoop::Take(const kvm::Vm& vm) {
  if (IsTcg(vm)) {
    const std::string why =
        "it runs without KVM (TCG), its guest counters would read zero; start it with -accel kvm";
    recording_.Skipped(vm, why);
    return absl::FailedPreconditionError(
        absl::StrCat("VM ", vm.name, " (PID ", vm.pid, "): ", why));
  }
  absl::Status status = recording_.Track(vm);
  if (vm.vcpus.empty()) {
    left_out_[recorder::KeyOf(vm)] = absl::StrCat(
        "VM ", vm.name, " (PID ", vm.pid,
        ") was not recorded: ", vm.notes.empty() ? "no vCPU thread was found" : vm.notes.front());
  } else {
    left_out_.erase(recorder::KeyOf(vm));
  }
  if (status.ok()) {
    Watch(vm);
  } else if (!vm.vcpus.empty() && !absl::IsNotFound(status)) {
    recording_.Skipped(vm, std::string(status.message()));
  }
  return status;
}

void RecordLoop::Watch(const kvm::Vm& vm) {
  const recorder::InstanceKey key = recorder::KeyOf(vm);
  if (watched_.contains(key)) return;
  // glibc 2.36 declares pidfd_open(2) without C linkage.
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, vm.pid, 0));
  if (fd < 0) return;  // gone already: the rescan sees it
  auto& descriptor = watched_[key];
  descriptor = std::make_unique<asio::posix::stream_descriptor>(context_, fd);
  descriptor->async_wait(asio::posix::descriptor_base::wait_read,
                         [this, key](const boost::system::error_code& error) {
                           if (!error) VmEnded(key, "the VMM process has ended");
                         });
}

void RecordLoop::VmEnded(const recorder::InstanceKey& key, const std::string& detail) {
  recording_.Ended(key, detail);
  WakeForNews();
  watched_.erase(key);
  if (watched_.empty() && !options_.target.all && options_.command.empty()) End("vm-end");
}

void RecordLoop::WakeForNews() {
  if (recording_.TakeSamplerNews()) ticker_->Wake();
}

void RecordLoop::RescanOne(const kvm::Vm& vm) {
  const absl::StatusOr<kvm::Vm> now = discovery_.Rescan(vm);
  if (absl::IsNotFound(now.status())) {
    VmEnded(recorder::KeyOf(vm), std::string(now.status().message()));
  } else if (now.ok() && !now->vcpus.empty()) {
    const absl::Status status = recording_.Track(*now);
    std::string& said = rescan_errors_[recorder::KeyOf(vm)];
    if (!status.ok() && said != status.message()) {
      live_line_.Clear();
      Fail(status);
    }
    said = std::string(status.message());
    WakeForNews();
  }
}

void RecordLoop::LookForMore() {
  const std::vector<kvm::Vm> found =
      options_.command.empty() ? discovery_.FindAll() : discovery_.FindDescendants(getpid());
  for (const kvm::Vm& vm : found) {
    if (watched_.contains(recorder::KeyOf(vm))) continue;
    static_cast<void>(Take(vm));  // said by PrintNotices; one without vCPUs yet is tried again
    WakeForNews();
  }
}

void RecordLoop::Rescan() {
  for (const kvm::Vm& vm : recording_.vms()) RescanOne(vm);
  if (!options_.target.IsOne()) LookForMore();
}

void RecordLoop::Drain() {
  recording_.Drain();
  for (const recorder::InstanceKey& key : recording_.TakeSuspects()) {
    for (const kvm::Vm& vm : recording_.vms()) {
      if (recorder::KeyOf(vm) == key) RescanOne(vm);
    }
  }
  PrintNotices();
  if (command_ != nullptr && command_->Poll()) End("command");
}

bool RecordLoop::Flush() {
  recording_.Drain();
  write_status_ = session_.Flush();
  if (!write_status_.ok()) End("write-error");
  return write_status_.ok();
}

void RecordLoop::PrintNotices() {
  for (const std::string& notice : recording_.TakeNotices()) {
    live_line_.Clear();
    std::fprintf(stderr, "vcpulse: %s\n", notice.c_str());
  }
}

void RecordLoop::End(const std::string& reason) {
  if (end_reason_.empty()) end_reason_ = reason;
  context_.stop();
}

void RecordLoop::SetUpTimers() {
  const auto add = [this](Milliseconds period, std::function<bool()> action) {
    timers_.push_back(std::make_unique<Periodic>(context_, period, std::move(action)));
  };
  add(kDrainPeriod, [this] { return Drain(), true; });
  add(kFlushPeriod, [this] { return Flush(); });
  add(options_.command.empty() ? kRescanPeriod : kRescanPeriodForCommand,
      [this] { return Rescan(), true; });
  add(kLivePeriod, [this] {
    live_line_.Show(absl::Now() - start_, ticker_->ticks(), recording_.progress());
    return true;
  });
}

absl::Status RecordLoop::Run(ChildCommand* command) {
  command_ = command;
  auto ticker = sampler::TickThread::Start(
      recording_.sampler(), {.interval = options_.interval, .realtime = options_.realtime});
  if (!ticker.ok()) return ticker.status();
  ticker_ = *std::move(ticker);
  if (!Flush()) return write_status_;
  PrintNotices();

  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (command_ != nullptr) command_->Signal(signal);
    End("signal");
  });
  if (options_.duration != absl::InfiniteDuration()) {
    deadline_.expires_after(absl::ToChronoNanoseconds(options_.duration));
    deadline_.async_wait([this](const boost::system::error_code& error) {
      if (!error) End("duration");
    });
  }
  SetUpTimers();
  context_.run();
  return Finish();
}

absl::Status RecordLoop::Finish() {
  live_line_.Clear();
  recording_.RetireAll();
  const uint64_t ticks = ticker_->ticks();
  while (!recording_.idle()) {
    ticker_->Wake();
    absl::SleepFor(absl::Milliseconds(1));
    recording_.Drain();
  }
  ticker_.reset();
  recording_.Drain();
  PrintNotices();
  if (!write_status_.ok()) return write_status_;
  session_.Summarize(ticks, end_reason_);
  absl::Status status = session_.Flush();
  const recorder::Progress progress = recording_.progress();
  std::fprintf(stderr, "vcpulse: %s\n",
               absl::StrFormat("%d ticks, %d samples of vCPUs, %d gaps; %d bytes in %s", ticks,
                               progress.vcpu_samples, progress.gaps, session_.output().bytes(),
                               session_.output().name())
                   .c_str());
  for (const auto& [key, why] : left_out_) std::fprintf(stderr, "vcpulse: %s\n", why.c_str());
  if (progress.samples == 0) std::fputs("vcpulse: no KVM guest was recorded\n", stderr);
  return status;
}

int RecordLoop::WaitFor(ChildCommand& command) {
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
  const Periodic poll(context, kDrainPeriod, [&] {
    code = command.Poll();
    if (code) context.stop();
    return !code;
  });
  context.run();
  return code.value_or(kExitFailedBesideCommand);
}

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
  const kvm::Discovery discovery;
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
