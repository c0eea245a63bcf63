#include "monitor/timeline/recut.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_encoder.h"
#include "monitor/timeline/group_columns.h"
#include "monitor/timeline/tick_columns.h"

namespace vcpulse::timeline {
namespace {

using VmEpoch = std::pair<uint32_t, uint32_t>;

std::optional<int64_t> InstantOfRecord(const v1::TimelineRecord& record) {
  switch (record.record_case()) {
    case v1::TimelineRecord::kVcpuSet:
      return record.vcpu_set().mono_ns();
    case v1::TimelineRecord::kMarker:
      return record.marker().mono_ns();
    case v1::TimelineRecord::kGap:
      return record.gap().mono_ns();
    case v1::TimelineRecord::kLifeCycle:
      return record.life_cycle().mono_ns();
    case v1::TimelineRecord::kClockSnapshot:
      return record.clock_snapshot().mono_ns();
    case v1::TimelineRecord::kStatistics:
      return record.statistics().mono_ns();
    case v1::TimelineRecord::kHotAddresses:
      return record.hot_addresses().mono_ns();
    case v1::TimelineRecord::kCompetitors:
      return record.competitors().mono_ns();
    default:
      return std::nullopt;
  }
}

// Rows `from` to before `to`, with the row before them as their base where there is one.
TickRows Slice(const TickRows& rows, size_t from, size_t to) {
  TickRows slice{.vcpus = rows.vcpus,
                 .events = rows.events,
                 .further_events = rows.further_events,
                 .has_base = from > 0};
  if (slice.has_base) --from;
  const auto copy = [&](const auto& all, size_t per_row, auto& out) {
    out.assign(all.begin() + static_cast<ptrdiff_t>(from * per_row),
               all.begin() + static_cast<ptrdiff_t>(to * per_row));
  };
  copy(rows.heads, 1, slice.heads);
  copy(rows.samples, rows.vcpus, slice.samples);
  copy(rows.further, rows.vcpus * rows.further_events.size(), slice.further);
  copy(rows.verdicts, rows.vcpus, slice.verdicts);
  return slice;
}

class Recutting {
 public:
  Recutting(const ChunkHeader& header, const v1::ChunkPayload& content, size_t max_chunk_bytes,
            const ByteSink& sink)
      : header_(header), content_(content), max_chunk_bytes_(max_chunk_bytes), sink_(sink) {}

  // The rows of all ticks. The content is one that ChunkDecoder::Open took.
  absl::Status Unpack();
  // Writes the records `first` to `last`, halving them until they are short enough.
  absl::Status Write(uint64_t first, uint64_t last);

 private:
  struct Group {
    const v1::VcpuSet* set = nullptr;
    TickRows rows;  // a base that the chunk has is row 0
  };
  struct Range {
    int64_t first = std::numeric_limits<int64_t>::max();
    int64_t last = std::numeric_limits<int64_t>::min();

    void Take(int64_t instant) {
      first = std::min(first, instant);
      last = std::max(last, instant);
    }
  };

  absl::Status UnpackGroup(const v1::VmTicks& ticks, const v1::VcpuSet& set);
  // Fills `payload` with the records `first` to `last`; gives their instants.
  Range Fill(uint64_t first, uint64_t last, v1::ChunkPayload& payload) const;
  void AddTicks(const Group& group, size_t from, size_t to, v1::ChunkPayload& payload) const;
  void AddSets(const std::set<VmEpoch>& wanted, bool is_first, v1::ChunkPayload& payload) const;

