// The entries of the C API that record.
#include "monitor/library/error.h"
#include "monitor/library/include/vcpulse.h"
#include "monitor/library/recording.h"
#include "monitor/library/timeline.h"

using vcpulse::library::Given;

vcpulse_recording* vcpulse_recording_attach(const vcpulse_options* options, vcpulse_error** error) {
  using Made = absl::StatusOr<std::unique_ptr<vcpulse_recording>>;
  return vcpulse::library::GuardMake(error, [&]() -> Made {
    if (absl::Status status = Given(options, "options"); !status.ok()) return status;
    return vcpulse_recording::Start(*options);
  });
}

vcpulse_status vcpulse_recording_mark(vcpulse_recording* recording, const char* name,
                                      vcpulse_error** error) {
  return vcpulse::library::Guard(error, [&]() -> absl::Status {
    if (absl::Status status = Given(recording, "recording"); !status.ok()) return status;
    if (absl::Status status = Given(name, "name"); !status.ok()) return status;
    return recording->Mark(name);
  });
}

vcpulse_status vcpulse_recording_pause(vcpulse_recording* recording, vcpulse_error** error) {
  return vcpulse::library::Guard(error, [&]() -> absl::Status {
    if (absl::Status status = Given(recording, "recording"); !status.ok()) return status;
    return recording->Pause();
  });
}

vcpulse_status vcpulse_recording_resume(vcpulse_recording* recording, vcpulse_error** error) {
  return vcpulse::library::Guard(error, [&]() -> absl::Status {
    if (absl::Status status = Given(recording, "recording"); !status.ok()) return status;
    return recording->Resume();
  });
}

vcpulse_timeline* vcpulse_recording_stop(vcpulse_recording* recording, vcpulse_error** error) {
  using Made = absl::StatusOr<std::unique_ptr<vcpulse_timeline>>;
  return vcpulse::library::GuardMake(error, [&]() -> Made {
    if (absl::Status status = Given(recording, "recording"); !status.ok()) return status;
    if (absl::Status status = recording->NotFromCallback(); !status.ok()) return status;
    const std::unique_ptr<vcpulse_recording> owned(recording);
    if (absl::Status status = owned->End(); !status.ok()) return status;
    return vcpulse::library::OpenTimeline(owned->output(), owned->TakeFolder());
  });
}

void vcpulse_recording_free(vcpulse_recording* recording) {
  if (recording != nullptr && recording->NotFromCallback().ok()) delete recording;
}
