#include "tools/vcpulse/record_loop.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/vcpulse/commands.h"

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

constexpr Milliseconds kReturnPeriod{200};

std::string WhyLeftOut(const kvm::Vm& vm) {
  return vm.notes.empty() ? "no vCPU thread was found" : vm.notes.front();
}

}  // namespace

RecordLoop::RecordLoop(const RecordOptions& options, RecordSession& session)
    : options_(options),
      session_(session),
      recording_(session.recording()),
      discovery_(options.target.root),
      signals_(context_, SIGINT, SIGTERM, SIGHUP),
      deadline_(context_),
      return_timer_(context_) {}

absl::Status RecordLoop::Begin(const std::vector<kvm::Vm>& vms) {
  absl::Status first_error;
  bool any = false;
  for (const kvm::Vm& vm : vms) {
    const absl::Status status = Take(vm);
    any = any || status.ok();
    if (first_error.ok()) first_error = status;
  }
  const bool goes_on = any || vms.empty() || options_.target.all;
  if (!goes_on) return first_error;
  for (const auto& [key, vm] : left_out_) {
    std::fprintf(stderr, "vcpulse: VM %s (PID %d) is not recorded so far: %s\n", vm.name.c_str(),
                 vm.pid, WhyLeftOut(vm).c_str());
  }
  return absl::OkStatus();
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
    left_out_[recorder::KeyOf(vm)] = vm;
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
  rescan_errors_.erase(key);
  if (!recording_.vms().empty() || options_.target.all) return;
  if (!options_.target.vm.empty() && options_.wait > absl::ZeroDuration()) {
    AwaitReturn();
  } else if (options_.command.empty()) {
    End("vm-end");
  }
}

void RecordLoop::AwaitReturn() {
  live_line_.Clear();
  std::fprintf(stderr, "vcpulse: VM '%s' has ended; waiting %s for it to come again\n",
               options_.target.vm.c_str(), absl::FormatDuration(options_.wait).c_str());
  LookForReturn(absl::Now() + options_.wait);
}

void RecordLoop::LookForReturn(absl::Time give_up) {
  const absl::StatusOr<kvm::Vm> vm = discovery_.FindByName(options_.target.vm);
  if (vm.ok() && IsUsable(*vm) && Take(*vm).ok()) {
    WakeForNews();
    return;
  }
  if (absl::Now() >= give_up) {
    if (options_.command.empty()) End("vm-end");
    return;
  }
  return_timer_.expires_after(kReturnPeriod);
  return_timer_.async_wait([this, give_up](const boost::system::error_code& error) {
    if (!error) LookForReturn(give_up);
  });
}

void RecordLoop::WakeForNews() {
  if (recording_.TakeSamplerNews()) ticker_->Wake();
}

void RecordLoop::RescanOne(const kvm::Vm& vm) {
  const absl::StatusOr<kvm::Vm> now = discovery_.Rescan(vm);
  if (now.ok() && now->vcpus.empty() && vm.vcpus.empty()) return;  // none has come back yet
  if (absl::IsNotFound(now.status())) {
    VmEnded(recorder::KeyOf(vm), std::string(now.status().message()));
  } else if (now.ok()) {
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
      options_.command.empty()
          ? discovery_.FindOthers(recording_.vms(), strangers_,
                                  absl::Nanoseconds(sampler::MonotonicNow_ns()))
          : discovery_.FindDescendants(getpid());
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
  // Those whose vCPU threads never showed: they might have been starting.
  for (const auto& [key, vm] : left_out_) recording_.Skipped(vm, WhyLeftOut(vm));
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

}  // namespace vcpulse::tools
