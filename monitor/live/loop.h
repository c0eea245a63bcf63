#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/discovery/discovery.h"
#include "kvm/discovery/non_vmm_cache.h"
#include "monitor/control/phase_input.h"
#include "monitor/control/request.h"
#include "monitor/control/response.h"
#include "monitor/control/server.h"
#include "monitor/live/child_command.h"
#include "monitor/live/options.h"
#include "monitor/live/periodic.h"
#include "monitor/live/session.h"
#include "monitor/recorder/recording.h"
#include "monitor/sampler/tick_thread.h"

namespace vcpulse::live {

// What a person sees of a recording while it runs; called on the control thread.
struct View {
  std::function<void(const std::string& line)> say;
  std::function<void(absl::Duration elapsed, uint64_t ticks, const recorder::Progress&)> show;
};

// The control thread: which VMs there are, when to write, when to end. The sampling is the tick
// thread's. `options` and `session` must outlive it. One thread, but for Post().
class Loop {
 public:
  Loop(const Options& options, Session& session, View view);

  // Begins with these VMs, and listens for requests. Errors: of the one VM that was asked for, or
  // of all of them; of the control socket.
  absl::Status Begin(const std::vector<kvm::Vm>& vms);

  // From now on SIGINT, SIGTERM and SIGHUP end the recording in order; in a library they are its
  // user's. Before anything shows, as who sees it may stop the recording at once, but after a
  // command was started, which is to inherit which of them are ignored.
  void TakeSignals();

  // Ticks until the end. Errors: an output that cannot be written any more, --realtime refused.
  absl::Status Run(ChildCommand* command);

  // Has `action` called on the control thread while Run() goes on. Any thread.
  void Post(std::function<void()> action);

  // Adds a marker at this instant of CLOCK_MONOTONIC.
  void Mark(const std::string& name, int64_t mono_ns);
  // Closes all counters; no sample is taken until Resume. While Run() goes on. Errors:
  // FailedPrecondition where it is paused already.
  absl::Status Pause();
  // Looks for the VMs anew; each is sampled in an epoch of its own. Errors: FailedPrecondition
  // where it is not paused; else it goes on, and the first VM that could not be opened again so
  // far.
  absl::Status Resume();
  // Ends the recording in order; the first reason is the one that is kept.
  void End(const std::string& reason);
  // Empty while it goes on.
  std::string end_reason() const { return end_reason_.value_or(""); }

 private:
  // Records the VM, or notes why not.
  absl::Status Take(const kvm::Vm& vm);
  void Watch(const kvm::Vm& vm);
  // What could not be looked at or opened is said once and tried again by the next rescan. The
  // first such error.
  absl::Status Rescan();
  absl::Status RescanOne(const kvm::Vm& vm);
  void WakeForNews();
  void LookForMore();
  // Records the end of VMs that were skipped: what is asked about a later time is not about them.
  void EndSkipped();
  void VmEnded(const recorder::InstanceKey& key, const std::string& detail);
  // The VM that was asked for by name has ended: takes it in when it returns within --rewait.
  void AwaitReturn();
  void LookForReturn(const Deadline& give_up);
  absl::Status Listen();
  void Handle(const control::Request& request, int64_t received_mono_ns,
              const control::Server::Answer& answer);
  control::RecordingStatus Status() const;
  // Lets the tick thread let go of every epoch.
  void RetireAll();
  void AwaitSignal();
  void SetUpTimers();
  void Drain();
  bool Flush();
  // Whether the timeline of a command that has neither started a guest nor set a marker so far is
  // held back: if it never does, no file is written.
  bool IsHeldBack() const { return options_.beside_command && !saw_guest_ && markers_ == 0; }
  // Whether the output falls so far behind that samples are left where they are: their memory runs
  // out, and ticks become gaps. Says so once.
  bool OutputIsBehind();
  // Once, where reading takes much of the interval: what helps.
  void SayWhereTicksAreSlow();
  void PrintNotices();
  absl::Status Finish();
  // Tells those who asked it to stop how that ended; takes no more requests.
  void AnswerStop(const absl::Status& status);

  const Options& options_;
  Session& session_;
  recorder::Recording& recording_;
  kvm::Discovery discovery_;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer return_timer_;
  kvm::NonVmmCache non_vmms_;
  std::vector<std::unique_ptr<Periodic>> timers_;
  // One pidfd per VM: readable when the VMM has ended.
  std::map<recorder::InstanceKey, std::unique_ptr<boost::asio::posix::stream_descriptor>> watched_;
  std::map<recorder::InstanceKey, std::string> rescan_errors_;  // said once
  // Guests whose vCPU threads cannot be told so far, and why: said at the end, they may be
  // starting.
  std::map<recorder::InstanceKey, kvm::Vm> left_out_;
  std::unique_ptr<sampler::TickThread> ticker_;
  ChildCommand* command_ = nullptr;
  View view_;
  int64_t start_ns_ = MonotonicNow_ns();
  std::string output_;                // as status names it: absolute, wherever its reader is
  std::optional<std::string> phase_;  // the name of the latest marker
  uint64_t markers_ = 0;
  std::unique_ptr<control::PhaseInput> phase_input_;
  std::unique_ptr<control::Server> server_;
  std::vector<control::Server::Answer> stop_answers_;
  std::optional<std::string> end_reason_;  // none while it goes on
  std::optional<Deadline> last_write_;     // since it ends
  bool said_behind_ = false;
  bool saw_guest_ = false;  // recorded or skipped
  sampler::SlowTickWatch slow_ticks_;
  absl::Status write_status_;
};

}  // namespace vcpulse::live
