#include "monitor/follow/chunk_printer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "boost/json.hpp"
#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"

namespace vcpulse::follow {
namespace {

// Ended streams of which it is known what came.
constexpr size_t kMostEnded = 4096;

}  // namespace

ChunkPrinter::Stream::Stream(ChunkPrinter& printer)
    : view([&printer, this](int64_t mono_ns) { return printer.Stamp(*this, mono_ns); }),
      rows([&printer](std::string_view text) {
        printer.AddRows(text);
        return absl::OkStatus();
      }) {}

// Its records are then in decoder_.
absl::StatusOr<timeline::ChunkHeader> ChunkPrinter::OpenChunk(std::span<const uint8_t> chunk) {
  auto header = timeline::DecodeChunkHeader(chunk);
  if (absl::IsOutOfRange(header.status())) return absl::DataLossError("the chunk is cut off");
  if (!header.ok()) return header.status();
  const std::span<const uint8_t> payload = chunk.subspan(header->header_bytes);
  if (payload.size() != header->payload_bytes || timeline::Crc32c(payload) != header->payload_crc) {
    return absl::DataLossError("the chunk does not match its checksum");
  }
  if (absl::Status status = decoder_.Open(*header, payload); !status.ok()) return status;
  return *header;
}

void ChunkPrinter::PassOver(const StreamKey& key, const absl::Status& why) {
  ++unreadable_chunks_;
  if (!said_.insert(key).second) return;
  say_(absl::StrCat("warning: ", key.first, key.first.empty() ? "" : ": ",
                    "skipped a chunk that cannot be read: ", why.message()));
}

absl::Status ChunkPrinter::Take(const ChunkOwner& owner, std::span<const uint8_t> chunk,
                                uint64_t from) {
  const std::string agent = Printable(owner.agent.value_or(""));
  const auto header = OpenChunk(chunk);
  if (!header.ok()) {
    const auto whose = timeline::DecodeChunkHeader(chunk);
    const StreamKey key(agent, whose.ok() ? whose->stream_id : timeline::StreamId{});
    PassOver(key, header.status());
    const auto found = streams_.find(key);
    if (whose.ok() && found != streams_.end() && whose->first_sequence <= whose->last_sequence) {
      uint64_t& next = found->second->next_sequence;  // it was not missed
      next = std::max(next, whose->last_sequence + 1);
    }
    return absl::OkStatus();
  }
  const StreamKey key(agent, header->stream_id);
  const std::optional<Span> span = SpanOf(*header);
  if (span && span->last < NextSequence(key)) return absl::OkStatus();
  Stream& stream = StreamOf(key);
  if (format_ == Format::kJsonl) {
    prefix_ = absl::StrCat(
        "{\"agent\":", owner.agent ? boost::json::serialize(JsonText(agent)) : "null", ",");
  } else {
    prefix_ = owner.say_agent ? agent + "  " : "";
  }
  text_.clear();
  const bool is_known = stream.next_sequence > 0;
  if (owner.is_live && is_known && span && span->first > stream.next_sequence) {
    NoteMissed(agent, {stream.next_sequence, span->first - 1});
  }
  const uint64_t unusable_before = stream.rows.unusable_ticks();
  absl::Status status = TakeContext(decoder_.context(), stream);
  while (status.ok()) {
    const timeline::Entry* entry = decoder_.Next();
    if (entry == nullptr) break;
    const bool is_new = entry->sequence >= stream.next_sequence;
    stream.next_sequence = std::max(stream.next_sequence, entry->sequence + 1);
    status = TakeEntry(*entry, is_new && entry->sequence >= from, stream);
  }
  if (span) stream.next_sequence = std::max(stream.next_sequence, span->last + 1);
  if (status.ok()) status = stream.rows.Flush();
  unusable_ticks_ += stream.rows.unusable_ticks() - unusable_before;
  const bool has_ended = stream.has_ended;
  if (has_ended) NoteEnd(key, stream.next_sequence);
  if (status.ok() && !text_.empty()) status = print_(text_);
  // Of one file nothing else would say why nothing more comes.
  if (status.ok() && has_ended && !owner.agent) {
    say_("the recording has ended; waiting for another one in its place (Ctrl-C ends this)");
  }
  return status;
}

// What decoder_ has opened; nothing where it has neither.
std::optional<ChunkPrinter::Span> ChunkPrinter::SpanOf(const timeline::ChunkHeader& header) const {
  if (header.first_sequence <= header.last_sequence) {
    return Span{header.first_sequence, header.last_sequence};
  }
  if (!decoder_.context().has_lost()) return std::nullopt;
  const v1::LostRecords& lost = decoder_.context().lost();
  return Span{lost.first_sequence(), lost.last_sequence()};
}

uint64_t ChunkPrinter::NextSequence(const StreamKey& key) const {
  if (const auto found = streams_.find(key); found != streams_.end()) {
    return found->second->next_sequence;
  }
  const auto ended = ended_.find(key);
  return ended == ended_.end() ? 0 : ended->second;
}

ChunkPrinter::Stream& ChunkPrinter::StreamOf(const StreamKey& key) {
  std::unique_ptr<Stream>& stream = streams_[key];
  if (stream == nullptr) {
    stream = std::make_unique<Stream>(*this);
    const auto ended = ended_.find(key);
    if (ended != ended_.end()) stream->next_sequence = ended->second;
  }
  return *stream;
}

// A summary is the last that comes of a stream, but that may come again.
void ChunkPrinter::NoteEnd(const StreamKey& key, uint64_t next_sequence) {
  streams_.erase(key);
  if (!ended_.insert_or_assign(key, next_sequence).second) return;
  oldest_ended_.push_back(key);
  if (oldest_ended_.size() <= kMostEnded) return;
  ended_.erase(oldest_ended_.front());
  oldest_ended_.pop_front();
}

void ChunkPrinter::NoteMissed(const std::string& agent, const Span& missed) {
  missed_records_ += missed.last - missed.first + 1;
  const std::string what = absl::StrCat("missed: records ", missed.first, " to ", missed.last,
                                        ": they did not come from the collector");
  if (format_ == Format::kText) return AddLine(what + "\n");
  say_(absl::StrCat(agent, agent.empty() ? "" : ": ", what));
}

absl::Status ChunkPrinter::TakeContext(const v1::ChunkPayload& context, Stream& stream) {
  absl::Status status;
  const auto take = [&](auto record) {
    if (status.ok()) status = TakeEntry({.record = std::move(record)}, false, stream);
  };
  if (context.has_clock()) take(context.clock());
  if (context.has_lost()) TakeLost(context.lost(), stream);
  if (context.has_session() && !stream.has_session) take(context.session());
  for (const v1::VcpuSet& set : context.vcpu_sets()) {
    if (!stream.sets.contains({set.vm(), set.epoch()})) take(set);
  }
  return status;
}

absl::Status ChunkPrinter::TakeEntry(const timeline::Entry& entry, bool print, Stream& stream) {
  // Each chunk repeats what its ticks need.
  if (std::holds_alternative<v1::Session>(entry.record) &&
      std::exchange(stream.has_session, true)) {
    return absl::OkStatus();
  }
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    if (!stream.sets.emplace(set->vm(), set->epoch()).second) return absl::OkStatus();
  }
  if (const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record)) stream.clocks.Take(*clock);
  if (std::holds_alternative<v1::Summary>(entry.record)) stream.has_ended = true;
  if (format_ == Format::kText) return TakeText(entry, print, stream);
  const bool is_tick = std::holds_alternative<timeline::TickEntry>(entry.record);
  return is_tick && !print ? absl::OkStatus() : stream.rows.Add(entry);
}

