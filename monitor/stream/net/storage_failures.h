#pragma once

// Of the collector: which streams do not reach the disk. Only .cc files of this module include
// this.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "monitor/stream/net/committer.h"

namespace vcpulse::stream {

// Any thread.
class StorageFailures {
 public:
  enum class Change { kNone, kFirst, kNoneLeft };  // the first that fails; none fails any more

  // What came of writing a stream.
  Change Note(const StreamKey& stream, const absl::Status& status, int64_t now_ns);
  // Forgets those that have not been tried for a minute: agents try again sooner, or are gone.
  void ForgetOld(int64_t now_ns);
  // Why one of them fails, and how many more do; empty where none does.
  std::string Text() const;

 private:
  struct Failure {
    std::string error;
    int64_t at_ns = 0;
  };

  mutable std::mutex mutex_;
  std::map<StreamKey, Failure> failures_;
};

}  // namespace vcpulse::stream
