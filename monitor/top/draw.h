#pragma once

// state -> cells, pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/top/board.h"
#include "monitor/top/cells.h"
#include "monitor/top/chunk_store.h"
#include "monitor/top/state.h"

namespace vcpulse::top {

// All that a screen is made of.
struct Picture {
  const State& state;
  const Scene& scene;
  const Keymap& keymap;
  const Board& strip;    // the window that strips show
  const Board& now;      // the VMs that there are at the cursor
  const Board& numbers;  // the sums of the rows
  const std::vector<Stream>& streams;
  bool is_loading = false;      // more of the strip's time is to come
  uint64_t stride = 1;          // one chunk of so many is read for the strips
  uint64_t lost_chunks = 0;     // that came too fast for the view, or could not be read
  uint64_t damaged_chunks = 0;  // of those shown
  uint64_t damaged_bytes = 0;   // of a file, that are not a chunk
  int64_t silent_s = 0;         // nothing has come for so long
  bool has_utf8 = true;
};

Cells Draw(const Picture& picture);

// "10:31:58.120" of the day (UTC), "+12.345 s" after the beginning of what is held where no clock
// is known. `digits` behind the point of a second.
std::string TimeText(int64_t ns, const std::vector<Stream>& streams,
                     const std::optional<TimeSpan>& span, int digits = 3);

}  // namespace vcpulse::top
