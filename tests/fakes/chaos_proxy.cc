#include "tests/fakes/chaos_proxy.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace vcpulse::fakes {
namespace {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

// One connection through the proxy.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(asio::io_context& context, Local::socket agent, const Mischief& mischief)
      : ways_{Way{std::move(agent), asio::steady_timer(context)},
              Way{Local::socket(context), asio::steady_timer(context)}},
        mischief_(mischief) {}

  void Begin(const std::string& to) {
    ways_[1].from.async_connect(Local::endpoint(to), [self = shared_from_this()](ErrorCode error) {
      if (error) return self->Close();
      self->Forward(0);
      self->Forward(1);
    });
  }

  void Close() {
    for (Way& way : ways_) {
      ErrorCode ignored;
      // A unix socket knows no RST: with bytes unread, its close is one.
      if (!mischief_.resets) way.from.shutdown(Local::socket::shutdown_both, ignored);
      way.from.close(ignored);
      way.timer.cancel();
    }
  }

 private:
  // From the agent (0) or from the collector (1).
  struct Way {
    Local::socket from;
    asio::steady_timer timer;
    std::array<uint8_t, 65536> buffer{};
    uint64_t passed = 0;
  };

  void Forward(size_t which) {
    Way& way = ways_[which];
    const size_t most = std::min(way.buffer.size(), std::max<size_t>(mischief_.piece_bytes, 1));
    way.from.async_read_some(asio::buffer(way.buffer.data(), most),
                             [self = shared_from_this(), which](ErrorCode error, size_t bytes) {
                               if (error) return self->Close();
                               self->Delay(which, bytes);
                             });
  }

  void Delay(size_t which, size_t bytes) {
    if (mischief_.delay_us == 0) return Pass(which, bytes);
    ways_[which].timer.expires_after(std::chrono::microseconds(mischief_.delay_us));
    ways_[which].timer.async_wait([self = shared_from_this(), which, bytes](ErrorCode error) {
      if (!error) self->Pass(which, bytes);
    });
  }

  void Pass(size_t which, size_t bytes) {
    Way& way = ways_[which];
    const uint64_t begin = way.passed;
    const auto holds = [&](const std::optional<uint64_t>& at) {
      return at && *at >= begin && *at < begin + bytes;
    };
    const auto& corrupt = which == 0 ? mischief_.corrupt_at : mischief_.corrupt_back;
    if (holds(corrupt)) way.buffer[*corrupt - begin] ^= 0x41;
    const bool repeats = which == 0 && holds(mischief_.repeat_at);
    if (which == 0 && holds(mischief_.stall_at)) return Stall();
    if (mischief_.close_after) {
      const uint64_t both = ways_[0].passed + ways_[1].passed;
      if (both + bytes > *mischief_.close_after) {
        closes_ = true;
        bytes =
            static_cast<size_t>(*mischief_.close_after - std::min(both, *mischief_.close_after));
      }
    }
    way.passed += bytes;
    std::vector<uint8_t> out(way.buffer.begin(), way.buffer.begin() + static_cast<long>(bytes));
    if (repeats)
      out.insert(out.end(), way.buffer.begin(), way.buffer.begin() + static_cast<long>(bytes));
    auto kept = std::make_shared<std::vector<uint8_t>>(std::move(out));
    asio::async_write(ways_[1 - which].from, asio::buffer(*kept),
                      [self = shared_from_this(), which, kept](ErrorCode error, size_t) {
                        if (error || self->closes_) return self->Close();
                        self->Forward(which);
                      });
  }

  void Stall() {
    ways_[0].timer.expires_after(std::chrono::milliseconds(mischief_.stall_ms));
    ways_[0].timer.async_wait([self = shared_from_this()](ErrorCode) { self->Close(); });
  }

  std::array<Way, 2> ways_;
  Mischief mischief_;
  bool closes_ = false;
};

class RunningProxy final : public ChaosProxy {
 public:
  RunningProxy(const std::string& path, std::string to, std::function<Mischief()> next)
      : acceptor_(context_, Local::endpoint(path)),
        to_(std::move(to)),
        next_(std::move(next)),
        work_(context_.get_executor()) {
    Accept();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~RunningProxy() override {
    asio::post(context_, [this] {
      ErrorCode ignored;
      acceptor_.close(ignored);
      for (const auto& weak : links_) {
        if (const auto link = weak.lock()) link->Close();
      }
      work_.reset();
    });
    thread_.join();
  }
  RunningProxy(const RunningProxy&) = delete;
  RunningProxy& operator=(const RunningProxy&) = delete;

  uint64_t connections() const override { return connections_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](ErrorCode error, Local::socket agent) {
      if (error) return;
      ++connections_;
      const auto link = std::make_shared<Link>(context_, std::move(agent), next_());
      links_.push_back(link);
      link->Begin(to_);
      Accept();
    });
  }

  asio::io_context context_{1};
  Local::acceptor acceptor_;
  std::string to_;
  std::function<Mischief()> next_;
  std::vector<std::weak_ptr<Link>> links_;
  std::atomic<uint64_t> connections_ = 0;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ChaosProxy> ChaosProxy::Start(const std::string& path, const std::string& to,
                                              std::function<Mischief()> next) {
  return std::make_unique<RunningProxy>(path, to, std::move(next));
}

}  // namespace vcpulse::fakes