absl::Status ChunkPrinter::TakeText(const timeline::Entry& entry, bool print, Stream& stream) {
  const std::optional<std::string> line = stream.view.Take(entry);
  if (!print) return absl::OkStatus();
  if (line) AddLine(*line);
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    AddLine(stream.view.TickLine(*tick));
  }
  return absl::OkStatus();
}

void ChunkPrinter::TakeLost(const v1::LostRecords& lost, Stream& stream) {
  if (format_ != Format::kText) return;
  const std::string what =
      absl::StrCat("lost: records ", lost.first_sequence(), " to ", lost.last_sequence(), ": ",
                   reading::WhyLost(lost.reason()), "\n");
  AddLine(lost.first_mono_ns() == 0
              ? what
              : absl::StrCat(Stamp(stream, lost.first_mono_ns()), "  ", what));
}

std::string ChunkPrinter::Stamp(Stream& stream, int64_t mono_ns) const {
  if (const auto realtime_ns = stream.clocks.Realtime(mono_ns)) {
    return absl::FormatTime("%H:%M:%E3S", absl::FromUnixNanos(*realtime_ns), absl::LocalTimeZone());
  }
  if (!stream.start_ns) stream.start_ns = mono_ns;
  return absl::StrFormat("%11.3fs", ToSeconds(mono_ns - *stream.start_ns));
}

void ChunkPrinter::AddLine(std::string_view line) {
  text_ += prefix_;
  text_ += line;
}

// Whole rows come, each an object on a line of its own.
void ChunkPrinter::AddRows(std::string_view rows) {
  while (!rows.empty()) {
    const size_t end = rows.find('\n') + 1;
    text_ += prefix_;
    text_ += rows.substr(1, end - 1);
    rows.remove_prefix(end);
  }
}

}  // namespace vcpulse::follow
