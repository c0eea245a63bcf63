#pragma once

// `vcpulse top` and `record --top` on a terminal: joins the view (monitor/top), the terminal
// (monitor/terminal) and whatever brings chunks.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
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

  // Any thread; none of them waits. Chunks wait in a bounded queue: what a slow terminal leaves
  // behind is not shown, and the view says how much.
  void Take(const std::string& agent, std::span<const uint8_t> chunk);
  void Say(const std::string& line);
  void SourceIsOver();
  void Leave();

  // Shows the view until the person leaves, Leave() is called, the terminal goes or a signal came
  // (WasStopped).
  void Run(const Commands& commands);
  // Gives the terminal back; then prints what was said meanwhile on stderr.
  void Close();

 private:
  struct Waiting {
    std::string agent;
    std::vector<uint8_t> bytes;
  };

  ViewThread(Options options, std::unique_ptr<terminal::Screen> screen);

  void Handle(const top::Effect& effect, const Commands& commands);
  void TakeNews();
  void Refresh();

  std::unique_ptr<terminal::Screen> screen_;
  top::ChunkStore store_;
  top::View view_;
  bool left_ = false;
  int64_t refreshed_ns_ = 0;

  std::mutex mutex_;  // of what follows
  std::deque<Waiting> waiting_;
  uint64_t waiting_bytes_ = 0;
  uint64_t dropped_chunks_ = 0;
  std::vector<std::string> said_;
  size_t shown_ = 0;  // of said_
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
