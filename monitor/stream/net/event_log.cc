#include "monitor/stream/net/event_log.h"

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"

namespace vcpulse::stream {
namespace {

constexpr int64_t kMinute_ns = 60 * kNsPerSecond;
constexpr size_t kMostSaid = 4096;
constexpr int kMostOfStrangers = 20;

}  // namespace

void EventLog::Say(const std::string& line) const { say_(Printable(line)); }

bool EventLog::IsDue(const std::string& what, int64_t now_ns) {
  const auto [entry, is_new] = said_ns_.try_emplace(what, now_ns);
  if (!is_new && now_ns - entry->second < kMinute_ns) return false;
  entry->second = now_ns;
  return true;
}

void EventLog::SayOnce(const std::string& what, const std::string& line, int64_t now_ns) {
  if (IsDue(what, now_ns)) Say(line);
}

void EventLog::SayOfStranger(const std::string& from, const std::string& line, int64_t now_ns) {
  Tick(now_ns);
  const std::string address = from.substr(0, from.find_last_of(":,"));
  if (of_strangers_ >= kMostOfStrangers || !IsDue(absl::StrCat("stranger ", address), now_ns)) {
    ++left_out_;
    return;
  }
  ++of_strangers_;
  Say(line);
}

void EventLog::Tick(int64_t now_ns) {
  if (said_ns_.size() > kMostSaid) said_ns_.clear();
  if (now_ns - minute_ns_ < kMinute_ns) return;
  if (left_out_ > 0) {
    Say(absl::StrCat("in the last minute ", Plural(left_out_, "more connection"),
                     " ended before they were let in"));
  }
  minute_ns_ = now_ns;
  of_strangers_ = 0;
  left_out_ = 0;
}

}  // namespace vcpulse::stream
