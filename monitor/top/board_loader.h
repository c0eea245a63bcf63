#pragma once

// Keeps a board in step with the window that is wanted, a little at a time.

#include <cstdint>
#include <map>
#include <optional>

#include "absl/functional/function_ref.h"
#include "monitor/top/board.h"
#include "monitor/top/chunk_store.h"

namespace vcpulse::top {

class BoardLoader {
 public:
  // `store` must outlive it.
  explicit BoardLoader(const ChunkStore& store) : store_(store) {}

  // From now on the board is of this window. Where it only moves forward, what is known is kept.
  void Want(const Window& window);
  // Takes chunks until all of them are in, or `stop` says so (asked before each). True once all
  // are.
  bool Step(absl::FunctionRef<bool()> stop);

  const Board& board() const { return *board_; }
  bool has_board() const { return board_.has_value(); }
  bool is_complete() const { return next_ >= store_.end(); }
  // One chunk of so many is read: more than one where all of the window would be too much, so that
  // a week costs no more than ten minutes.
  uint64_t stride() const { return stride_; }
  // Chunks of the window that could not be read.
  uint64_t unreadable() const { return unreadable_; }

 private:
  // Readings come about once a second, and it takes two of them: this much before the window is
  // read too.
  static constexpr int64_t kBefore_ns = 2'500'000'000;
  static constexpr uint64_t kMostRead = 128u << 20;  // bytes of chunks of one window

  void Begin(const Window& window);
  void Take(uint64_t number);
  // The VMs of streams that are silent in the window, as their latest chunk before it names them.
  void TakeSilent();
  bool IsWanted(const ChunkPlace& place) const;

  const ChunkStore& store_;
  std::optional<Board> board_;
  uint64_t next_ = 0;          // the first chunk that was not looked at
  bool passed_later_ = false;  // some of what was looked at lies behind the window
  uint64_t stride_ = 1;
  uint64_t unreadable_ = 0;
  std::map<size_t, uint64_t> passed_;  // of each stream, chunks in the window so far
};

// The tick that is `steps` after `from_ns` (before it, if negative), of this stream; the farthest
// one where there are fewer. Nothing where there is none on that side.
std::optional<int64_t> TickNear(const ChunkStore& store, size_t stream, int64_t from_ns, int steps);

}  // namespace vcpulse::top
