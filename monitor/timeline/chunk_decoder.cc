#include "monitor/timeline/chunk_decoder.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/message.h"
#include "google/protobuf/wire_format_lite.h"

namespace vcpulse::timeline {
namespace {

constexpr uint32_t kRecord = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kNobody = kRecord - 1;

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

absl::Status NoPayload() {
  return absl::DataLossError("the content is not a ChunkPayload message");
}

absl::Status TooMuchMemory() {
  return absl::DataLossError(absl::StrCat("its records take more memory than a chunk may (",
                                          kMaxChunkMemory >> 20, " MiB)"));
}

// What malloc adds to each object, and its place in a list that grows by doubling.
constexpr size_t kObjectBytes = 16 + 2 * sizeof(void*);
constexpr size_t kTextBytes = sizeof(std::string) + kObjectBytes + kObjectBytes;
// A field that the schema does not know is kept: as a number or a text in a list.
constexpr size_t kUnknownBytes = 2 * kObjectBytes;

// Bytes of an empty message of each kind of timeline.proto, by Descriptor::index.
std::vector<size_t> MessageBytes() {
  const google::protobuf::FileDescriptor& file = *v1::ChunkPayload::descriptor()->file();
  std::vector<size_t> bytes;
  for (int i = 0; i < file.message_type_count(); ++i) {
    const auto* empty =
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(file.message_type(i));
    bytes.push_back(empty->SpaceUsedLong() + kObjectBytes);
  }
  return bytes;
}

size_t ScalarBytes(const FieldDescriptor& field) {
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  switch (WireFormatLite::FieldTypeToCppType(type)) {
    case WireFormatLite::CPPTYPE_BOOL:
      return sizeof(bool);
    case WireFormatLite::CPPTYPE_INT32:
    case WireFormatLite::CPPTYPE_UINT32:
    case WireFormatLite::CPPTYPE_FLOAT:
    case WireFormatLite::CPPTYPE_ENUM:
      return sizeof(uint32_t);
    default:
      return sizeof(uint64_t);
  }
}

// Each varint ends with the byte whose highest bit is not set. Eight at a time, each in a byte of
// its own that 255 of them fit into: columns are most of a chunk, and not every CPU that this is
// built for counts bits.
size_t CountVarints(std::span<const uint8_t> bytes) {
  constexpr uint64_t kLowestBits = 0x0101010101010101;
  constexpr uint64_t kEveryOtherByte = 0x00ff00ff00ff00ff;
  constexpr size_t kMostWords = 255;
  size_t count = 0;
  while (bytes.size() >= sizeof(uint64_t)) {
    const size_t words = std::min(bytes.size() / sizeof(uint64_t), kMostWords);
    uint64_t ends = 0;
    for (size_t i = 0; i < words; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i * sizeof(word), sizeof(word));
      ends += (~word >> 7) & kLowestBits;
    }
    const uint64_t pairs = (ends & kEveryOtherByte) + (ends >> 8 & kEveryOtherByte);
    count += static_cast<size_t>(pairs * 0x0001000100010001 >> 48);
    bytes = bytes.subspan(words * sizeof(uint64_t));
  }
  return count + static_cast<size_t>(
                     std::ranges::count_if(bytes, [](uint8_t byte) { return byte < 0x80; }));
}

// Walks through a serialised message as its schema says and adds up what it takes once parsed. The
// schema is not recursive, so this is as deep as the schema.
class MemoryReckoning {
 public:
  explicit MemoryReckoning(std::span<const uint8_t> content)
      : in_(content.data(), static_cast<int>(content.size())), bytes_(content.size()) {}

  // False where it is no message, or bytes() is beyond kMaxChunkMemory.
  bool Add(const Descriptor& type);
  size_t bytes() const { return bytes_; }

 private:
  bool AddField(const FieldDescriptor* field, uint32_t tag);
  bool AddDelimited(const FieldDescriptor* field, size_t length);

