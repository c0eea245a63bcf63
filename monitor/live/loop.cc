#include "monitor/live/loop.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"

namespace vcpulse::live {
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

// Of the output, at the beginning for what shows at once that it cannot be written...
constexpr absl::Duration kFirstWritePatience = absl::Milliseconds(250);
// ...and for all that is left from the end on: a recording ends within 2 s.
constexpr absl::Duration kLastWritePatience = absl::Milliseconds(1500);

// As status names it: `name` where it is no path.
std::string AbsoluteOutput(const std::string& path, const std::string& name) {
  if (path.empty() || path == "-") return name;
  std::error_code error;  // a folder that is no more
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? name : absolute.string();
}

std::string WhyLeftOut(const kvm::Vm& vm) {
  return vm.notes.empty() ? "no vCPU thread was found" : vm.notes.front();
}

}  // namespace

Loop::Loop(const Options& options, Session& session, View view)
    : options_(options),
      session_(session),
      recording_(session.recording()),
      discovery_(options.target.root),
      signals_(context_),
      deadline_(context_),
      return_timer_(context_),
      view_(std::move(view)),
      output_(AbsoluteOutput(options.output, session.Destination())) {}

absl::Status Loop::Begin(const std::vector<kvm::Vm>& vms) {
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
    view_.say(absl::StrCat("VM ", vm.name, " (PID ", vm.pid,
                           ") is not recorded so far: ", WhyLeftOut(vm)));
  }
  return Listen();
}

absl::Status Loop::Take(const kvm::Vm& vm) {
  if (IsTcg(vm)) {
    const std::string why =
        "it runs without KVM (TCG), its guest counters would read zero; start it with -accel kvm";
    saw_guest_ = true;
    recording_.Skipped(vm, v1::LifeCycle::SKIP_REASON_NO_KVM, why);
    return absl::FailedPreconditionError(
        absl::StrCat("VM ", vm.name, " (PID ", vm.pid, "): ", why));
  }
  absl::Status status = recording_.Track(vm);
  saw_guest_ = saw_guest_ || !vm.vcpus.empty();
  if (vm.vcpus.empty()) {
    left_out_[recorder::KeyOf(vm)] = vm;
  } else {
    left_out_.erase(recorder::KeyOf(vm));
  }
  if (status.ok()) {
    Watch(vm);
  } else if (!vm.vcpus.empty() && !absl::IsNotFound(status)) {
    recording_.Skipped(vm, v1::LifeCycle::SKIP_REASON_NOT_OPENED, std::string(status.message()));
  }
  return status;
}

