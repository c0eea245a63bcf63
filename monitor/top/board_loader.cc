#include "monitor/top/board_loader.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace vcpulse::top {

void BoardLoader::Begin(const Window& window) {
  board_.emplace(window);
  next_ = store_.first();
  passed_later_ = false;
  passed_.clear();
  uint64_t bytes = 0;
  for (uint64_t n = store_.first(); n < store_.end(); ++n) {
    if (IsWanted(store_.Place(n))) bytes += store_.Place(n).bytes;
  }
  stride_ = bytes / kMostRead + 1;
  unreadable_ = 0;
  TakeSilent();
}

void BoardLoader::TakeSilent() {
  std::map<size_t, uint64_t> latest;  // of each stream
  for (uint64_t n = store_.first(); n < store_.end(); ++n) {
    const ChunkPlace& place = store_.Place(n);
    if (place.begin_ns <= std::min(board_->window().EndNs(), board_->window().until_ns)) {
      latest[place.stream] = n;
    }
  }
  for (const auto& [stream, number] : latest) {
    if (IsWanted(store_.Place(number))) continue;
    const auto chunk = store_.Load(number);
    if (!chunk.ok()) continue;
    (void)ForEachEntry(*chunk, [&, of = stream](const timeline::Entry& entry) {
      // The context alone.
      return entry.sequence == 0 ? board_->Add(of, store_.streams()[of], entry)
                                 : absl::CancelledError("");
    });
  }
}

void BoardLoader::Want(const Window& window) {
  if (!board_) return Begin(window);
  const Window& now = board_->window();
  if (window == now) return;
  Window same_place = window;
  same_place.first_slot = now.first_slot;
  const bool moves_on = same_place == now && window.first_slot >= now.first_slot &&
                        window.first_slot < now.first_slot + static_cast<int64_t>(now.slots);
  if (!moves_on || passed_later_) return Begin(window);
  board_->MoveTo(window);
}

bool BoardLoader::IsWanted(const ChunkPlace& place) const {
  const Window& window = board_->window();
  return place.end_ns > window.BeginNs() - kBefore_ns &&
         place.begin_ns <= std::min(window.EndNs(), window.until_ns);
}

bool BoardLoader::Step(absl::FunctionRef<bool()> stop) {
  next_ = std::max(next_, store_.first());
  const Window& window = board_->window();
  const int64_t end_ns = std::min(window.EndNs(), window.until_ns);
  while (next_ < store_.end()) {
    const uint64_t number = next_;
    const ChunkPlace& place = store_.Place(number);
    passed_later_ = passed_later_ || place.end_ns > end_ns;
    if (!IsWanted(place)) {
      ++next_;
      continue;
    }
    if (stop()) return false;
    ++next_;
    if (passed_[place.stream]++ % stride_ == 0) Take(number);
  }
  return true;
}

void BoardLoader::Take(uint64_t number) {
  const size_t stream = store_.Place(number).stream;
  const auto chunk = store_.Load(number);
  const absl::Status status =
      chunk.ok() ? ForEachEntry(*chunk,
                                [&](const timeline::Entry& entry) {
                                  return board_->Add(stream, store_.streams()[stream], entry);
                                })
                 : chunk.status();
  if (!status.ok()) ++unreadable_;  // its time stays empty
}

std::optional<int64_t> TickNear(const ChunkStore& store, size_t stream, int64_t from_ns,
                                int steps) {
  const bool forward = steps > 0;
  auto missing = static_cast<size_t>(std::abs(steps));
  std::optional<int64_t> farthest;
  // The chunks of the stream on that side, the nearest first.
  std::vector<uint64_t> numbers;
  for (uint64_t n = store.first(); n < store.end(); ++n) {
    const ChunkPlace& place = store.Place(n);
    if (place.stream != stream) continue;
    if (forward ? place.end_ns > from_ns : place.begin_ns < from_ns) numbers.push_back(n);
  }
  if (!forward) std::ranges::reverse(numbers);
  for (const uint64_t number : numbers) {
    const auto chunk = store.Load(number);
    if (!chunk.ok()) continue;
    std::map<int64_t, int64_t> by_due_ns;  // of all VMs at once: when the last of them was read
    (void)ForEachEntry(*chunk, [&](const timeline::Entry& entry) {
      if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
        const Stream& of = store.streams()[stream];
        int64_t& latest_ns = by_due_ns[of.OnAxis(tick->sample.deadline_ns)];
        latest_ns = std::max(latest_ns, of.OnAxis(tick->sample.wake_ns));
      }
      return absl::OkStatus();
    });
    std::set<int64_t> ticks;
    for (const auto& [due_ns, ns] : by_due_ns) {
      if (forward ? ns > from_ns : ns < from_ns) ticks.insert(ns);
    }
    if (ticks.empty()) continue;
    if (ticks.size() >= missing) {
      const auto steps_in = static_cast<ptrdiff_t>(missing - 1);
      return forward ? *std::next(ticks.begin(), steps_in) : *std::next(ticks.rbegin(), steps_in);
    }
    missing -= ticks.size();
    farthest = forward ? *ticks.rbegin() : *ticks.begin();
  }
  return farthest;
}

}  // namespace vcpulse::top
