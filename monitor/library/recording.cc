#include "monitor/library/recording.h"

#include <pthread.h>

#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/host.h"
#include "kvm/own_rights.h"
#include "monitor/control/request.h"
#include "monitor/library/error.h"
#include "monitor/library/record_rows.h"
#include "monitor/live/session.h"
#include "monitor/live/target.h"
#include "monitor/profile/installed.h"
#include "monitor/sampler/tick_thread.h"

namespace {

using vcpulse::live::Loop;

vcpulse::library::RecordRows::Sink SinkOf(const vcpulse_options& options) {
  if (options.on_record == nullptr) return {};
  return [callback = options.on_record, user = options.record_user](const vcpulse_record& record) {
    return callback(&record, user) == 0;
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<vcpulse_recording>> vcpulse_recording::Start(
    const vcpulse_options& options) {
  std::unique_ptr<vcpulse_recording> recording(new vcpulse_recording(options));
  vcpulse::live::Options& live = recording->options_.live;
  if (live.open.require_counters && live.open.wanted.set == vcpulse::kvm::EventSet::kDegraded) {
    return absl::InvalidArgumentError(
        "require_counters and event set degraded cannot be used together");
  }
  if (options.profile) {
    live.profile = *options.profile;
  } else {
    auto chosen = vcpulse::profile::ChooseForHost(live.target.root);
    if (!chosen.ok()) return chosen.status();
    live.profile = std::move(chosen->profile);
  }
  if (!options.has_output) {
    auto folder = vcpulse::library::TemporaryFolder::Make();
    if (!folder.ok()) return folder.status();
    recording->folder_ = *std::move(folder);
    live.output = recording->folder_->FileNamed("recording.vpt");
  }
  recording->Launch();
  std::unique_lock lock(recording->mutex_);
  recording->changed_.wait(lock, [&] { return recording->state_ != State::kStarting; });
  if (recording->state_ == State::kEnded && !recording->result_.ok()) return recording->result_;
  lock.unlock();
  return recording;
}

vcpulse_recording::~vcpulse_recording() {
  if (thread_.joinable()) static_cast<void>(End());
}

void vcpulse_recording::Launch() {
  options_.live.wrap_writer = [this](std::unique_ptr<vcpulse::timeline::RecordWriter> next) {
    return std::make_unique<vcpulse::library::ObservingWriter>(
        std::move(next), [this] { Ticking(); }, SinkOf(options_));
  };
  // Signals are for the threads of the library's user. A SIGPIPE of our own writing stays with our
  // thread, and write(2) says EPIPE.
  const vcpulse::BlockedSignals blocked;
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "vcpulse-control");
    absl::Status result;
    vcpulse_error* error = nullptr;
    const vcpulse_status caught = vcpulse::library::Guard(&error, [&] {
      result = Run();
      return absl::OkStatus();
    });
    if (caught != VCPULSE_STATUS_OK) result = absl::InternalError(vcpulse_error_message(error));
    vcpulse_error_free(error);
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    state_ = State::kEnded;
    changed_.notify_all();
  });
}

void vcpulse_recording::Ticking() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStarting) return;
  state_ = State::kTicking;
  changed_.notify_all();
}

absl::Status vcpulse_recording::Run() {
  const vcpulse::live::Options& live = options_.live;
  if (!vcpulse::kvm::PidsAreOurs(live.target.root)) {
    return absl::FailedPreconditionError(
        "the PIDs in /proc are not those of this process's PID namespace: run it in the one that "
        "/proc is of");
  }
  auto vms = vcpulse::live::FindWithPatience(live.target, live.wait);
  if (!vms.ok()) return vms.status();
  auto session = vcpulse::live::Session::Open(live);
  if (!session.ok()) return session.status();
  Loop loop(live, **session,
            {.say =
                 [this](const std::string& line) {
                   if (options_.on_notice != nullptr) {
                     options_.on_notice(line.c_str(), options_.notice_user);
                   }
                 },
             .show = [](absl::Duration, uint64_t, const vcpulse::recorder::Progress&) {}});
  if (absl::Status status = loop.Begin(*vms); !status.ok()) return status;
  absl::Status status = RunLoop(loop);
  const std::lock_guard lock(mutex_);
  if (status.ok() && state_ == State::kStarting) {
    return absl::NotFoundError("the VM has ended before it was sampled");
  }
  return status;
}

absl::Status vcpulse_recording::RunLoop(Loop& loop) {
  // Also where an exception leaves it: nothing is posted to a loop that is no more.
  struct Published {
    explicit Published(vcpulse_recording& owner, Loop& loop) : recording(owner) {
      const std::lock_guard lock(recording.mutex_);
      recording.loop_ = &loop;
    }
    ~Published() {
      const std::lock_guard lock(recording.mutex_);
      recording.loop_ = nullptr;
    }
    vcpulse_recording& recording;
  };
  const Published published(*this, loop);
  return loop.Run(nullptr);
}

absl::Status vcpulse_recording::NotFromCallback() const {
  if (std::this_thread::get_id() != thread_.get_id()) return absl::OkStatus();
  return absl::FailedPreconditionError("a callback of a recording must not steer it");
}

absl::Status vcpulse_recording::WhyEnded() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ == State::kEnded; });  // it is about to
  return vcpulse::library::EndedError(
      result_.ok() ? "the recording has ended by itself, as its VM has"
                   : absl::StrCat("the recording has ended: ", std::string(result_.message())));
}

absl::Status vcpulse_recording::OnControlThread(const std::function<absl::Status(Loop&)>& action) {
  if (absl::Status status = NotFromCallback(); !status.ok()) return status;
  std::future<absl::Status> taken;
  {
    // A loop that ends first destroys the action, and with it the promise.
    const auto done = std::make_shared<std::promise<absl::Status>>();
    taken = done->get_future();
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) {
      loop_->Post([loop = loop_, action, done] { done->set_value(action(*loop)); });
    }
  }
  try {
    return taken.get();
  } catch (const std::future_error&) {
    return WhyEnded();
  }
}

absl::Status vcpulse_recording::Mark(const std::string& name) {
  const absl::StatusOr<std::string> checked = vcpulse::control::CheckMarkerName(name);
  if (!checked.ok()) return checked.status();
  // Before the lock: whoever holds it waits for the control thread, which may be this one.
  if (absl::Status status = NotFromCallback(); !status.ok()) return status;
  const std::lock_guard lock(marks_);
  const int64_t now_ns = vcpulse::MonotonicNow_ns();
  return OnControlThread([&checked, now_ns](Loop& loop) {
    loop.Mark(*checked, now_ns);
    return absl::OkStatus();
  });
}

absl::Status vcpulse_recording::Pause() {
  return OnControlThread([](Loop& loop) { return loop.Pause(); });
}

absl::Status vcpulse_recording::Resume() {
  return OnControlThread([](Loop& loop) { return loop.Resume(); });
}

absl::Status vcpulse_recording::End() {
  {
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) loop_->Post([loop = loop_] { loop->End("control"); });
  }
  thread_.join();
  return result_;
}
