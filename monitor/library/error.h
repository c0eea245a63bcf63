#pragma once

// monitor/library is libvcpulse.so: the C API of include/vcpulse.h over monitor/live,
// monitor/timeline and monitor/check. It records and reads with what `vcpulse record` and `vcpulse
// check` use, and adds threads, handles and errors for C; the C++ headers beside vcpulse.h know
// that header alone. Here is what every entry does with failures.

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/library/include/vcpulse.h"

struct vcpulse_error {
  vcpulse_status code = VCPULSE_STATUS_OK;
  std::string message;
};

namespace vcpulse::library {

vcpulse_status CodeOf(const absl::Status& status);

// Hands an error over to the caller where it wants one; never throws. Returns its code.
vcpulse_status Report(vcpulse_status code, const char* message, vcpulse_error** error) noexcept;
inline vcpulse_status Report(const absl::Status& status, vcpulse_error** error) noexcept {
  return Report(CodeOf(status), std::string(status.message()).c_str(), error);
}

// The recording has ended by itself: VCPULSE_STATUS_ENDED, which absl has no code for.
absl::Status EndedError(const std::string& why);

// Runs the body of an entry of the C API, which returns absl::Status: no exception leaves it. The
// one that is no error, by which pthread_cancel(3) unwinds a thread, must go on.
template <typename Body>
vcpulse_status Guard(vcpulse_error** error, Body&& body) {
  if (error != nullptr) *error = nullptr;
  try {
    const absl::Status status = std::forward<Body>(body)();
    return status.ok() ? VCPULSE_STATUS_OK : Report(status, error);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    return Report(VCPULSE_STATUS_INTERNAL, "out of memory", error);
  } catch (const std::exception& exception) {
    return Report(VCPULSE_STATUS_INTERNAL, exception.what(), error);
  } catch (...) {
    return Report(VCPULSE_STATUS_INTERNAL, "an exception of an unknown type", error);
  }
}

// The same for one that makes a handle: `body` returns StatusOr<std::unique_ptr<Handle>>.
template <typename Body>
auto GuardMake(vcpulse_error** error, Body&& body) {
  typename decltype(body())::value_type made;
  Guard(error, [&]() -> absl::Status {
    auto result = std::forward<Body>(body)();
    if (!result.ok()) return result.status();
    made = *std::move(result);
    return absl::OkStatus();
  });
  return made.release();
}

// InvalidArgument where a pointer that must be given is NULL.
absl::Status Given(const void* pointer, const char* name);

}  // namespace vcpulse::library
