#pragma once

// Store, boards and state together: what the thread of a terminal talks to. No clock, no terminal.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "monitor/top/board_loader.h"
#include "monitor/top/cells.h"
#include "monitor/top/chunk_store.h"
#include "monitor/top/state.h"

namespace vcpulse::top {

// One thread.
class View {
 public:
  struct Options {
    Source source;
    Keymap keymap;
    Size size;
    bool has_utf8 = true;
  };

  // `store` must outlive it; who adds to it calls StoreChanged().
  View(ChunkStore& store, const Options& options);

  // Takes what a person did; gives what is for others to do: AddMark, WriteTimeline, Quit.
  std::optional<Effect> Take(const Event& event);
  void StoreChanged();
  // While playing: so much time has passed.
  void Advance(int64_t ns);
  // Reads for what is to be seen, until all is in or `stop` says so. True once all is.
  bool Load(absl::FunctionRef<bool()> stop);

  void Say(const std::string& message, bool is_alarm = false);
  // Says what the recording said; the latest few stay in sight as long as there is no row.
  void Note(const std::string& line);
  // No more chunks will come.
  void SourceIsOver();
  void SetLostChunks(uint64_t chunks);
  // So long no chunk has come, although more may.
  void SetSilence(int64_t ns);

  Cells Draw();
  // Whether Draw() gives something else than at the last call of this.
  bool TakeChanged() { return std::exchange(changed_, false); }
  const State& state() const { return state_; }
  const Source& source() const { return scene_.source; }

  // Writes the chunks of one stream that are held, and its first one, as a timeline; an
  // older file of that name becomes NAME.old. Returns how many chunks. Errors: of OutputFile;
  // NotFound where nothing is held.
  absl::StatusOr<uint64_t> Write(const WriteTimeline& what);

 private:
  void Want();
  void MakeScene();
  void Apply(const StepTicks& step);
  void Apply(const Explain& what);
  const Board& numbers() const;

  ChunkStore& store_;
  const Keymap keymap_;
  const bool has_utf8_;
  State state_;
  Scene scene_;
  std::vector<Row> rows_;
  BoardLoader strip_;
  BoardLoader seconds_;  // of the numbers, unless they are of the strip
  bool is_complete_ = false;
  bool chose_folding_ = false;
  uint64_t lost_chunks_ = 0;
  int64_t silent_s_ = 0;
  bool changed_ = true;
};

}  // namespace vcpulse::top
