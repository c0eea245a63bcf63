#include "monitor/stream/disk/spool_stream.h"

#include <algorithm>

namespace vcpulse::stream {
namespace {

// Losses of different reasons stay apart until there are so many entries.
constexpr size_t kManyEntries = 10'000;

}  // namespace

size_t Spool::Stream::IndexOf(uint64_t sequence) const {
  const auto found = std::ranges::lower_bound(entries, sequence, {}, &Entry::last_sequence);
  return static_cast<size_t>(found - entries.begin());
}

Spool::Entry* Spool::Stream::Find(uint64_t sequence) {
  const size_t i = IndexOf(sequence);
  if (i == entries.size() || entries[i].first_sequence > sequence) return nullptr;
  return &entries[i];
}

void Spool::Stream::Push(Entry entry, v1::LostRecords::Reason reason) {
  if (entry.first_sequence > next_sequence) {
    entries.push_back({.first_sequence = next_sequence,
                       .last_sequence = entry.first_sequence - 1,
                       .is_lost = true,
                       .reason = reason});
    held->untold_records += entries.back().records();
    if (reason == v1::LostRecords::REASON_SPOOL_DAMAGED) {  // how many chunks they were is gone too
      ++held->lost_chunks;
      held->lost_records += entries.back().records();
    }
  }
  next_sequence = entry.last_sequence + 1;
  if (!entry.is_lost) {
    ++held->chunks;
    held->memory_bytes += entry.memory.size();
    if (entry.segment == 0) {
      held->waiting_bytes += entry.bytes;
      waiting.push_back(entry.first_sequence);
    }
  } else {
    held->untold_records += entry.records();
  }
  entries.push_back(std::move(entry));
  const size_t touched = std::min<size_t>(entries.size(), 3);
  MergeLosses(entries.size() - touched, entries.size());
}

void Spool::Stream::Forget(uint64_t durable) {
  while (!entries.empty() && entries.front().last_sequence <= durable) {
    if (!entries.front().is_lost) {
      ReleaseChunk(entries.front());
    } else {
      held->untold_records -= entries.front().records();
    }
    entries.pop_front();
  }
  if (!entries.empty() && entries.front().is_lost) {
    Entry& front = entries.front();
    const uint64_t first = std::max(front.first_sequence, durable + 1);
    held->untold_records -= first - front.first_sequence;
    front.first_sequence = first;
  }
  next_sequence = std::max(next_sequence, durable + 1);
  const uint64_t first = entries.empty() ? next_sequence : entries.front().first_sequence;
  while (!waiting.empty() && waiting.front() < first) waiting.pop_front();
}

void Spool::Stream::FreeMemory(Entry& entry) {
  held->memory_bytes -= entry.memory.size();
  entry.memory = {};
}

void Spool::Stream::NoteOnDisk(Entry& entry, uint64_t segment, uint64_t offset) {
  held->waiting_bytes -= entry.bytes;
  entry.segment = segment;
  entry.offset = offset;
}

void Spool::Stream::ReleaseChunk(Entry& entry) {
  --held->chunks;
  if (entry.segment == 0) held->waiting_bytes -= entry.bytes;
  FreeMemory(entry);
}

// Joins neighbours among entries [from, to) that are lost.
void Spool::Stream::MergeLosses(size_t from, size_t to) {
  to = std::min(to, entries.size());
  if (from >= to) return;
  const bool whatever_reason = entries.size() > kManyEntries;
  size_t kept = from;
  for (size_t i = from + 1; i < to; ++i) {
    Entry& before = entries[kept];
    Entry& entry = entries[i];
    if (before.is_lost && entry.is_lost && (whatever_reason || before.reason == entry.reason)) {
      before.last_sequence = entry.last_sequence;
      // A time that is not known is 0.
      if (before.first_mono_ns == 0) before.first_mono_ns = entry.first_mono_ns;
      if (entry.last_mono_ns != 0) before.last_mono_ns = entry.last_mono_ns;
    } else if (++kept != i) {
      entries[kept] = std::move(entry);
    }
  }
  entries.erase(entries.begin() + static_cast<ptrdiff_t>(kept + 1),
                entries.begin() + static_cast<ptrdiff_t>(to));
}

}  // namespace vcpulse::stream
