#include "monitor/stream/net/storage_failures.h"

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"

namespace vcpulse::stream {
namespace {

constexpr int64_t kLasts_ns = 60 * kNsPerSecond;
constexpr size_t kMost = 4096;

}  // namespace

StorageFailures::Change StorageFailures::Note(const StreamKey& stream, const absl::Status& status,
                                              int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (status.ok()) {
    return failures_.erase(stream) > 0 && failures_.empty() ? Change::kNoneLeft : Change::kNone;
  }
  if (failures_.size() >= kMost && !failures_.contains(stream)) return Change::kNone;
  const bool is_first = failures_.empty();
  failures_[stream] = {.error = std::string(status.message()), .at_ns = now_ns};
  return is_first ? Change::kFirst : Change::kNone;
}

void StorageFailures::ForgetOld(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  std::erase_if(failures_,
                [&](const auto& entry) { return now_ns - entry.second.at_ns > kLasts_ns; });
}

std::string StorageFailures::Text() const {
  const std::lock_guard lock(mutex_);
  if (failures_.empty()) return "";
  const size_t more = failures_.size() - 1;
  return absl::StrCat(failures_.begin()->second.error,
                      more > 0 ? absl::StrCat(" (and ", Plural(more, "more stream"), ")") : "");
}

}  // namespace vcpulse::stream
