// Of Loop: markers, pauses, and the requests of the control socket.
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/live/loop.h"

namespace vcpulse::live {

absl::Status Loop::Listen() {
  if (options_.phase_from_stdin) {
    auto input = control::PhaseInput::Open(
        context_, STDIN_FILENO, MonotonicNow_ns,
        {.mark = [this](const std::string& name, int64_t mono_ns) { Mark(name, mono_ns); },
         .say = [this](const std::string& line) { view_.say(line); }});
    if (!input.ok()) return input.status();
    phase_input_ = *std::move(input);
  }
  if (options_.control.empty()) return absl::OkStatus();
  auto server = control::Server::Listen(
      context_, {.path = options_.control, .now_ns = MonotonicNow_ns},
      [this](const control::Request& request, int64_t received_mono_ns,
             const control::Server::Answer& answer) { Handle(request, received_mono_ns, answer); });
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  return absl::OkStatus();
}

void Loop::Mark(const std::string& name, int64_t mono_ns) {
  recording_.Drain();  // ticks before it come before it
  recording_.Mark(name, mono_ns);
  phase_ = name;
  ++markers_;
}

absl::Status Loop::Pause() {
  if (recording_.paused()) {
    return absl::FailedPreconditionError("the recording is paused already");
  }
  RetireAll();  // the last sample comes before the pause is said
  recording_.Pause();
  return absl::OkStatus();
}

absl::Status Loop::Resume() {
  if (!recording_.paused()) return absl::FailedPreconditionError("the recording is not paused");
  recording_.Resume();
  const absl::Status status = Rescan();  // VMs may have come, gone or changed
  if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();  // one that is gone
  return absl::Status(status.code(),
                      absl::StrCat("the recording goes on, but not of every VM so far: ",
                                   std::string(status.message())));
}

control::RecordingStatus Loop::Status() const {
  const recorder::Progress progress = recording_.progress();
  control::RecordingStatus status{.state = end_reason_ ? control::RecordingState::kStopping
                                           : recording_.paused()
                                               ? control::RecordingState::kPaused
                                               : control::RecordingState::kRecording,
                                  .elapsed_ns = MonotonicNow_ns() - start_ns_,
                                  .ticks = ticker_->ticks(),
                                  .vcpu_samples = progress.vcpu_samples,
                                  .gaps = progress.gaps,
                                  .output = output_,
                                  .reader = std::string(session_.reader()),
                                  .phase = phase_,
                                  .markers = markers_};
  for (const kvm::Vm& vm : recording_.vms()) {
    status.vms.push_back({.name = vm.name, .pid = vm.pid, .vcpus = vm.vcpus.size()});
  }
  return status;
}

void Loop::Handle(const control::Request& request, int64_t received_mono_ns,
                  const control::Server::Answer& answer) {
  switch (request.verb) {
    case control::Verb::kMark:
      Mark(request.name, received_mono_ns);
      return answer({.mono_ns = received_mono_ns});
    case control::Verb::kPause:
      return answer({.error = Pause()});
    case control::Verb::kResume:
      return answer({.error = Resume()});
    case control::Verb::kStatus:
      recording_.Drain();
      return answer({.status = Status()});
    case control::Verb::kStop:
      stop_answers_.push_back(answer);
      return End("control");
  }
}

void Loop::AnswerStop(const absl::Status& status) {
  for (const control::Server::Answer& answer : stop_answers_) answer({.error = status});
  stop_answers_.clear();
  server_.reset();  // nobody would answer
  phase_input_.reset();
}

}  // namespace vcpulse::live