void Loop::Watch(const kvm::Vm& vm) {
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

void Loop::VmEnded(const recorder::InstanceKey& key, const std::string& detail) {
  recording_.Ended(key, detail);
  WakeForNews();
  watched_.erase(key);
  rescan_errors_.erase(key);
  if (!recording_.vms().empty() || options_.target.all) return;
  if (!options_.target.vm.empty() && options_.rewait > absl::ZeroDuration()) {
    AwaitReturn();
  } else if (!options_.beside_command) {
    End("vm-end");
  }
}

void Loop::AwaitReturn() {
  view_.say(absl::StrCat("VM '", options_.target.vm, "' has ended; waiting up to ",
                         absl::FormatDuration(options_.rewait), " for it to start again"));
  LookForReturn(Deadline(options_.rewait));
}

void Loop::LookForReturn(const Deadline& give_up) {
  const absl::StatusOr<kvm::Vm> vm = discovery_.FindByName(options_.target.vm);
  if (vm.ok() && IsUsable(*vm) && Take(*vm).ok()) {
    WakeForNews();
    return;
  }
  if (give_up.over()) {
    if (!options_.beside_command) End("vm-end");
    return;
  }
  return_timer_.expires_after(kReturnPeriod);
  return_timer_.async_wait([this, give_up](const boost::system::error_code& error) {
    if (!error) LookForReturn(give_up);
  });
}

void Loop::WakeForNews() {
  if (recording_.TakeSamplerNews()) ticker_->Wake();
}

absl::Status Loop::RescanOne(const kvm::Vm& vm) {
  const absl::StatusOr<kvm::Vm> now = discovery_.Rescan(vm);
  if (now.ok() && now->vcpus.empty() && vm.vcpus.empty()) {
    return absl::OkStatus();  // none has come back yet
  }
  if (absl::IsNotFound(now.status())) {
    VmEnded(recorder::KeyOf(vm), std::string(now.status().message()));
    return absl::OkStatus();
  }
  absl::Status status = now.ok() ? recording_.Track(*now) : now.status();
  if (status.ok()) {
    rescan_errors_.erase(recorder::KeyOf(vm));
  } else {
    std::string& said = rescan_errors_[recorder::KeyOf(vm)];
    const std::string before = std::exchange(said, std::string(status.message()));
    if (said != before) view_.say(said);
  }
  WakeForNews();
  return status;
}

void Loop::LookForMore() {
  const std::vector<kvm::Vm> found =
      !options_.beside_command
          ? discovery_.FindOthers(recording_.vms(), non_vmms_, absl::Nanoseconds(MonotonicNow_ns()))
          : discovery_.FindDescendants(getpid());
  // One that ended without a vCPU was no guest.
  std::erase_if(left_out_, [&found](const auto& left_out) {
    return std::ranges::find(found, left_out.first, recorder::KeyOf) == found.end();
  });
  for (const kvm::Vm& vm : found) {
    if (watched_.contains(recorder::KeyOf(vm))) continue;
    static_cast<void>(Take(vm));  // said by PrintNotices; one without vCPUs yet is tried again
    WakeForNews();
  }
}

void Loop::EndSkipped() {
  for (const kvm::Vm& vm : recording_.skipped()) {
    const absl::Status status = discovery_.Rescan(vm).status();
    if (absl::IsNotFound(status)) {
      recording_.Ended(recorder::KeyOf(vm), std::string(status.message()));
    }
  }
}

absl::Status Loop::Rescan() {
  absl::Status first_error;
  for (const kvm::Vm& vm : recording_.vms()) {
    const absl::Status status = RescanOne(vm);
    if (first_error.ok() || absl::IsNotFound(first_error)) first_error = status;
  }
  if (!options_.target.IsOne()) LookForMore();
  EndSkipped();
  return first_error;
}

void Loop::Drain() {
  recording_.CollectWindows();  // one ends in time, whatever the output does
  if (!OutputIsBehind()) recording_.Drain();
  for (const recorder::InstanceKey& key : recording_.TakeSuspects()) {
    for (const kvm::Vm& vm : recording_.vms()) {
      if (recorder::KeyOf(vm) == key) static_cast<void>(RescanOne(vm));
    }
  }
  PrintNotices();
  if (command_ != nullptr && command_->Poll()) End("command");
}

bool Loop::OutputIsBehind() {
  if (!session_.backlogged()) return false;
  if (!std::exchange(said_behind_, true)) {
    view_.say(
        absl::StrCat(session_.Destination(), " takes no data: ticks become gaps until it does"));
  }
  return true;
}

void Loop::SayWhereTicksAreSlow() {
  if (!slow_ticks_.Look(ticker_->ticks(), ticker_->slow_ticks())) return;
  size_t vcpus = 0;
  for (const kvm::Vm& vm : recording_.vms()) vcpus += vm.vcpus.size();
  view_.say(absl::StrCat("most ticks take more than a quarter of the interval of ",
                         absl::FormatDuration(options_.interval), " to read ",
                         Plural(vcpus, "vCPU"),
                         ", one CPU after the other: a longer --interval or fewer VMs (--vm, "
                         "--pid) disturb the guests "
                         "less"));
}

bool Loop::Flush() {
  if (OutputIsBehind()) return true;
  recording_.Drain();
  if (IsHeldBack()) return true;
  write_status_ = session_.Flush();
  if (!write_status_.ok()) End("write-error");
  return write_status_.ok();
}

void Loop::PrintNotices() {
  for (const std::string& notice : recording_.TakeNotices()) view_.say(notice);
}

void Loop::End(const std::string& reason) {
  if (!end_reason_) {
    end_reason_ = reason;
    last_write_ = Deadline(kLastWritePatience);
  }
  context_.stop();
}

void Loop::Post(std::function<void()> action) { asio::post(context_, std::move(action)); }

void Loop::TakeSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) signals_.add(signal);
  AwaitSignal();
}

