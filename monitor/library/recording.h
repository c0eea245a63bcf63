#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/library/options.h"
#include "monitor/library/temporary_folder.h"
#include "monitor/live/loop.h"

// One recording, on a thread of its own (the control thread of live::Loop).
struct vcpulse_recording {
 public:
  // Begins, and waits until the first tick was taken or nothing came of it.
  static absl::StatusOr<std::unique_ptr<vcpulse_recording>> Start(const vcpulse_options& options);

  // Ends in order and joins.
  ~vcpulse_recording();

  vcpulse_recording(const vcpulse_recording&) = delete;
  vcpulse_recording& operator=(const vcpulse_recording&) = delete;

  // A marker at this instant; returns once it was taken. Any thread but the control thread. Errors:
  // InvalidArgument for a name that cannot be, EndedError where the recording has ended by itself.
  absl::Status Mark(const std::string& name);

  // Closes the counters, opens them again. As Mark; FailedPrecondition where it is paused already,
  // or not paused.
  absl::Status Pause();
  absl::Status Resume();

  // Ends in order and joins; what came of the recording. Once.
  absl::Status End();

  // A call from a callback, which would wait for itself: FailedPrecondition.
  absl::Status NotFromCallback() const;

  const std::string& output() const { return options_.live.output; }
  // Null where the output was named.
  std::unique_ptr<vcpulse::library::TemporaryFolder> TakeFolder() { return std::move(folder_); }

 private:
  enum class State { kStarting, kTicking, kEnded };

  explicit vcpulse_recording(const vcpulse_options& options) : options_(options) {}

  void Launch();
  // The control thread, from finding the VMs to the end.
  absl::Status Run();
  absl::Status RunLoop(vcpulse::live::Loop& loop);
  void Ticking();
  // Has `action` run on the control thread and waits for it. Errors: of the action, EndedError.
  absl::Status OnControlThread(const std::function<absl::Status(vcpulse::live::Loop&)>& action);
  absl::Status WhyEnded();

  vcpulse_options options_;
  std::unique_ptr<vcpulse::library::TemporaryFolder> folder_;
  std::mutex marks_;  // marks are taken in the order of their instants
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kStarting;       // guarded by mutex_
  vcpulse::live::Loop* loop_ = nullptr;  // guarded by mutex_; null where it does not run
  absl::Status result_;                  // guarded by mutex_; of the whole recording, once ended
  std::thread thread_;
};
