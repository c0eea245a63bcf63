#pragma once

// `vcpulse top` and `record --top` on a terminal: joins the view (monitor/top), the terminal
// (monitor/terminal) and whatever brings chunks.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/terminal/screen.h"
#include "monitor/top/view.h"
#include "tools/vcpulse/record_options.h"

namespace vcpulse::tools {

class ViewThread {
 public:
  struct Options {
    top::Source source;
    top::Keymap keymap;
    std::optional<top::ChunkStore> file;  // nothing: chunks come by Take
  };
  // What is asked of a recording that runs here; both may be empty.
  struct Commands {
    std::function<void(const std::string& name, int64_t mono_ns)> mark;
    std::function<void()> quit;  // the person leaves
  };

  // Takes the terminal. Errors: those of Screen::Open.
  static absl::StatusOr<std::unique_ptr<ViewThread>> Open(Options options);

  ~ViewThread();

  // Any thread; none of them waits. Chunks wait in a bounded queue: what a slow terminal leaves
  // behind is not shown, and the view says how much.
  void Take(const std::string& agent, std::span<const uint8_t> chunk);
  // `is_printed`: also on stderr in the end.
  void Say(const std::string& line, bool is_printed = true);
  void SourceIsOver();
  void Leave();

  // Shows the view, on a thread of its own, until the person leaves, Leave() is called, the
  // terminal goes or a signal came (WasStopped). Once.
  void Start(Commands commands);
  // Until then; afterwards the terminal is as before, and what was said meanwhile is on stderr. A
  // terminal that takes nothing holds nobody up: what it was to show is thrown away.
  void Wait();

 private:
  struct Waiting {
    std::string agent;
    std::vector<uint8_t> bytes;
  };

  ViewThread(Options options, std::unique_ptr<terminal::Screen> screen);

  void Run(const Commands& commands);
  void Handle(const top::Effect& effect, const Commands& commands);
  void TakeNews();
  void Refresh();

  std::unique_ptr<terminal::Screen> screen_;
  top::ChunkStore store_;
  top::View view_;
  bool left_ = false;
  int64_t refreshed_ns_ = 0;
  int64_t latest_chunk_ns_ = 0;  // when it came, CLOCK_MONOTONIC
  std::thread thread_;

  std::mutex mutex_;  // of what follows
  std::deque<Waiting> waiting_;
  uint64_t waiting_bytes_ = 0;
  uint64_t dropped_chunks_ = 0;
  std::deque<std::string> unseen_;  // said, and not shown yet
  std::deque<std::string> said_;    // to be printed in the end
  uint64_t said_before_ = 0;        // lines that said_ has no room for
  bool is_done_ = false;            // Run has returned, and the terminal is as before
  std::condition_variable done_;
  bool is_over_ = false;
  bool asked_to_leave_ = false;
};

// The keys of that file; where none is named, of the one in the user's folder of settings, or
// top's own. Errors: those of reading it; InvalidArgument, naming file and line.
absl::StatusOr<top::Keymap> LoadKeymap(const std::optional<std::string>& file);

// Records, and shows it on the terminal meanwhile. `stays`: the view is left by the person alone,
// though the recording has ended. Returns the exit code; what went wrong was printed.
int RecordWithView(const RecordOptions& options, const top::Keymap& keymap, bool stays);

}  // namespace vcpulse::tools
