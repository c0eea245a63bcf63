#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <utility>

namespace vcpulse::live {

// Calls `action` each `period` until it returns false.
class Periodic {
 public:
  Periodic(boost::asio::io_context& context, std::chrono::milliseconds period,
           std::function<bool()> action)
      : timer_(context), period_(period), action_(std::move(action)) {
    timer_.expires_after(period_);
    Wait();
  }

 private:
  void Wait() {
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error || !action_()) return;
      timer_.expires_after(period_);
      Wait();
    });
  }

  boost::asio::steady_timer timer_;
  std::chrono::milliseconds period_;
  std::function<bool()> action_;
};

}  // namespace vcpulse::live
