#include "monitor/stream/nats/publish_ledger.h"

#include <algorithm>
#include <iterator>

#include "monitor/core/check.h"

namespace vcpulse::stream {

PublishLedger::Entry* PublishLedger::Find(const timeline::StreamId& stream, uint64_t first) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return nullptr;
  auto& entries = found->second.entries;
  const auto entry = std::ranges::lower_bound(entries, first, {}, &Entry::first);
  return entry == entries.end() || entry->first() != first ? nullptr : &*entry;
}

void PublishLedger::SetState(Stream& stream, Entry& entry, State state) {
  const Item& item = entry.item;
  uint64_t& counted = item.is_loss ? acknowledged_lost_records_ : acknowledged_chunks_;
  const uint64_t weight = item.is_loss ? item.last - item.first + 1 : 1;
  if (entry.state == State::kAcknowledged) counted -= weight;
  if (entry.state == State::kWaiting) stream.waiting.erase(item.first);
  entry.state = state;
  if (state == State::kAcknowledged) counted += weight;
  if (state == State::kWaiting) stream.waiting.insert(item.first);
}

void PublishLedger::Drop(Stream& stream, std::deque<Entry>::iterator from, uint64_t last) {
  auto end = from;
  for (; end != stream.entries.end() && end->first() <= last; ++end) {
    SetState(stream, *end, State::kUnderWay);  // which is counted nowhere
    if (stream.proof == end->first()) stream.proof.reset();
  }
  stream.entries.erase(from, end);
}

uint64_t PublishLedger::NextToPublish(const timeline::StreamId& id, uint64_t begin) {
  Stream& stream = streams_.try_emplace(id, Stream{.begin = begin}).first->second;
  if (std::exchange(stream.must_prove, false)) {
    Entry* newest = nullptr;
    for (Entry& entry : stream.entries) {
      if (entry.state != State::kAcknowledged) continue;
      if (newest == nullptr || entry.broker_sequence > newest->broker_sequence) newest = &entry;
    }
    if (newest != nullptr) {
      stream.proof = newest->first();
      SetState(stream, *newest, State::kWaiting);
    }
  }
  if (stream.proof && stream.waiting.contains(*stream.proof)) return *stream.proof;
  if (!stream.waiting.empty()) return *stream.waiting.begin();
  return stream.entries.empty() ? stream.begin : stream.entries.back().item.last + 1;
}

bool PublishLedger::MayPublish(size_t bytes) const {
  if (under_way_.empty()) return true;
  return under_way_.size() < options_.most_under_way &&
         bytes_under_way_ + bytes <= options_.most_bytes_under_way;
}

PublishLedger::Token PublishLedger::Published(const timeline::StreamId& id, const Item& item,
                                              int64_t now_ns) {
  Stream& stream = streams_[id];
  Entry* entry = Find(id, item.first);
  if (entry == nullptr) {
    VCPULSE_CHECK(stream.entries.empty() || stream.entries.back().item.last < item.first,
                  "published something in between");
    stream.entries.push_back({.item = item, .state = State::kUnderWay});
  } else {
    SetState(stream, *entry, State::kUnderWay);
    entry->item = item;
    // A loss may have taken the place of several chunks.
    const auto index = std::ranges::lower_bound(stream.entries, item.first, {}, &Entry::first);
    Drop(stream, std::next(index), item.last);
  }
  if (stream.proof == item.first) stream.proof_ns = now_ns;
  const Token token = next_token_++;
  under_way_[token] = {.stream = id, .first = item.first, .bytes = item.bytes, .since_ns = now_ns};
  bytes_under_way_ += item.bytes;
  return token;
}

