#include "monitor/stream/net/follower.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/net/backoff.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/protocol/follower_session.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kAskPeriod{100};

// How one connection ended.
struct Ending {
  absl::Status status;
  bool is_final = false;    // another one would end likewise, or is not wanted
  bool is_answer = false;   // somebody was there, or our own files are of no use
  int64_t welcomed_ns = 0;  // since when it stood; 0: it never did
};

// One connection of a follower. One thread.
class Following {
 public:
  Following(const FollowOptions& options, const std::function<bool()>& stopped,
            std::function<void()> welcomed)
      : options_(options), stopped_(stopped), welcomed_(std::move(welcomed)), ticks_(context_) {}

  Ending Run() {
    Tick();
    const auto attempt =
        Connect(context_, options_.address, options_.credentials, [this](auto channel) {
          if (!channel.ok()) return End(channel.status());
          channel_ = *std::move(channel);
          BeginSession();
        });
    context_.run();
    attempt->Cancel();
    if (channel_ != nullptr) channel_->Close();
    Ending ending{.status = status_, .welcomed_ns = welcomed_ns_};
    ending.is_final = status_.ok() || !owner_ended_.ok() || (session_ && session_->needs_people());
    ending.is_answer =
        session_ || !(absl::IsUnavailable(status_) || absl::IsDeadlineExceeded(status_));
    if (!status_.ok() && owner_ended_.ok()) {
      ending.status = absl::Status(status_.code(),
                                   absl::StrCat(ToText(options_.address), ": ", status_.message()));
    }
    return ending;
  }

 private:
  void Tick() {
    if (stopped_()) return End(absl::OkStatus());
    if (session_) {
      absl::Status status = session_->Tick(timeline::TakeClockSnapshot(), MonotonicNow_ns());
      if (!status.ok()) return End(std::move(status));
    }
    ticks_.expires_after(kAskPeriod);
    ticks_.async_wait([this](const ErrorCode& error) {
      if (!error) Tick();
    });
  }

  void BeginSession() {
    FollowerSession::Events events{
        .welcomed =
            [this] {
              welcomed_ns_ = MonotonicNow_ns();
              welcomed_();
            },
        .chunk =
            [this](const v1::StreamInfo& info, std::span<const uint8_t> chunk) {
              return owner_ended_ = options_.chunk(info, chunk);
            }};
    session_.emplace(options_.identity, options_.agent_id, std::move(events),
                     timeline::TakeClockSnapshot(), MonotonicNow_ns());
    Flush();
    Read();
  }

  void Flush() {
    if (write_pending_ || session_->output().empty()) return;
    writing_.clear();
    writing_.swap(session_->output());
    write_pending_ = true;
    channel_->WriteAll(asio::buffer(writing_), [this](const ErrorCode& error, size_t) {
      write_pending_ = false;
      if (!error) Flush();  // an error is seen by the reading side
    });
  }

  void Read() {
    channel_->ReadSome([this](const ErrorCode& error, std::span<const uint8_t> bytes) {
      if (error) return End(absl::UnavailableError(channel_->Describe(error)));
      absl::Status status = session_->Receive(bytes, MonotonicNow_ns());
      if (!status.ok()) return End(std::move(status));
      Flush();
      Read();
    });
  }

  void End(absl::Status status) {
    status_ = std::move(status);
    context_.stop();
  }

  const FollowOptions& options_;
  const std::function<bool()>& stopped_;
  const std::function<void()> welcomed_;
  asio::io_context context_{1};
  asio::steady_timer ticks_;
  std::shared_ptr<Channel> channel_;
  std::optional<FollowerSession> session_;  // once connected
  std::vector<uint8_t> writing_;
  bool write_pending_ = false;
  int64_t welcomed_ns_ = 0;
  absl::Status status_;
  absl::Status owner_ended_;  // the error of the owner's, where that has ended it
};

// Connection after connection. One thread.
class Follower {
 public:
  Follower(const FollowOptions& options, const std::function<bool()>& stopped)
      : options_(options),
        stopped_(stopped),
        backoff_(options.first_backoff, options.longest_backoff) {}

  absl::Status Run() {
    while (true) {
      const Ending ending = Following(options_, stopped_, [this] { TakeWelcome(); }).Run();
      if (ending.is_final || !was_welcomed_) return ending.status;
      SayLost(ending);
      // A connection that stood so long was not one that fails at once, each time.
      const std::chrono::nanoseconds stood(MonotonicNow_ns() - ending.welcomed_ns);
      if (ending.welcomed_ns > 0 && stood >= options_.longest_backoff) backoff_.Reset();
      if (!Wait(backoff_.Next())) return absl::OkStatus();
    }
  }

 private:
  void TakeWelcome() {
    if (was_welcomed_) {
      Say(absl::StrCat(ToText(options_.address),
                       " is there again; what came meanwhile is not shown"));
    }
    was_welcomed_ = true;
    said_.clear();
    if (options_.welcomed) options_.welcomed();
  }

  // Once for each loss; and where somebody answers but something else is wrong then, that too.
  void SayLost(const Ending& ending) {
    const std::string why(ending.status.message());
    if (ending.welcomed_ns > 0) {
      Say(absl::StrCat("the collector was lost: ", why, "; trying again"));
    } else if (ending.is_answer && why != said_) {
      Say(absl::StrCat("cannot follow ", why, "; trying again"));
    } else {
      return;
    }
    said_ = why;
  }

  // False where it was stopped meanwhile.
  bool Wait(std::chrono::milliseconds wait) const {
    const auto end = std::chrono::steady_clock::now() + wait;
    while (!stopped_()) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return true;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kAskPeriod));
    }
    return false;
  }

  void Say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }

  const FollowOptions& options_;
  const std::function<bool()>& stopped_;
  Backoff backoff_;
  bool was_welcomed_ = false;
  std::string said_;  // of the connection, since it was lost
};

}  // namespace

absl::Status Follow(const FollowOptions& options, const std::function<bool()>& stopped) {
  if (absl::Status status = CheckSecure(options.address, options.allow_insecure); !status.ok()) {
    return status;
  }
  return Follower(options, stopped).Run();
}

}  // namespace vcpulse::stream
