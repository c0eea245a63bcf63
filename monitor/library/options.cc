#include "monitor/library/options.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/events/event_sets.h"
#include "monitor/library/error.h"

namespace {

using vcpulse::library::Given;
using vcpulse::library::Guard;

constexpr int64_t kMost = 4194304;  // PIDs and TIDs that Linux can give (PID_MAX_LIMIT)
constexpr absl::Duration kShortestInterval = absl::Milliseconds(1);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

// A setter that takes a text: neither is NULL, and the text is not empty.
template <typename Body>
vcpulse_status SetText(vcpulse_options* options, const char* text, const char* name,
                       vcpulse_error** error, Body&& body) {
  return Guard(error, [&]() -> absl::Status {
    if (absl::Status status = Given(options, "options"); !status.ok()) return status;
    if (absl::Status status = Given(text, name); !status.ok()) return status;
    if (*text == '\0') return absl::InvalidArgumentError(absl::StrCat(name, " is empty"));
    return body(std::string(text));
  });
}

template <typename Body>
vcpulse_status Set(vcpulse_options* options, vcpulse_error** error, Body&& body) {
  return Guard(error, [&]() -> absl::Status {
    if (absl::Status status = Given(options, "options"); !status.ok()) return status;
    return body();
  });
}

absl::Status CheckThreadId(const char* what, int64_t id) {
  if (id >= 1 && id <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " ", id, " is outside 1 to ", kMost));
}

}  // namespace

vcpulse_options* vcpulse_options_new(void) {
  return vcpulse::library::GuardMake(nullptr, [] {
    auto options = std::make_unique<vcpulse_options>();
    options->live.tool_version = VCPULSE_VERSION;
    return absl::StatusOr<std::unique_ptr<vcpulse_options>>(std::move(options));
  });
}

vcpulse_options* vcpulse_options_copy(const vcpulse_options* options) {
  using Made = absl::StatusOr<std::unique_ptr<vcpulse_options>>;
  return vcpulse::library::GuardMake(nullptr, [&]() -> Made {
    if (absl::Status status = Given(options, "options"); !status.ok()) return status;
    return std::make_unique<vcpulse_options>(*options);
  });
}

void vcpulse_options_free(vcpulse_options* options) { delete options; }

