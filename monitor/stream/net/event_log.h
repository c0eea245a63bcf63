#pragma once

// Of the collector: lines for its log, each often enough and no more. Only .cc files of this module
// include this.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace vcpulse::stream {

// One thread.
class EventLog {
 public:
  explicit EventLog(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  // Names and reasons in a line may be a peer's: what cannot be shown is escaped.
  void Say(const std::string& line) const;
  // Once a minute for each `what`.
  void SayOnce(const std::string& what, const std::string& line, int64_t now_ns);
  // Of a peer that was not let in: once a minute for each address (`from` without its port or PID),
  // and 20 lines a minute in all. What is left out is counted, and Tick says how many those were.
  void SayOfStranger(const std::string& from, const std::string& line, int64_t now_ns);
  // Time passes.
  void Tick(int64_t now_ns);

 private:
  bool IsDue(const std::string& what, int64_t now_ns);

  std::function<void(const std::string&)> say_;
  std::map<std::string, int64_t> said_ns_;  // when, by what
  int64_t minute_ns_ = 0;                   // when the minute of what follows began
  int of_strangers_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace vcpulse::stream
