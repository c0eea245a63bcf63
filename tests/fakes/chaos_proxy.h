#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace vcpulse::fakes {

// What a proxy does to one connection. Byte counts are per direction, from the connection's start.
struct Mischief {
  size_t piece_bytes = 65536;            // forwards at most so many bytes at once
  uint32_t delay_us = 0;                 // before each piece
  std::optional<uint64_t> close_after;   // of both directions together: closes there
  bool resets = false;                   // closes with RST instead of FIN
  std::optional<uint64_t> corrupt_at;    // flips bits of this byte, to the collector
  std::optional<uint64_t> corrupt_back;  // likewise, to the agent
  std::optional<uint64_t>
      repeat_at;                     // sends the piece that holds this byte twice, to the collector
  std::optional<uint64_t> stall_at;  // to the collector: nothing more is forwarded from there on;
  uint32_t stall_ms = 0;             // after so long the connection is closed
};

// A proxy on loopback between an agent and a collector, with a thread of its own: each connection
// gets the next mischief. Stops when destroyed.
class ChaosProxy {
 public:
  // `next` is asked for each connection, on the proxy's thread. The collector listens on the unix
  // socket `to`; the proxy on `path`.
  static std::unique_ptr<ChaosProxy> Start(const std::string& path, const std::string& to,
                                           std::function<Mischief()> next);
  virtual ~ChaosProxy() = default;

  virtual uint64_t connections() const = 0;
};

}  // namespace vcpulse::fakes
