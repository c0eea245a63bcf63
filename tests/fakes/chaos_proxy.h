#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "monitor/stream/protocol/address.h"

namespace vcpulse::fakes {

// What a proxy does to one connection. Byte counts are per direction, from the connection's start.
struct Mischief {
  size_t piece_bytes = 65536;            // forwards at most so many bytes at once
  uint32_t delay_us = 0;                 // before each piece
  std::optional<uint64_t> close_after;   // of both directions together: closes there
  bool resets = false;                   // closes with RST instead of FIN (tcp)
  std::optional<uint64_t> corrupt_at;    // flips bits of this byte, to the collector
  std::optional<uint64_t> corrupt_back;  // likewise, to the agent
  std::optional<uint64_t>
      repeat_at;                     // sends the piece that holds this byte twice, to the collector
  std::optional<uint64_t> stall_at;  // to the collector: nothing more is forwarded from there on;
  uint32_t stall_ms = 0;             // after so long the connection is closed
  // Behind so many bytes to the collector neither side hears of the other any more, not even that
  // it has gone: to both the connection looks open.
  std::optional<uint64_t> dead_at;
};

// A proxy on this machine between an agent and a collector, with a thread of its own: each
// connection gets the next mischief. It moves bytes, so what goes through may be TLS. Stops when
// destroyed.
class ChaosProxy {
 public:
  // `next` is asked for each connection, on the proxy's thread. Addresses have numbers for hosts;
  // of their kinds it matters only whether one is unix. Port 0 of `listen` is a free one.
  static std::unique_ptr<ChaosProxy> Start(const stream::Address& listen, const stream::Address& to,
                                           std::function<Mischief()> next);
  virtual ~ChaosProxy() = default;

  // Where it listens, with the port that was taken for 0.
  virtual stream::Address address() const = 0;
  // For connections to come. Any thread.
  virtual void set_to(const stream::Address& to) = 0;
  virtual uint64_t connections() const = 0;
  virtual uint64_t dead_connections() const = 0;  // that came as far as their dead_at
};

}  // namespace vcpulse::fakes