  const ChunkHeader& header_;
  const v1::ChunkPayload& content_;
  const size_t max_chunk_bytes_;
  const ByteSink& sink_;
  std::vector<Group> groups_;
  ChunkEncoder encoder_;
};

absl::Status Recutting::Unpack() {
  for (const v1::VmTicks& ticks : content_.ticks()) {
    // The last one of a number counts, as for ChunkDecoder.
    const auto set = std::find_if(content_.vcpu_sets().rbegin(), content_.vcpu_sets().rend(),
                                  [&](const v1::VcpuSet& each) {
                                    return each.vm() == ticks.vm() && each.epoch() == ticks.epoch();
                                  });
    if (set == content_.vcpu_sets().rend()) return absl::DataLossError("ticks without a vCPU set");
    if (absl::Status status = UnpackGroup(ticks, *set); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Recutting::UnpackGroup(const v1::VmTicks& ticks, const v1::VcpuSet& set) {
  if (!IsWritable(set)) return absl::DataLossError("a vCPU set of too many events or groups");
  Group group{.set = &set,
              .rows = {.vcpus = static_cast<size_t>(set.vcpus_size()),
                       .events = static_cast<size_t>(set.events_size()),
                       .further_events = FurtherEvents(set)}};
  absl::StatusOr<ColumnReader> columns =
      ColumnReader::Open(ticks, group.rows.vcpus, group.rows.events, group.rows.further_events);
  if (!columns.ok()) return columns.status();
  core::Sample sample;
  std::vector<core::Verdict> verdicts;
  for (size_t row = 0; row < columns->rows(); ++row) {
    columns->Next(&sample, &verdicts);
    group.rows.Append(columns->sequences()[row], sample, verdicts);
  }
  group.rows.has_base = ticks.has_base();
  groups_.push_back(std::move(group));
  return absl::OkStatus();
}

absl::Status Recutting::Write(uint64_t first, uint64_t last) {
  v1::ChunkPayload payload;
  Range range = Fill(first, last, payload);
  // Records without an instant of their own (session, profile, summary) stand at the ends or alone.
  const bool none = range.first > range.last;
  if (none || first == header_.first_sequence) range.Take(header_.first_mono_ns);
  if (none || last == header_.last_sequence) range.Take(header_.last_mono_ns);
  const absl::StatusOr<std::span<const uint8_t>> chunk =
      encoder_.Encode({.stream_id = header_.stream_id,
                       .first_sequence = first,
                       .last_sequence = last,
                       .first_mono_ns = range.first,
                       .last_mono_ns = range.last},
                      payload);
  if (chunk.ok() && chunk->size() <= max_chunk_bytes_) return sink_(*chunk);
  if (first == last) {
    if (!chunk.ok()) {
      return absl::Status(chunk.status().code(),
                          absl::StrCat("record ", first, ": ", chunk.status().message()));
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "record ", first, " does not fit into a chunk of ", max_chunk_bytes_, " bytes"));
  }
  const uint64_t middle = first + (last - first) / 2;
  if (absl::Status status = Write(first, middle); !status.ok()) return status;
  return Write(middle + 1, last);
}

Recutting::Range Recutting::Fill(uint64_t first, uint64_t last, v1::ChunkPayload& payload) const {
  Range range;
  if (content_.has_session()) *payload.mutable_session() = content_.session();
  if (content_.has_clock()) *payload.mutable_clock() = content_.clock();
  std::set<VmEpoch> sets;
  for (const Group& group : groups_) {
    const std::vector<TickRows::Head>& heads = group.rows.heads;
    const auto ticks = std::span(heads).subspan(group.rows.has_base ? 1 : 0);
    const auto from = std::ranges::lower_bound(ticks, first, {}, &TickRows::Head::sequence);
    const auto to =
        std::ranges::upper_bound(from, ticks.end(), last, {}, &TickRows::Head::sequence);
    if (from == to) continue;
    for (auto head = from; head != to; ++head) range.Take(head->wake_ns);
    AddTicks(group, static_cast<size_t>(&*from - heads.data()),
             static_cast<size_t>(&*(to - 1) - heads.data()) + 1, payload);
    sets.emplace(group.set->vm(), group.set->epoch());
  }
  for (const v1::TimelineRecord& record : content_.records()) {
    if (record.sequence() < first || record.sequence() > last) continue;
    if (const auto set = SetNeededBy(record)) sets.insert(*set);
    if (const std::optional<int64_t> instant = InstantOfRecord(record)) range.Take(*instant);
    *payload.add_records() = record;
  }
  AddSets(sets, first == header_.first_sequence, payload);
  return range;
}

void Recutting::AddTicks(const Group& group, size_t from, size_t to,
                         v1::ChunkPayload& payload) const {
  v1::VmTicks* ticks = payload.add_ticks();
  ticks->set_vm(group.set->vm());
  ticks->set_epoch(group.set->epoch());
  const TickRows rows = Slice(group.rows, from, to);
  EncodeColumns(rows, ticks);
}

// The sets of the ticks and gaps inside. The first chunk has all those that stood before the chunk,
// so that a reader who begins with it still has them first.
void Recutting::AddSets(const std::set<VmEpoch>& wanted, bool is_first,
                        v1::ChunkPayload& payload) const {
  std::set<VmEpoch> told_inside;
  for (const v1::TimelineRecord& record : content_.records()) {
    if (!record.has_vcpu_set()) continue;
    told_inside.emplace(record.vcpu_set().vm(), record.vcpu_set().epoch());
  }
  for (const v1::VcpuSet& set : content_.vcpu_sets()) {
    const VmEpoch key(set.vm(), set.epoch());
    if (wanted.contains(key) || (is_first && !told_inside.contains(key))) {
      *payload.add_vcpu_sets() = set;
    }
  }
}

// The header of what must be one whole chunk.
absl::StatusOr<ChunkHeader> HeaderOf(std::span<const uint8_t> chunk) {
  absl::StatusOr<ChunkHeader> header = DecodeChunkHeader(chunk);
  if (absl::IsOutOfRange(header.status())) return absl::DataLossError(header.status().message());
  if (!header.ok()) return header.status();
  if (chunk.size() != size_t{header->header_bytes} + header->payload_bytes) {
    return absl::DataLossError("the bytes are not one whole chunk");
  }
  if (Crc32c(chunk.subspan(header->header_bytes)) != header->payload_crc) {
    return absl::DataLossError("chunk does not match its checksum");
  }
  return header;
}

// Writes the records from `first_sequence` on again.
absl::Status Recut(const ChunkHeader& header, std::span<const uint8_t> chunk,
                   uint64_t first_sequence, size_t max_chunk_bytes, const ByteSink& sink) {
  ChunkDecoder decoder;
  absl::Status opened = decoder.Open(header, chunk.subspan(header.header_bytes));
  if (!opened.ok()) return opened;
  if (header.first_sequence > header.last_sequence) {
    return absl::ResourceExhaustedError(absl::StrCat("a chunk without records has ", chunk.size(),
                                                     " bytes, more than ", max_chunk_bytes));
  }
  Recutting recutting(header, decoder.context(), max_chunk_bytes, sink);
  if (absl::Status status = recutting.Unpack(); !status.ok()) return status;
  return recutting.Write(first_sequence, header.last_sequence);
}

}  // namespace

absl::Status RecutChunk(std::span<const uint8_t> chunk, size_t max_chunk_bytes,
                        const ByteSink& sink) {
  const absl::StatusOr<ChunkHeader> header = HeaderOf(chunk);
  if (!header.ok()) return header.status();
  if (chunk.size() <= max_chunk_bytes) return sink(chunk);
  return Recut(*header, chunk, header->first_sequence, max_chunk_bytes, sink);
}

absl::Status CutChunkBefore(uint64_t first_sequence, std::span<const uint8_t> chunk,
                            const ByteSink& sink) {
  const absl::StatusOr<ChunkHeader> header = HeaderOf(chunk);
  if (!header.ok()) return header.status();
  constexpr size_t kAny = kChunkHeaderBytes + kMaxPayloadBytes;
  return Recut(*header, chunk, first_sequence, kAny, sink);
}

absl::Status EditChunk(std::span<const uint8_t> chunk,
                       absl::FunctionRef<bool(v1::ChunkPayload& content)> edit,
                       const ByteSink& sink) {
  const absl::StatusOr<ChunkHeader> header = HeaderOf(chunk);
  if (!header.ok()) return header.status();
  ChunkDecoder decoder;
  absl::Status opened = decoder.Open(*header, chunk.subspan(header->header_bytes));
  if (!opened.ok()) return opened;
  v1::ChunkPayload payload = decoder.context();
  if (!edit(payload)) return sink(chunk);
  ChunkEncoder encoder;
  const auto encoded = encoder.Encode({.stream_id = header->stream_id,
                                       .first_sequence = header->first_sequence,
                                       .last_sequence = header->last_sequence,
                                       .first_mono_ns = header->first_mono_ns,
                                       .last_mono_ns = header->last_mono_ns},
                                      payload);
  if (!encoded.ok()) return encoded.status();
  return sink(*encoded);
}

}  // namespace vcpulse::timeline
