#include "monitor/stream/net/follower.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/net/backoff.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/net/tls_context.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello_check.h"
#include "monitor/stream/protocol/refusal.h"
#include "monitor/stream/protocol/version.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kAskPeriod{100};
constexpr int64_t kWelcomePatience_ns = 10'000'000'000;
constexpr int64_t kSilence_ns = 60'000'000'000;

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
    std::shared_ptr<TlsContext> tls;
    if (options_.address.kind == Address::Kind::kTls) {
      auto context = NewTlsContext(options_.credentials, TlsRole::kClient);
      if (!context.ok()) return {.status = context.status(), .is_answer = true};
      tls = *std::move(context);
    }
    heard_ns_ = MonotonicNow_ns();
    Tick();
    const auto connecting =
        Connect(context_, options_.address, std::move(tls), [this](auto channel) {
          if (!channel.ok()) return End(channel.status());
          channel_ = *std::move(channel);
          channel_->Handshake([this](const ErrorCode& error) {
            if (error) return End(absl::UnavailableError(channel_->Describe(error)));
            SayHello();
            Read();
          });
        });
    context_.run();
    connecting->Cancel();
    if (channel_ != nullptr) channel_->Close();
    ending_.is_answer = channel_ != nullptr;
    if (!ending_.status.ok() && is_connections_) {
      ending_.status =
          absl::Status(ending_.status.code(),
                       absl::StrCat(ToText(options_.address), ": ", ending_.status.message()));
    }
    return ending_;
  }

 private:
  void Tick() {
    if (stopped_()) {
      ending_.is_final = true;
      return End(absl::OkStatus());
    }
    const int64_t silence_ns = MonotonicNow_ns() - heard_ns_;
    if (silence_ns > (ending_.welcomed_ns > 0 ? kSilence_ns : kWelcomePatience_ns)) {
      return End(absl::DeadlineExceededError("no answer"));
    }
    ticks_.expires_after(kAskPeriod);
    ticks_.async_wait([this](const ErrorCode& error) {
      if (!error) Tick();
    });
  }

  void SayHello() {
    v1::Hello hello;
    hello.set_major(kMajor);
    hello.set_minor(kMinor);
    hello.set_min_major(kMinMajor);
    hello.set_role(v1::Hello::ROLE_FOLLOWER);
    hello.set_agent_id(options_.identity.agent_id);
    hello.set_host_name(options_.identity.host_name);
    hello.set_boot_id(options_.identity.boot_id);
    hello.set_tool_version(options_.identity.tool_version);
    *hello.mutable_clock() = timeline::TakeClockSnapshot();
    hello.set_follow_agent_id(options_.agent_id);
    Send(FrameType::kHello, hello);
  }

  void Send(FrameType type, const google::protobuf::MessageLite& message) {
    AppendFrame(type, message, output_);
    Flush();
  }

  void Flush() {
    if (write_pending_ || output_.empty()) return;
    writing_.clear();
    writing_.swap(output_);
    write_pending_ = true;
    channel_->WriteAll(asio::buffer(writing_), [this](const ErrorCode& error, size_t) {
      write_pending_ = false;
      if (!error) Flush();  // an error is seen by the reading side
    });
  }

  void Read() {
    channel_->ReadSome(asio::buffer(buffer_), [this](const ErrorCode& error, size_t bytes) {
      if (error) return End(absl::UnavailableError(channel_->Describe(error)));
      if (absl::Status status = Take(bytes); !status.ok()) return End(status);
      Read();
    });
  }

  absl::Status Take(size_t bytes) {
    frames_.Feed(std::span(buffer_).first(bytes));
    heard_ns_ = MonotonicNow_ns();
    while (true) {
      auto frame = frames_.Next();
      if (!frame.ok()) return frame.status();
      if (!*frame) return absl::OkStatus();
      if (absl::Status status = TakeFrame(**frame); !status.ok()) return status;
    }
  }

  absl::Status TakeFrame(const Frame& frame) {
    switch (static_cast<FrameType>(frame.type)) {
      case FrameType::kWelcome:
        return TakeWelcome(frame);
      case FrameType::kStreamInfo:
        return TakeInfo(frame);
      case FrameType::kChunk:
        return TakeChunk(frame);
      case FrameType::kPing:
        return TakePing(frame);
      case FrameType::kError:
        return TakeError(frame);
      default:
        return absl::OkStatus();
    }
  }

  static bool Parse(const Frame& frame, google::protobuf::MessageLite& message) {
    return message.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()));
  }

  static absl::Status Unreadable() {
    return absl::DataLossError("the collector sent what cannot be read");
  }

  absl::Status TakeWelcome(const Frame& frame) {
    v1::Welcome welcome;
    if (!Parse(frame, welcome)) return Unreadable();
    // It has nothing to be held against what the collector holds.
    constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
    if (absl::Status status = CheckWelcome(welcome, kAny, true); !status.ok()) {
      ending_.is_final = absl::IsUnimplemented(status);
      return status;
    }
    frames_.set_max_bytes(kMaxFrameBytes);
    if (ending_.welcomed_ns > 0) return absl::OkStatus();
    ending_.welcomed_ns = MonotonicNow_ns();
    welcomed_();
    return absl::OkStatus();
  }

  absl::Status TakeError(const Frame& frame) {
    v1::Error error;
    if (!Parse(frame, error)) return Unreadable();
    ending_.is_final = NeedsPeople(error.code());
    const std::string words = absl::StrCat("the collector says: ", WordsOf(error));
    return ending_.is_final ? absl::PermissionDeniedError(words) : absl::UnavailableError(words);
  }

  absl::Status TakeInfo(const Frame& frame) {
    v1::StreamInfo info;
    if (!Parse(frame, info)) return Unreadable();
    streams_[info.stream_id()] = info;
    return absl::OkStatus();
  }

  absl::Status TakeChunk(const Frame& frame) {
    const auto header = timeline::DecodeChunkHeader(frame.payload);
    if (!header.ok()) return header.status();
    const auto info =
        streams_.find(std::string(header->stream_id.begin(), header->stream_id.end()));
    if (info == streams_.end()) return absl::DataLossError("a chunk of a stream that was not told");
    absl::Status status = options_.chunk(info->second, frame.payload);
    if (!status.ok()) {
      is_connections_ = false;
      ending_.is_final = true;
    }
    return status;
  }

  absl::Status TakePing(const Frame& frame) {
    v1::Ping ping;
    if (!Parse(frame, ping)) return Unreadable();
    if (ping.is_answer()) return absl::OkStatus();
    ping.set_is_answer(true);
    *ping.mutable_clock() = timeline::TakeClockSnapshot();
    Send(FrameType::kPing, ping);
    return absl::OkStatus();
  }

  void End(absl::Status result) {
    ending_.status = std::move(result);
    context_.stop();
  }

  const FollowOptions& options_;
  const std::function<bool()>& stopped_;
  const std::function<void()> welcomed_;
  asio::io_context context_{1};
  asio::steady_timer ticks_;
  std::shared_ptr<Channel> channel_;
  FrameReader frames_{kMaxHandshakeFrameBytes};
  std::map<std::string, v1::StreamInfo> streams_;
  std::array<uint8_t, 32768> buffer_{};
  std::vector<uint8_t> output_;
  std::vector<uint8_t> writing_;
  bool write_pending_ = false;
  bool is_connections_ = true;  // whose error the result is: the connection's, not the owner's
  int64_t heard_ns_ = 0;
  Ending ending_;
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
      if (ending.welcomed_ns > 0 && MonotonicNow_ns() - ending.welcomed_ns >= LongWhile_ns()) {
        backoff_.Reset();
      }
      if (!Wait(backoff_.Next())) return absl::OkStatus();
    }
  }

 private:
  // A connection that stood so long was not one that fails at once, each time.
  int64_t LongWhile_ns() const {
    return std::chrono::nanoseconds(options_.longest_backoff).count();
  }

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