void Loop::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (signal == SIGHUP && options_.hang_up) {
      options_.hang_up();
      return AwaitSignal();
    }
    if (command_ != nullptr) command_->Signal(signal);
    End("signal");
  });
}

void Loop::SetUpTimers() {
  const auto add = [this](Milliseconds period, std::function<bool()> action) {
    timers_.push_back(std::make_unique<Periodic>(context_, period, std::move(action)));
  };
  add(kDrainPeriod, [this] { return Drain(), true; });
  add(kFlushPeriod, [this] { return SayWhereTicksAreSlow(), Flush(); });
  add(!options_.beside_command ? kRescanPeriod : kRescanPeriodForCommand, [this] {
    static_cast<void>(Rescan());  // said
    return true;
  });
  add(kLivePeriod, [this] {
    view_.show(absl::Nanoseconds(MonotonicNow_ns() - start_ns_), ticker_->ticks(),
               recording_.progress());
    return true;
  });
}

absl::Status Loop::Run(ChildCommand* command) {
  command_ = command;
  auto ticker = sampler::TickThread::Start(
      recording_.sampler(), {.interval = options_.interval, .realtime = options_.realtime});
  if (!ticker.ok()) return ticker.status();
  ticker_ = *std::move(ticker);
  if (Flush()) write_status_ = session_.Settle(Deadline(kFirstWritePatience));
  if (!write_status_.ok()) {
    context_.poll();  // a signal that came meanwhile is the end's reason
    return write_status_;
  }
  PrintNotices();

  if (options_.duration != absl::InfiniteDuration()) {
    deadline_.expires_after(absl::ToChronoNanoseconds(options_.duration));
    deadline_.async_wait([this](const boost::system::error_code& error) {
      if (!error) End("duration");
    });
  }
  SetUpTimers();
  context_.run();
  absl::Status status = Finish();
  AnswerStop(status);
  return status;
}

void Loop::RetireAll() {
  recording_.RetireAll();
  while (!recording_.idle()) {
    ticker_->Wake();
    absl::SleepFor(absl::Milliseconds(1));
    recording_.Drain();
  }
}

absl::Status Loop::Finish() {
  if (phase_input_ != nullptr) phase_input_->TakeWaiting();
  const uint64_t ticks = ticker_->ticks();
  RetireAll();
  ticker_.reset();
  recording_.Drain();
  // Those whose vCPU threads never showed: they might have been starting.
  for (const auto& [key, vm] : left_out_) {
    saw_guest_ = true;
    const bool has_vcpus = vm.vcpu_descriptors > 0;  // whose threads were not identified
    recording_.Skipped(
        vm, has_vcpus ? v1::LifeCycle::SKIP_REASON_NOT_OPENED : v1::LifeCycle::SKIP_REASON_NO_VCPU,
        WhyLeftOut(vm));
  }
  PrintNotices();
  const Deadline last_write = last_write_.value_or(Deadline(kLastWritePatience));
  if (!write_status_.ok()) {
    static_cast<void>(session_.Finish(last_write));
    return write_status_;
  }
  if (IsHeldBack()) {
    view_.say(
        "the command started no KVM guest, so nothing was recorded (to record a guest that is "
        "running already, add --vm NAME)");
    return session_.Finish(last_write);
  }
  session_.Summarize(ticks, end_reason_.value_or(""));
  absl::Status status = session_.Flush();
  const absl::Status finished = session_.Finish(last_write);
  status.Update(finished);
  if (!status.ok()) return status;
  const recorder::Progress progress = recording_.progress();
  view_.say(absl::StrCat(recorder::Counted(ticks, progress.vcpu_samples, progress.gaps), "; ",
                         Plural(session_.bytes(), "byte"), session_.Destination()));
  if (progress.samples == 0) {
    view_.say(geteuid() == 0 ? "no KVM guest was recorded"
                             : "no KVM guest was recorded (only root can identify the VMs of other "
                               "users)");
  } else if (!session_.no_keeper_reason().empty()) {
    view_.say(
        absl::StrCat("counters were read by read(2), which interrupts running vCPUs; no BPF: ",
                     session_.no_keeper_reason()));
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::live
