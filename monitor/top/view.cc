#include "monitor/top/view.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "monitor/report/explain.h"
#include "monitor/top/columns.h"
#include "monitor/top/draw.h"
#include "monitor/top/layout.h"

namespace vcpulse::top {
namespace {

// An explanation is judged anew from this long before the instant on, as hysteresis looks back.
constexpr int64_t kExplainFrom_ns = 10'000'000'000;
constexpr size_t kFoldBeyond = 64;                // so many vCPUs are folded to begin with
constexpr int64_t kNumbersSlot_ns = 100'000'000;  // at least
constexpr int64_t kNumbersSlots = 20;
// Numbers are of so long, or of one interval where that is longer: statistics are read about once a
// second.
constexpr int64_t kLeastNumbers_ns = 2'000'000'000;

// Whether the chunk has ticks that an explanation looks at.
bool IsLookedAt(const ChunkPlace& place, const Explain& what) {
  return place.stream == what.vcpu.vm.stream && place.end_ns > what.at_ns - kExplainFrom_ns &&
         place.begin_ns <= what.at_ns;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

View::View(ChunkStore& store, const Options& options)
    : store_(store),
      keymap_(options.keymap),
      has_utf8_(options.has_utf8),
      strip_(store),
      seconds_(store) {
  scene_.source = options.source;
  state_.size = options.size;
  for (size_t i = 0; i < Columns().size(); ++i) {
    if (!Columns()[i].is_shown) state_.hidden_columns.insert(i);
  }
  if (store.IsOfFile()) state_.span_index = Spans().size() - 1;
  StoreChanged();
}

const Board& View::numbers() const {
  return state_.numbers == Numbers::kStrip ? strip_.board() : seconds_.board();
}

void View::StoreChanged() {
  scene_.span = store_.Span();
  Settle(state_, scene_);
  Want();
  MakeScene();
}

void View::Want() {
  const Layout layout = LayoutOf(state_.size, state_.hidden_columns, state_.chosen_column);
  const size_t slots = std::max<size_t>(layout.strip_columns, 2);
  const int64_t slot_ns = SlotNs(state_, scene_.span, slots);
  // Rows refer to the board that may go now; who calls this makes them anew.
  rows_.clear();
  scene_.rows = {};
  strip_.Want(Window::EndingAt(state_.page_end_ns, slots, slot_ns));
  // A slow host must not stretch the numbers of the others.
  std::optional<int64_t> interval_ns;
  for (const Stream& stream : store_.streams()) {
    interval_ns = std::min(interval_ns.value_or(stream.interval_ns), stream.interval_ns);
  }
  const int64_t numbers_ns = std::max(kLeastNumbers_ns, interval_ns.value_or(0) + kNumbersSlot_ns);
  const int64_t numbers_slot_ns = std::max(kNumbersSlot_ns, numbers_ns / kNumbersSlots);
  Window seconds = Window::EndingAt(
      state_.cursor_ns, static_cast<size_t>(numbers_ns / numbers_slot_ns), numbers_slot_ns);
  seconds.latest_only = state_.numbers == Numbers::kTick;
  if (state_.pace == Pace::kPaused) seconds.until_ns = state_.cursor_ns;
  seconds_.Want(seconds);
  // A few chunks, which every key needs at once.
  seconds_.Step([] { return false; });
  is_complete_ = false;
  changed_ = true;
}

bool View::Load(absl::FunctionRef<bool()> stop) {
  if (is_complete_) return true;
  is_complete_ = strip_.Step(stop);
  changed_ = true;
  MakeScene();
  return is_complete_;
}

void View::MakeScene() {
  scene_.has_samples = scene_.has_samples || seconds_.board().Cost().samples > 0;
  if (!chose_folding_ && !seconds_.board().vms().empty()) {
    chose_folding_ = true;
    size_t vcpus = 0;
    for (const auto& [id, vm] : seconds_.board().vms()) vcpus += vm.vcpus.size();
    state_.rows.folds_by_default = vcpus > kFoldBeyond;
  }
  rows_ = MakeRows({.now = seconds_.board(), .numbers = numbers(), .strip = strip_.board()},
                   store_.streams(), state_.rows);
  scene_.rows = rows_;
  Settle(state_, scene_);
}

std::optional<Effect> View::Take(const Event& event) {
  auto effect = Update(state_, event, scene_, keymap_);
  if (effect) {
    if (const auto* step = std::get_if<StepTicks>(&*effect)) {
      Apply(*step);
      effect.reset();
    } else if (const auto* explain = std::get_if<Explain>(&*effect)) {
      Apply(*explain);
      effect.reset();
    }
  }
  Want();
  MakeScene();
  return effect;
}

void View::Advance(int64_t ns) {
  if (state_.pace != Pace::kPlaying || !scene_.span) return;
  const bool ends = state_.cursor_ns + ns >= scene_.span->end_ns;
  MoveCursor(state_, state_.cursor_ns + ns, scene_);
  state_.pace = ends ? Pace::kFollow : Pace::kPlaying;
  Settle(state_, scene_);
  Want();
  MakeScene();
}

void View::Say(const std::string& message, bool is_alarm) {
  state_.message = Printable(message);
  state_.message_is_alarm = is_alarm;
  changed_ = true;
}

void View::Note(const std::string& line) {
  constexpr size_t kMostNotes = 8;
  Say(line);
  state_.notes.push_back(state_.message);
  if (state_.notes.size() > kMostNotes) state_.notes.erase(state_.notes.begin());
}

void View::SourceIsOver() { changed_ = !std::exchange(scene_.source.is_over, true) || changed_; }

void View::SetSilence(int64_t ns) {
  constexpr int64_t kWorthWhile_s = 3;
  const int64_t seconds = ns / 1'000'000'000;
  const int64_t shown = seconds < kWorthWhile_s ? 0 : seconds;
  changed_ = std::exchange(silent_s_, shown) != shown || changed_;
}

void View::SetLostChunks(uint64_t chunks) {
  changed_ = std::exchange(lost_chunks_, chunks) != chunks || changed_;
}

void View::Apply(const StepTicks& step) {
  const auto tick = TickNear(store_, step.vm.stream, step.from_ns, step.steps);
  if (!tick) return Say(step.steps > 0 ? "the last tick" : "the first tick");
  MoveCursor(state_, *tick, scene_);
  if (state_.numbers != Numbers::kSeconds) return;
  state_.numbers = Numbers::kTick;
  Say(absl::StrCat("numbers are of one tick now; ", keymap_.KeysOf(Action::kNumbers),
                   " changes that"));
}

void View::Apply(const Explain& what) {
  const Stream& stream = store_.streams()[what.vcpu.vm.stream];
  report::ExplainTarget target{.vcpu = what.vcpu.index, .vm = absl::StrCat(what.vcpu.vm.vm)};
  const auto vm = seconds_.board().vms().find(what.vcpu.vm);
  if (vm != seconds_.board().vms().end() && vm->second.instance.pid() != 0) {
    target.vm = absl::StrCat(vm->second.instance.pid());
  }
  // An explanation counts time from the recording's first record, so it needs the first chunk,
  // which also holds the profile.
  std::optional<int64_t> start_ns;
  const auto find_start = [&](const timeline::Entry& entry) {
    if (const auto instant = timeline::InstantOf(entry); instant && entry.sequence != 0) {
      start_ns = std::min(start_ns.value_or(*instant), *instant);
    }
    return absl::OkStatus();
  };
  if (const auto first = store_.LoadFirst(what.vcpu.vm.stream); first.ok()) {
    (void)ForEachEntry(*first, find_start);
  }
  if (start_ns) target.at_ns = std::max<int64_t>(what.at_ns - stream.ahead_ns - *start_ns, 0);
  report::Explainer explainer(target);
  absl::Status status;
  const auto feed = [&](const absl::StatusOr<std::span<const uint8_t>>& chunk) {
    if (!chunk.ok() || !status.ok()) return;
    status =
        ForEachEntry(*chunk, [&](const timeline::Entry& entry) { return explainer.Add(entry); });
  };
  if (!store_.HoldsFirst(what.vcpu.vm.stream) ||
      !IsLookedAt(store_.Place(store_.FirstNumber(what.vcpu.vm.stream)), what)) {
    feed(store_.LoadFirst(what.vcpu.vm.stream));
  }
  for (uint64_t n = store_.first(); n < store_.end(); ++n) {
    if (IsLookedAt(store_.Place(n), what)) feed(store_.Load(n));
  }
  const auto explanation =
      status.ok() ? explainer.Finish() : absl::StatusOr<report::Explanation>(status);
  if (!explanation.ok()) {
    return Say(absl::StrCat("nothing to explain here: ",
                            std::string(ToStd(explanation.status().message()))),
               true);
  }
  state_.mode = Mode::kText;
  state_.text_title = absl::StrCat("Why, at ", TimeText(what.at_ns, store_.streams(), scene_.span));
  state_.text = LinesOf(report::RenderExplanation(*explanation));
  state_.first_line = 0;
}

absl::StatusOr<uint64_t> View::Write(const WriteTimeline& what) {
  auto output = OutputFile::Create(what.path, OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return output.status();
  uint64_t written = 0;
  const auto write = [&](const absl::StatusOr<std::span<const uint8_t>>& chunk) {
    if (!chunk.ok()) return chunk.status();
    ++written;
    return (*output)->Append(*chunk);
  };
  if (what.stream >= store_.streams().size()) return absl::NotFoundError("nothing is held yet");
  absl::Status status;
  if (!store_.HoldsFirst(what.stream)) status = write(store_.LoadFirst(what.stream));
  for (uint64_t n = store_.first(); n < store_.end() && status.ok(); ++n) {
    if (store_.Place(n).stream == what.stream) status = write(store_.Load(n));
  }
  if (status.ok()) status = (*output)->Finish();
  if (!status.ok()) return status;
  if (scene_.span) state_.written_ns = scene_.span->end_ns;
  return written;
}

Cells View::Draw() {
  return top::Draw({.state = state_,
                    .scene = scene_,
                    .keymap = keymap_,
                    .strip = strip_.board(),
                    .now = seconds_.board(),
                    .numbers = numbers(),
                    .streams = store_.streams(),
                    .is_loading = !is_complete_,
                    .stride = strip_.stride(),
                    .lost_chunks = lost_chunks_ + store_.unreadable(),
                    .damaged_chunks = strip_.unreadable(),
                    .damaged_bytes = store_.damaged_bytes(),
                    .silent_s = silent_s_,
                    .has_utf8 = has_utf8_});
}

}  // namespace vcpulse::top
