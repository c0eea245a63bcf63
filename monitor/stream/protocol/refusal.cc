#include "monitor/stream/protocol/refusal.h"

#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello.h"

namespace vcpulse::stream {
namespace {

constexpr size_t kMaxReasonBytes = 512;

}  // namespace

v1::Error::Code CodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return v1::Error::CODE_MALFORMED;
    case absl::StatusCode::kUnimplemented:
      return v1::Error::CODE_VERSION;
    case absl::StatusCode::kOutOfRange:
      return v1::Error::CODE_SEQUENCE;
    case absl::StatusCode::kDeadlineExceeded:
      return v1::Error::CODE_TIMEOUT;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return v1::Error::CODE_NOT_PERMITTED;
    case absl::StatusCode::kAlreadyExists:
      return v1::Error::CODE_AGENT_ID_IN_USE;
    case absl::StatusCode::kUnavailable:
      return v1::Error::CODE_BUSY;
    default:
      return v1::Error::CODE_STORAGE;
  }
}

void AppendError(v1::Error::Code code, const std::string& reason, std::vector<uint8_t>& out) {
  v1::Error error;
  error.set_code(code);
  error.set_reason(OneLine(reason, kMaxReasonBytes));
  AppendFrame(FrameType::kError, error, out);
}

std::string WordsOf(const v1::Error& error) {
  if (!error.reason().empty()) return OneLine(error.reason(), kMaxReasonBytes);
  return "no reason was given (code " + std::to_string(static_cast<int>(error.code())) + ")";
}

bool NeedsPeople(v1::Error::Code code) {
  return code == v1::Error::CODE_VERSION || code == v1::Error::CODE_NOT_PERMITTED ||
         code == v1::Error::CODE_AGENT_ID_IN_USE;
}

}  // namespace vcpulse::stream
