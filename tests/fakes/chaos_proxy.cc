#include "tests/fakes/chaos_proxy.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace vcpulse::fakes {
namespace {

namespace asio = boost::asio;
using Any = asio::generic::stream_protocol;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using stream::Address;

Any::endpoint EndpointOf(const Address& address) {
  if (address.kind == Address::Kind::kUnix) {
    return asio::local::stream_protocol::endpoint(address.path);
  }
  return tcp::endpoint(asio::ip::make_address(address.host), address.port);
}

// One connection through the proxy.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(asio::io_context& context, Any::socket agent, const Mischief& mischief,
       std::atomic<uint64_t>& dead_links)
      : ways_{Way{std::move(agent), asio::steady_timer(context)},
              Way{Any::socket(context), asio::steady_timer(context)}},
        mischief_(mischief),
        dead_links_(dead_links) {}

  void Begin(const Any::endpoint& to) {
    ways_[1].from.async_connect(to, [self = shared_from_this()](ErrorCode error) {
      if (error) return self->Close();
      for (Way& way : self->ways_) {
        ErrorCode ignored;  // a unix socket has no such thing
        way.from.set_option(tcp::no_delay(true), ignored);
      }
      self->Forward(0);
      self->Forward(1);
    });
  }

  void Close() {
    for (Way& way : ways_) {
      ErrorCode ignored;
      if (mischief_.resets) {
        // Its close is then a RST. A unix socket knows none: with bytes unread, its close is one.
        way.from.set_option(asio::socket_base::linger(true, 0), ignored);
      } else {
        way.from.shutdown(Any::socket::shutdown_both, ignored);
      }
      way.from.close(ignored);
      way.timer.cancel();
    }
    kept_.reset();
  }

 private:
  // From the agent (0) or from the collector (1).
  struct Way {
    Any::socket from;
    asio::steady_timer timer;
    std::array<uint8_t, 65536> buffer{};
    uint64_t passed = 0;
  };

  void Forward(size_t which) {
    Way& way = ways_[which];
    const size_t most = std::min(way.buffer.size(), std::max<size_t>(mischief_.piece_bytes, 1));
    way.from.async_read_some(asio::buffer(way.buffer.data(), most),
                             [self = shared_from_this(), which](ErrorCode error, size_t bytes) {
                               if (self->kept_ != nullptr) return;
                               if (error) return self->Close();
                               self->Delay(which, bytes);
                             });
  }

  void Delay(size_t which, size_t bytes) {
    if (mischief_.delay_us == 0) return Pass(which, bytes);
    ways_[which].timer.expires_after(std::chrono::microseconds(mischief_.delay_us));
    ways_[which].timer.async_wait([self = shared_from_this(), which, bytes](ErrorCode error) {
      if (!error && self->kept_ == nullptr) self->Pass(which, bytes);
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
    if (which == 0 && holds(mischief_.dead_at)) {
      kept_ = shared_from_this();
      bytes = *mischief_.dead_at - begin;
    }
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
                        self->Passed(which, error);
                      });
  }

  void Passed(size_t which, ErrorCode error) {
    if (kept_ != nullptr) {
      if (which == 0) ++dead_links_;
      return;
    }
    if (error || closes_) return Close();
    Forward(which);
  }

  void Stall() {
    ways_[0].timer.expires_after(std::chrono::milliseconds(mischief_.stall_ms));
    ways_[0].timer.async_wait([self = shared_from_this()](ErrorCode) { self->Close(); });
  }

  std::array<Way, 2> ways_;
  Mischief mischief_;
  std::atomic<uint64_t>& dead_links_;
  bool closes_ = false;
  std::shared_ptr<Link> kept_;  // itself: it is dead, and its sockets stay open
};

class RunningProxy final : public ChaosProxy {
 public:
  RunningProxy(Address listen, Address to, std::function<Mischief()> next)
      : acceptor_(context_, EndpointOf(listen)),
        listen_(std::move(listen)),
        to_(std::move(to)),
        next_(std::move(next)),
        work_(context_.get_executor()) {
    if (listen_.kind != Address::Kind::kUnix) {
      const Any::endpoint taken = acceptor_.local_endpoint();
      tcp::endpoint own;
      own.resize(taken.size());
      std::memcpy(own.data(), taken.data(), taken.size());
      listen_.port = own.port();
    }
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

  Address address() const override { return listen_; }
  void set_to(const Address& to) override {
    const std::lock_guard lock(mutex_);
    to_ = to;
  }
  uint64_t connections() const override { return connections_; }
  uint64_t dead_connections() const override { return dead_links_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](ErrorCode error, Any::socket agent) {
      if (error) return;
      ++connections_;
      const auto link = std::make_shared<Link>(context_, std::move(agent), next_(), dead_links_);
      links_.push_back(link);
      link->Begin(To());
      Accept();
    });
  }

  Any::endpoint To() {
    const std::lock_guard lock(mutex_);
    return EndpointOf(to_);
  }

  std::atomic<uint64_t> connections_ = 0;
  std::atomic<uint64_t> dead_links_ = 0;
  asio::io_context context_{1};
  asio::basic_socket_acceptor<Any> acceptor_;
  Address listen_;
  std::mutex mutex_;  // of to_
  Address to_;
  std::function<Mischief()> next_;
  std::vector<std::weak_ptr<Link>> links_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ChaosProxy> ChaosProxy::Start(const Address& listen, const Address& to,
                                              std::function<Mischief()> next) {
  return std::make_unique<RunningProxy>(listen, to, std::move(next));
}

}  // namespace vcpulse::fakes