bool PublishLedger::Acknowledged(Token token, const BrokerAck& ack, int64_t now_ns) {
  const auto found = under_way_.find(token);
  if (found == under_way_.end()) return false;
  const UnderWay message = found->second;
  bytes_under_way_ -= message.bytes;
  under_way_.erase(found);
  Entry* entry = Find(message.stream, message.first);
  if (entry == nullptr || entry->state != State::kUnderWay) return false;
  Stream& stream = streams_[message.stream];
  const bool was_proof = stream.proof == message.first;
  if (was_proof) stream.proof.reset();
  if (was_proof && ack.was_known) stream.proven_ns = stream.proof_ns;
  // Something new behind which the broker had more before: it has lost its end. All that it has
  // acknowledged and that is still held goes out again.
  const bool went_back = !ack.was_known && ack.sequence <= highest_sequence_;
  if (went_back || (was_proof && !ack.was_known)) {
    for (auto& [id, one] : streams_) {
      for (Entry& other : one.entries) {
        if (other.state == State::kAcknowledged) SetState(one, other, State::kWaiting);
      }
    }
    highest_sequence_ = 0;
  }
  highest_sequence_ = std::max(highest_sequence_, ack.sequence);
  SetState(stream, *entry, State::kAcknowledged);
  entry->broker_sequence = ack.sequence;
  if (!was_proof || !ack.was_known) entry->acknowledged_ns = now_ns;
  return !was_proof;
}

void PublishLedger::Refused(Token token) {
  const auto found = under_way_.find(token);
  if (found == under_way_.end()) return;
  bytes_under_way_ -= found->second.bytes;
  if (Entry* entry = Find(found->second.stream, found->second.first);
      entry != nullptr && entry->state == State::kUnderWay) {
    SetState(streams_[found->second.stream], *entry, State::kWaiting);
  }
  under_way_.erase(found);
}

void PublishLedger::Interrupted() {
  under_way_.clear();
  bytes_under_way_ = 0;
  for (auto& [id, stream] : streams_) {
    const Entry* const proof = stream.proof ? Find(id, *stream.proof) : nullptr;
    // It may have come to a broker that did not know it: that it is known now would prove nothing.
    const bool is_doubtful = proof != nullptr && proof->state == State::kUnderWay;
    for (Entry& entry : stream.entries) {
      const bool is_proof = stream.proof == entry.first();
      if (is_doubtful || entry.state == State::kUnderWay) {
        SetState(stream, entry, State::kWaiting);
      } else if (is_proof) {
        SetState(stream, entry, State::kAcknowledged);  // as it was before
      }
    }
    stream.proof.reset();
    stream.must_prove = !is_doubtful;
  }
}

bool PublishLedger::IsOverdue(int64_t now_ns) const {
  return !under_way_.empty() &&
         now_ns - under_way_.begin()->second.since_ns > options_.ack_deadline_ns;
}

std::vector<std::pair<timeline::StreamId, uint64_t>> PublishLedger::TakeReleased(int64_t now_ns,
                                                                                 bool early) {
  std::vector<std::pair<timeline::StreamId, uint64_t>> released;
  for (auto& [id, stream] : streams_) {
    if (!early && (stream.must_prove || stream.proof)) continue;  // it may be gone
    const uint64_t before = stream.begin;
    while (!stream.entries.empty()) {
      Entry& oldest = stream.entries.front();
      if (oldest.state != State::kAcknowledged) break;
      const int64_t over_ns = oldest.acknowledged_ns + options_.margin_ns;
      if (!early && now_ns < over_ns) break;
      const bool is_proven = options_.margin_ns == 0 || stream.proven_ns >= over_ns;
      if (!early && !is_proven) {
        stream.must_prove = now_ns - stream.proof_ns >= options_.margin_ns / kProofsPerMargin;
        break;
      }
      stream.begin = oldest.item.last + 1;
      Drop(stream, stream.entries.begin(), oldest.item.first);
    }
    if (stream.begin != before) released.emplace_back(id, stream.begin - 1);
  }
  return released;
}

void PublishLedger::Forget(const timeline::StreamId& id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (!stream.entries.empty()) {
    Drop(stream, stream.entries.begin(), stream.entries.back().item.last);
  }
  streams_.erase(found);
}

}  // namespace vcpulse::stream
