#include "monitor/timeline/chunk_decoder.h"

#include <zstd.h>

#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace vcpulse::timeline {
namespace {

constexpr uint32_t kRecord = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kNobody = kRecord - 1;
// Messages of one kind in a chunk. An empty message of two bytes takes hundreds in memory, so they
// are counted before any is made.
constexpr int kMaxMessages = 1 << 17;

// Whether the fields of a ChunkPayload are few enough to be parsed.
bool IsReasonable(std::span<const uint8_t> content) {
  google::protobuf::io::CodedInputStream in(content.data(), static_cast<int>(content.size()));
  int messages = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (++messages > kMaxMessages) return false;
    if (!google::protobuf::internal::WireFormatLite::SkipField(&in, tag)) return false;
  }
  return true;
}

}  // namespace

absl::Status ChunkDecoder::Open(const ChunkHeader& header, std::span<const uint8_t> payload) {
  groups_.clear();
  owners_.clear();
  next_owner_ = 0;
  next_record_ = 0;
  lent_ = nullptr;
  first_sequence_ = header.first_sequence;
  if (absl::Status status = Decompress(header, payload); !status.ok()) return status;
  if (absl::Status status = OpenGroups(); !status.ok()) return status;
  return OrderRecords(header);
}

absl::Status ChunkDecoder::Decompress(const ChunkHeader& header, std::span<const uint8_t> payload) {
  std::span<const uint8_t> content = payload;
  if ((header.required_features & kFeatureZstd) != 0) {
    if (ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) {
      return absl::DataLossError("the payload is not one zstd frame");
    }
    plain_.resize(header.content_bytes);
    const size_t length =
        ZSTD_decompress(plain_.data(), plain_.size(), payload.data(), payload.size());
    if (ZSTD_isError(length) != 0) {
      return absl::DataLossError(absl::StrCat("zstd: ", ZSTD_getErrorName(length)));
    }
    if (length != header.content_bytes) {
      return absl::DataLossError("the content is shorter than its header says");
    }
    content = plain_;
  }
  if (!IsReasonable(content) ||
      !content_.ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    return absl::DataLossError("the content is no ChunkPayload message");
  }
  return absl::OkStatus();
}

absl::Status ChunkDecoder::OpenGroups() {
  std::map<std::pair<uint32_t, uint32_t>, const v1::VcpuSet*> sets;
  for (const v1::VcpuSet& set : content_.vcpu_sets()) sets[{set.vm(), set.epoch()}] = &set;
  for (const v1::VmTicks& ticks : content_.ticks()) {
    const auto set = sets.find({ticks.vm(), ticks.epoch()});
    if (set == sets.end()) {
      return absl::DataLossError(absl::StrCat("ticks of VM ", ticks.vm(), " epoch ", ticks.epoch(),
                                              " without a vCPU set"));
    }
    absl::StatusOr<ColumnReader> columns = ColumnReader::Open(
        ticks, static_cast<size_t>(set->second->vcpus_size()),
        static_cast<size_t>(set->second->events_size()), FurtherEvents(*set->second));
    if (!columns.ok()) return columns.status();
    groups_.push_back({.vm = ticks.vm(),
                       .epoch = ticks.epoch(),
                       .has_base = ticks.has_base(),
                       .columns = *std::move(columns)});
  }
  return absl::OkStatus();
}

// Checks that ticks and records are together exactly the sequence numbers of the header, and notes
// who has which.
absl::Status ChunkDecoder::OrderRecords(const ChunkHeader& header) {
  const bool any = header.first_sequence <= header.last_sequence;
  // Not more than content_bytes, see DecodeChunkHeader.
  owners_.assign(any ? header.last_sequence - header.first_sequence + 1 : 0, kNobody);
  size_t owned = 0;
  const auto own = [&](uint64_t sequence, uint64_t& before, uint32_t owner) {
    const uint64_t i = sequence - header.first_sequence;
    if (i >= owners_.size() || owners_[i] != kNobody || sequence <= before) return false;
    owners_[i] = owner;
    before = sequence;
    ++owned;
    return true;
  };
  const auto bad = [] {
    return absl::DataLossError("its records are not those that its header says");
  };

  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto& sequences = groups_[g].columns.sequences();
    uint64_t before = 0;
    for (size_t t = groups_[g].has_base ? 1 : 0; t < sequences.size(); ++t) {
      if (!own(sequences[t], before, static_cast<uint32_t>(g))) return bad();
    }
  }
  uint64_t before = 0;
  for (const v1::TimelineRecord& record : content_.records()) {
    if (record.has_tick()) return absl::DataLossError("a tick outside of the columns");
    if (!own(record.sequence(), before, kRecord)) return bad();
  }
  return owned == owners_.size() ? absl::OkStatus() : bad();
}

const Entry* ChunkDecoder::Next() {
  while (next_owner_ < owners_.size()) {
    GiveTickBack();
    entry_.sequence = first_sequence_ + next_owner_;
    const uint32_t owner = owners_[next_owner_++];
    if (owner != kRecord) {
      TakeTick(groups_[owner]);
      return &entry_;
    }
    if (TakeRecord(*content_.mutable_records(next_record_++))) return &entry_;
  }
  return nullptr;
}

void ChunkDecoder::TakeTick(Group& group) {
  if (!std::holds_alternative<TickEntry>(entry_.record)) entry_.record.emplace<TickEntry>();
  auto& tick = std::get<TickEntry>(entry_.record);
  tick.vm = group.vm;
  tick.epoch = group.epoch;
  if (group.has_base && !group.has_previous) {
    group.columns.Next(&group.previous, &tick.verdicts);
    group.has_previous = true;
  }
  group.columns.Next(&tick.sample, &tick.verdicts);
  tick.previous = group.has_previous ? &group.previous : nullptr;
  lent_ = &group;
}

// The sample that was handed over is the previous one of its group's next tick.
void ChunkDecoder::GiveTickBack() {
  if (lent_ == nullptr) return;
  std::swap(lent_->previous, std::get<TickEntry>(entry_.record).sample);
  lent_->has_previous = true;
  lent_ = nullptr;
}

bool ChunkDecoder::TakeRecord(v1::TimelineRecord& record) {
  switch (record.record_case()) {
    case v1::TimelineRecord::kSession:
      entry_.record = std::move(*record.mutable_session());
      return true;
    case v1::TimelineRecord::kVcpuSet:
      entry_.record = std::move(*record.mutable_vcpu_set());
      return true;
    case v1::TimelineRecord::kMarker:
      entry_.record = std::move(*record.mutable_marker());
      return true;
    case v1::TimelineRecord::kGap:
      entry_.record = std::move(*record.mutable_gap());
      return true;
    case v1::TimelineRecord::kLifeCycle:
      entry_.record = std::move(*record.mutable_life_cycle());
      return true;
    case v1::TimelineRecord::kClockSnapshot:
      entry_.record = std::move(*record.mutable_clock_snapshot());
      return true;
    case v1::TimelineRecord::kSummary:
      entry_.record = std::move(*record.mutable_summary());
      return true;
    case v1::TimelineRecord::kProfile:
      entry_.record = std::move(*record.mutable_profile());
      return true;
    case v1::TimelineRecord::kTick:           // refused by OrderRecords
    case v1::TimelineRecord::RECORD_NOT_SET:  // of a later release
      return false;
  }
  return false;
}

}  // namespace vcpulse::timeline