  CodedInputStream in_;
  size_t bytes_;
};

bool MemoryReckoning::Add(const Descriptor& type) {
  static const std::vector<size_t> empty = MessageBytes();
  bytes_ += empty[static_cast<size_t>(type.index())];
  while (const uint32_t tag = in_.ReadTag()) {
    const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (!AddField(field, tag) || bytes_ > kMaxChunkMemory) return false;
  }
  return in_.ConsumedEntireMessage();
}

// `field` is null where the schema does not know it.
bool MemoryReckoning::AddField(const FieldDescriptor* field, uint32_t tag) {
  const auto wire_type = WireFormatLite::GetTagWireType(tag);
  const bool is_delimited = wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  if (field != nullptr && !(is_delimited && field->is_packable())) {
    const auto type = static_cast<WireFormatLite::FieldType>(field->type());
    if (WireFormatLite::WireTypeForFieldType(type) != wire_type) field = nullptr;
  }
  if (is_delimited) {
    uint32_t length = 0;
    return in_.ReadVarint32(&length) && AddDelimited(field, length);
  }
  // No schema of proto3 has groups.
  if (wire_type == WireFormatLite::WIRETYPE_START_GROUP) return false;
  if (field == nullptr) bytes_ += kUnknownBytes;
  if (field != nullptr && field->is_repeated()) bytes_ += 2 * ScalarBytes(*field);
  return WireFormatLite::SkipField(&in_, tag);
}

bool MemoryReckoning::AddDelimited(const FieldDescriptor* field, size_t length) {
  const void* data = nullptr;
  int there = 0;
  in_.GetDirectBufferPointerInline(&data, &there);
  if (length > static_cast<size_t>(there)) return false;
  const auto skipped = static_cast<int>(length);
  if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const CodedInputStream::Limit limit = in_.PushLimit(skipped);
    if (!Add(*field->message_type())) return false;
    in_.PopLimit(limit);
    return true;
  }
  if (field != nullptr && field->is_packable()) {
    const std::span bytes(static_cast<const uint8_t*>(data), length);
    const auto type = static_cast<WireFormatLite::FieldType>(field->type());
    // Fixed-size elements take no more than twice their bytes.
    const bool varints =
        WireFormatLite::WireTypeForFieldType(type) == WireFormatLite::WIRETYPE_VARINT;
    bytes_ += 2 * (varints ? CountVarints(bytes) * ScalarBytes(*field) : length);
  } else {
    bytes_ += (field == nullptr ? kUnknownBytes : 0) + kTextBytes + length;
  }
  return in_.Skip(skipped);
}

}  // namespace

absl::StatusOr<size_t> ReckonMemory(std::span<const uint8_t> content) {
  MemoryReckoning reckoning(content);
  const bool is_message = reckoning.Add(*v1::ChunkPayload::descriptor());
  if (reckoning.bytes() > kMaxChunkMemory) return TooMuchMemory();
  if (!is_message) return NoPayload();
  return reckoning.bytes();
}

absl::Status CheckDecodingMemory(const v1::ChunkPayload& payload, size_t parsed_bytes) {
  size_t bytes = parsed_bytes;
  for (const v1::VmTicks& ticks : payload.ticks()) bytes += ColumnReader::MemoryBytes(ticks);
  return bytes > kMaxChunkMemory ? TooMuchMemory() : absl::OkStatus();
}

absl::Status CheckDeclaredSize(const ChunkHeader& header, std::span<const uint8_t> payload) {
  if ((header.required_features & kFeatureZstd) == 0) return absl::OkStatus();
  if (ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) {
    return absl::DataLossError("the payload is not one zstd frame");
  }
  // Unknown and error are the two largest numbers.
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != header.content_bytes) {
    return absl::DataLossError("the content has another size than its header says");
  }
  return absl::OkStatus();
}

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
    if (absl::Status status = CheckDeclaredSize(header, payload); !status.ok()) return status;
    if (plain_.capacity() / 2 > header.content_bytes) plain_ = {};
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
  const absl::StatusOr<size_t> memory_bytes = ReckonMemory(content);
  if (!memory_bytes.ok()) return memory_bytes.status();
  // A message keeps the memory of each chunk that was parsed into it, and uses what fits.
  if (kept_bytes_ + *memory_bytes > kMaxChunkMemory) kept_bytes_ = content_.SpaceUsedLong();
  if (kept_bytes_ + *memory_bytes > kMaxChunkMemory) {
    content_ = v1::ChunkPayload();
    kept_bytes_ = 0;
  }
  kept_bytes_ += *memory_bytes;
  if (!content_.ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    return NoPayload();
  }
  return CheckDecodingMemory(content_, *memory_bytes);
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
  const uint64_t wanted = any ? header.last_sequence - header.first_sequence + 1 : 0;
  const auto bad = [] {
    return absl::DataLossError("its records are not those that its header says");
  };
  auto records = static_cast<uint64_t>(content_.records_size());
  for (const Group& group : groups_) records += group.columns.rows() - (group.has_base ? 1 : 0);
  if (records != wanted) return bad();
  owners_.assign(wanted, kNobody);
  const auto own = [&](uint64_t sequence, uint64_t& before, uint32_t owner) {
    if (sequence < header.first_sequence || sequence > header.last_sequence) return false;
    uint32_t& owned_by = owners_[sequence - header.first_sequence];
    if (owned_by != kNobody || sequence <= before) return false;
    owned_by = owner;
    before = sequence;
    return true;
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
  return absl::OkStatus();  // so many owners, none of them twice: all of them
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
    case v1::TimelineRecord::kStatistics:
      entry_.record = std::move(*record.mutable_statistics());
      return true;
    case v1::TimelineRecord::kHotAddresses:
      entry_.record = std::move(*record.mutable_hot_addresses());
      return true;
    case v1::TimelineRecord::kCompetitors:
      entry_.record = std::move(*record.mutable_competitors());
      return true;
    case v1::TimelineRecord::kTick:           // refused by OrderRecords
    case v1::TimelineRecord::RECORD_NOT_SET:  // of a later release
      break;
  }
  return false;
}

}  // namespace vcpulse::timeline
