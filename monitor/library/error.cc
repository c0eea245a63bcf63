#include "monitor/library/error.h"

#include "absl/strings/str_cat.h"

namespace vcpulse::library {
namespace {

// Given out where there is no memory for another one; never freed, never changed.
const vcpulse_error kNoMemory{VCPULSE_STATUS_INTERNAL, "out of memory"};

// Marks the status of a recording that has ended by itself.
constexpr char kEndedUrl[] = "vcpulse/ended";

}  // namespace

absl::Status EndedError(const std::string& why) {
  absl::Status status = absl::FailedPreconditionError(why);
  status.SetPayload(kEndedUrl, absl::Cord());
  return status;
}

vcpulse_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return VCPULSE_STATUS_OK;
    case absl::StatusCode::kInvalidArgument:
      return VCPULSE_STATUS_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return VCPULSE_STATUS_NOT_FOUND;
    case absl::StatusCode::kPermissionDenied:
      return VCPULSE_STATUS_NOT_PERMITTED;
    case absl::StatusCode::kFailedPrecondition:
      return status.GetPayload(kEndedUrl) ? VCPULSE_STATUS_ENDED : VCPULSE_STATUS_NOT_POSSIBLE;
    case absl::StatusCode::kUnavailable:
      return VCPULSE_STATUS_UNAVAILABLE;
    case absl::StatusCode::kResourceExhausted:
      return VCPULSE_STATUS_NO_RESOURCES;
    case absl::StatusCode::kUnimplemented:
      return VCPULSE_STATUS_UNSUPPORTED;
    case absl::StatusCode::kInternal:
      return VCPULSE_STATUS_INTERNAL;
    default:
      return VCPULSE_STATUS_IO;  // errnos without a code of their own, and what was read makes no
                                 // sense
  }
}

vcpulse_status Report(vcpulse_status code, const char* message, vcpulse_error** error) noexcept {
  if (error == nullptr) return code;
  try {
    *error = new vcpulse_error{code, message};
  } catch (...) {
    *error = const_cast<vcpulse_error*>(&kNoMemory);
  }
  return code;
}

absl::Status Given(const void* pointer, const char* name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

}  // namespace vcpulse::library

const char* vcpulse_version(void) { return VCPULSE_VERSION; }

vcpulse_status vcpulse_error_code(const vcpulse_error* error) {
  return error == nullptr ? VCPULSE_STATUS_OK : error->code;
}

const char* vcpulse_error_message(const vcpulse_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}

void vcpulse_error_free(vcpulse_error* error) {
  if (error != &vcpulse::library::kNoMemory) delete error;
}