vcpulse_status vcpulse_options_set_vm(vcpulse_options* options, const char* name,
                                      vcpulse_error** error) {
  return SetText(options, name, "name", error, [&](std::string text) {
    options->live.target = {.vm = std::move(text)};
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_pid(vcpulse_options* options, int64_t pid,
                                       vcpulse_error** error) {
  return Set(options, error, [&] {
    absl::Status status = CheckThreadId("PID", pid);
    if (status.ok()) options->live.target = {.pid = static_cast<pid_t>(pid)};
    return status;
  });
}

vcpulse_status vcpulse_options_set_qmp(vcpulse_options* options, const char* address,
                                       vcpulse_error** error) {
  return SetText(options, address, "address", error, [&](std::string text) {
    options->live.target = {.qmp = std::move(text)};
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_tids(vcpulse_options* options, const int64_t* tids, size_t count,
                                        vcpulse_error** error) {
  return Set(options, error, [&]() -> absl::Status {
    if (absl::Status status = Given(tids, "tids"); !status.ok()) return status;
    if (count == 0) return absl::InvalidArgumentError("count is 0: give at least one TID");
    std::vector<pid_t> all;
    for (size_t i = 0; i < count; ++i) {
      if (absl::Status status = CheckThreadId("TID", tids[i]); !status.ok()) return status;
      all.push_back(static_cast<pid_t>(tids[i]));
    }
    options->live.target = {.tids = std::move(all)};
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_wait(vcpulse_options* options, int64_t wait_ns,
                                        vcpulse_error** error) {
  return Set(options, error, [&]() -> absl::Status {
    if (wait_ns < 0) return absl::InvalidArgumentError("wait_ns is negative");
    options->live.wait = absl::Nanoseconds(wait_ns);
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_rewait(vcpulse_options* options, int64_t rewait_ns,
                                          vcpulse_error** error) {
  return Set(options, error, [&]() -> absl::Status {
    if (rewait_ns < 0) return absl::InvalidArgumentError("rewait_ns is negative");
    options->live.rewait = absl::Nanoseconds(rewait_ns);
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_interval(vcpulse_options* options, int64_t interval_ns,
                                            vcpulse_error** error) {
  return Set(options, error, [&]() -> absl::Status {
    const absl::Duration interval = absl::Nanoseconds(interval_ns);
    if (interval < kShortestInterval || interval > kLongestInterval) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the interval of ", absl::FormatDuration(interval), " is outside 1ms to 1h"));
    }
    options->live.interval = interval;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_output(vcpulse_options* options, const char* path,
                                          vcpulse_error** error) {
  return SetText(options, path, "path", error, [&](const std::string& text) -> absl::Status {
    std::error_code missing;
    const std::filesystem::file_status file = std::filesystem::status(text, missing);
    // It is read again in the end. "-" is standard output to the recorder.
    if (text == "-" || (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file))) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", text, ": a recording of the library is a regular file"));
    }
    options->live.output = std::filesystem::absolute(text).string();  // whatever chdir(2) follows
    options->has_output = true;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_event_set(vcpulse_options* options, const char* name,
                                             vcpulse_error** error) {
  return SetText(options, name, "name", error, [&](const std::string& text) -> absl::Status {
    const auto set = vcpulse::kvm::ParseEventSet(text);
    if (!set) {
      return absl::InvalidArgumentError(absl::StrCat(
          "event set '", text, "' is none of full, core, branches, min, cycles, degraded"));
    }
    options->live.open.wanted.set = *set;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_classifier(vcpulse_options* options, const char* name,
                                              vcpulse_error** error) {
  return SetText(options, name, "name", error, [&](const std::string& text) -> absl::Status {
    const auto choice = vcpulse::core::ParseClassifierChoice(text);
    if (!choice) {
      return absl::InvalidArgumentError(
          absl::StrCat("classifier '", text, "' is none of auto, evidence, ipc-bands"));
    }
    options->live.classifier = *choice;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_reader(vcpulse_options* options, const char* name,
                                          vcpulse_error** error) {
  return SetText(options, name, "name", error, [&](const std::string& text) -> absl::Status {
    const auto reader = vcpulse::live::ParseReader(text);
    if (!reader) {
      return absl::InvalidArgumentError(
          absl::StrCat("reader '", text, "' is none of auto, bpf, read"));
    }
    options->live.reader = *reader;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_profile(vcpulse_options* options, const char* name_or_file,
                                           vcpulse_error** error) {
  return SetText(options, name_or_file, "name_or_file", error, [&](const std::string& text) {
    absl::StatusOr<vcpulse::profile::Profile> loaded = vcpulse::profile::Load(text);
    if (loaded.ok()) options->profile = *loaded;
    return loaded.status();
  });
}

vcpulse_status vcpulse_options_set_require_counters(vcpulse_options* options, int required,
                                                    vcpulse_error** error) {
  return Set(options, error, [&] {
    options->live.open.require_counters = required != 0;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_set_realtime(vcpulse_options* options, int realtime,
                                            vcpulse_error** error) {
  return Set(options, error, [&] {
    options->live.realtime = realtime != 0;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_on_notice(vcpulse_options* options, vcpulse_notice_callback callback,
                                         void* user, vcpulse_error** error) {
  return Set(options, error, [&] {
    options->on_notice = callback;
    options->notice_user = user;
    return absl::OkStatus();
  });
}

vcpulse_status vcpulse_options_on_record(vcpulse_options* options, vcpulse_record_callback callback,
                                         void* user, vcpulse_error** error) {
  return Set(options, error, [&] {
    options->on_record = callback;
    options->record_user = user;
    return absl::OkStatus();
  });
}
