// What is recovered from a cut or damaged timeline: every other chunk, and the loss is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/chunk_scanner.h"
#include "monitor/timeline/tick_columns.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

bool LossTold(const ReadReport& report) {
  return !report.damages.empty() || report.lost_records > 0;
}

size_t OffsetOf(const SmallTimeline& timeline, size_t chunk) {
  size_t offset = 0;
  for (size_t c = 0; c < chunk; ++c) offset += timeline.chunks[c].size();
  return offset;
}

// A kill at any instant leaves whatever chunk was complete.
TEST(ChunkRecovery, CutAtEveryByte) {
  const SmallTimeline timeline(3);
  std::vector<size_t> ends;
  for (size_t c = 0; c < timeline.chunks.size(); ++c) ends.push_back(OffsetOf(timeline, c + 1));
  for (size_t length = 1; length < timeline.bytes.size(); ++length) {
    SCOPED_TRACE(length);
    const Seen seen = ReadBytes(std::span(timeline.bytes).first(length));
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    const auto whole = static_cast<size_t>(
        std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= length; }));
    ASSERT_EQ(seen.report->chunks, whole);
    ASSERT_EQ(seen.ticks, std::vector(timeline.ticks.begin(),
                                      timeline.ticks.begin() + static_cast<ptrdiff_t>(3 * whole)));
    ASSERT_FALSE(seen.report->ended_in_order);
    if (whole > 0 && ends[whole - 1] == length) {
      ASSERT_THAT(seen.report->damages, IsEmpty());  // nothing tells that there was more
      ASSERT_FALSE(seen.report->lost_end);
      continue;
    }
    ASSERT_THAT(seen.report->damages, SizeIs(1));
    const Damage& damage = seen.report->damages[0];
    ASSERT_TRUE(seen.report->lost_end);
    ASSERT_THAT(damage.reason, HasSubstr("the file ends inside a chunk"));
    ASSERT_EQ(damage.offset + damage.bytes, length);
    ASSERT_EQ(damage.offset, whole == 0 ? 0 : ends[whole - 1]);
    // With the header there, the loss is known to the record.
    const bool header_there = length - damage.offset >= kChunkHeaderBytes;
    const uint64_t inside = whole == 0 ? 5 : whole == 2 ? 4 : 3;
    ASSERT_EQ(seen.report->lost_records, header_there ? inside : 0);
  }
}

TEST(ChunkRecovery, EveryHeaderByteOfEveryChunkChanged) {
  const SmallTimeline timeline(4);
  for (size_t c = 0; c < timeline.chunks.size(); ++c) {
    const size_t start = OffsetOf(timeline, c);
    for (size_t i = 0; i < kChunkHeaderBytes; ++i) {
      for (const int pattern : {0xff, 0x01, 0x80, 0x10}) {
        SCOPED_TRACE(testing::Message() << "chunk " << c << " byte " << i << " ^ " << pattern);
        Bytes bytes = timeline.bytes;
        bytes[start + i] ^= static_cast<uint8_t>(pattern);
        const Seen seen = ReadBytes(bytes);
        ASSERT_TRUE(seen.report.ok()) << seen.report.status();
        ASSERT_EQ(seen.ticks, timeline.TicksWithout({c}));
        ASSERT_EQ(seen.report->chunks, 3u);
        ASSERT_TRUE(LossTold(*seen.report));
        ASSERT_THAT(seen.report->damages, SizeIs(1));
        ASSERT_EQ(seen.report->damages[0].offset, start);
        ASSERT_EQ(seen.report->damages[0].bytes, timeline.chunks[c].size());
        // Before a chunk that was read, the loss is known to the record.
        const std::array<uint64_t, 4> lost = {5, 3, 3, 0};
        ASSERT_EQ(seen.report->lost_records, lost[c]);
        ASSERT_EQ(seen.report->lost_end, c == 3);
      }
    }
  }
}

TEST(ChunkRecovery, EveryPayloadByteOfAMiddleChunkChanged) {
  const SmallTimeline timeline(4);
  const size_t start = OffsetOf(timeline, 1);
  for (size_t i = kChunkHeaderBytes; i < timeline.chunks[1].size(); ++i) {
    SCOPED_TRACE(i);
    Bytes bytes = timeline.bytes;
    bytes[start + i] ^= 0xff;
    const Seen seen = ReadBytes(bytes);
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    ASSERT_EQ(seen.ticks, timeline.TicksWithout({1}));
    ASSERT_THAT(seen.report->damages, SizeIs(1));
    ASSERT_THAT(seen.report->damages[0].reason, HasSubstr("checksum"));
    ASSERT_EQ(seen.report->damages[0].offset, start);
    ASSERT_EQ(seen.report->damages[0].bytes, timeline.chunks[1].size());
    ASSERT_EQ(seen.report->lost_records, 3u);
    ASSERT_TRUE(seen.report->ended_in_order);
  }
}

// What is whole behind the damage is the end of what there is, closed or not.
TEST(ChunkRecovery, AMiddleChunkIsNotTheEnd) {
  const SmallTimeline timeline(4);
  Bytes bytes = timeline.bytes;
  bytes[OffsetOf(timeline, 2) - 1] ^= 0xff;
  for (const size_t chunks : {4, 3, 2}) {
    const Seen seen = ReadBytes(std::span(bytes).first(OffsetOf(timeline, chunks)));
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    EXPECT_EQ(seen.report->lost_records, 3u);
    EXPECT_EQ(seen.report->ended_in_order, chunks == 4);
    EXPECT_EQ(seen.report->lost_end, chunks == 2);
  }
}

// The last chunk's loss shows in no later sequence number: its own header tells it.
TEST(ChunkRecovery, DamagedLastPayloadIsCounted) {
  const SmallTimeline timeline(3);
  Bytes bytes = timeline.bytes;
  bytes.back() ^= 1;
  const Seen seen = ReadBytes(bytes);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.TicksWithout({2}));
  EXPECT_EQ(seen.report->lost_records, 4u);  // three ticks and the Summary
  EXPECT_FALSE(seen.report->ended_in_order);
}

// A disk that was full for a while: half a chunk, then whole ones right behind it.
TEST(ChunkRecovery, ChunksBehindATornOneAreFound) {
  const SmallTimeline timeline(4);
  for (size_t kept = 0; kept < timeline.chunks[1].size(); ++kept) {
    SCOPED_TRACE(kept);
    std::vector<Bytes> parts = timeline.chunks;
    parts[1].resize(kept);
    const Seen seen = ReadBytes(Concatenate(parts));
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    ASSERT_EQ(seen.ticks, timeline.TicksWithout({1}));
    ASSERT_EQ(seen.report->lost_records, 3u);
    if (kept > 0) {
      ASSERT_THAT(seen.report->damages, SizeIs(1));
      ASSERT_EQ(seen.report->damages[0].bytes, kept);
    }
  }
}

TEST(ChunkRecovery, BytesRemovedOrInsertedAnywhere) {
  const SmallTimeline timeline(3);
  for (size_t i = 0; i < timeline.chunks[1].size(); i += 3) {
    SCOPED_TRACE(i);
    Bytes removed = timeline.bytes;
    const auto at = static_cast<ptrdiff_t>(OffsetOf(timeline, 1) + i);
    removed.erase(removed.begin() + at);
    Seen seen = ReadBytes(removed);
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    ASSERT_EQ(seen.ticks, timeline.TicksWithout({1}));
    ASSERT_TRUE(LossTold(*seen.report));

    Bytes inserted = timeline.bytes;
    inserted.insert(inserted.begin() + at, 0x89);
    seen = ReadBytes(inserted);
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    ASSERT_EQ(seen.ticks, i == 0 ? timeline.ticks : timeline.TicksWithout({1}));
    ASSERT_TRUE(LossTold(*seen.report));
  }
}

// The magic is searched in windows: one that straddles two of them must be found too.
TEST(ChunkRecovery, FindsAMagicAtEveryDistance) {
  const SmallTimeline timeline(1);
  for (size_t junk = 1; junk < 5000; junk += junk > 1000 && junk < 1040 ? 1 : 13) {
    Bytes bytes(junk, 'x');
    bytes.insert(bytes.end(), timeline.bytes.begin(), timeline.bytes.end());
    const Seen seen = ReadBytes(bytes);
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    ASSERT_EQ(seen.ticks, timeline.ticks) << junk;
    ASSERT_EQ(seen.report->damages[0].bytes, junk);
  }
}

TEST(ChunkRecovery, JunkBehindTheLastChunkIsTold) {
  const SmallTimeline timeline(2);
  Bytes bytes = timeline.bytes;
  bytes.insert(bytes.end(), 100'000, 0);
  const Seen seen = ReadBytes(bytes);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.ticks);
  ASSERT_THAT(seen.report->damages, SizeIs(1));
  EXPECT_EQ(seen.report->damages[0].offset, timeline.bytes.size());
  EXPECT_EQ(seen.report->damages[0].bytes, 100'000u);
  EXPECT_FALSE(seen.report->lost_end);
}

// A later release's chunk is no damage: its reader is needed, and the person is told.
TEST(ChunkRecovery, LaterVersionStopsInWords) {
  const SmallTimeline timeline(2);
  const auto header = DecodeChunkHeader(timeline.chunks[1]);
  ASSERT_TRUE(header.ok());
  ChunkHeader later = *header;
  later.required_features |= 1u << 9;
  const auto head = EncodeChunkHeader(later);
  Bytes bytes = timeline.bytes;
  std::copy(head.begin(), head.end(),
            bytes.begin() + static_cast<ptrdiff_t>(timeline.chunks[0].size()));
  const Seen seen = ReadBytes(bytes);
  EXPECT_TRUE(absl::IsUnimplemented(seen.report.status())) << seen.report.status();
  EXPECT_THAT(std::string(seen.report.status().message()), HasSubstr("the input: "));
}

Bytes Join(const std::array<uint8_t, kChunkHeaderBytes>& head, std::span<const uint8_t> payload) {
  Bytes chunk(head.size() + payload.size());
  std::copy(head.begin(), head.end(), chunk.begin());
  std::copy(payload.begin(), payload.end(), chunk.begin() + kChunkHeaderBytes);
  return chunk;
}

// `content` as a chunk, for contents that no writer of ours makes.
Bytes ChunkOf(const v1::ChunkPayload& content, uint64_t first, uint64_t last) {
  const std::string payload = content.SerializeAsString();
  const std::span bytes(reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
  const auto head = EncodeChunkHeader({.payload_bytes = static_cast<uint32_t>(payload.size()),
                                       .content_bytes = static_cast<uint32_t>(payload.size()),
                                       .stream_id = {7},
                                       .first_sequence = first,
                                       .last_sequence = last,
                                       .payload_crc = Crc32c(bytes)});
  return Join(head, bytes);
}

v1::ChunkPayload TwoMarkers() {
  v1::ChunkPayload content;
  for (const uint64_t sequence : {1, 2}) {
    *content.add_records() = MarkerRecord("m", 0);
    content.mutable_records(static_cast<int>(sequence) - 1)->set_sequence(sequence);
  }
  return content;
}

void ExpectRefused(const Bytes& chunk, const std::string& reason) {
  const Seen seen = ReadBytes(chunk);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_THAT(seen.sequences, IsEmpty()) << "a damaged chunk was handed over in part";
  EXPECT_EQ(seen.report->chunks, 0u);
  ASSERT_THAT(seen.report->damages, SizeIs(1));
  EXPECT_THAT(seen.report->damages[0].reason, HasSubstr(reason));
  EXPECT_EQ(seen.report->damages[0].bytes, chunk.size());
}

// Stored without compression is part of the format (and what the fuzzer uses).
TEST(ChunkRecovery, ReadsAStoredChunk) {
  const Seen seen = ReadBytes(ChunkOf(TwoMarkers(), 1, 2));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_THAT(seen.sequences, ElementsAre(1, 2));
  EXPECT_THAT(seen.report->damages, IsEmpty());
}

// A good checksum over a content that does not fit together: each is refused as a whole.
TEST(ChunkRecovery, RecordsMustBeThoseOfTheHeader) {
  ExpectRefused(ChunkOf(TwoMarkers(), 1, 3), "its records");
  ExpectRefused(ChunkOf(TwoMarkers(), 2, 2), "its records");
  ExpectRefused(ChunkOf(TwoMarkers(), 2, 1), "its records");  // none
  v1::ChunkPayload content = TwoMarkers();
  content.mutable_records(1)->set_sequence(1);
  ExpectRefused(ChunkOf(content, 1, 2), "its records");  // twice the same
  for (const uint64_t beyond : {uint64_t{3}, uint64_t{1} << 40}) {
    content.mutable_records(1)->set_sequence(beyond);
    ExpectRefused(ChunkOf(content, 1, 2), "its records");
  }
  content = TwoMarkers();
  content.mutable_records()->SwapElements(0, 1);
  ExpectRefused(ChunkOf(content, 1, 2), "its records");  // out of order
  content = TwoMarkers();
  content.mutable_records(0)->mutable_tick();
  ExpectRefused(ChunkOf(content, 1, 2), "a tick outside");
}

TEST(ChunkRecovery, TicksMustFitTheirSet) {
  v1::ChunkPayload content = TwoMarkers();
  v1::VmTicks* ticks = content.add_ticks();
  ticks->set_vm(1);
  ticks->set_epoch(1);
  ticks->add_sequence(3);
  ExpectRefused(ChunkOf(content, 1, 3), "without a vCPU set");
  v1::VcpuSet* set = content.add_vcpu_sets();
  set->set_vm(1);
  set->set_epoch(1);
  ExpectRefused(ChunkOf(content, 1, 3), "column tick");
  ticks->add_tick(0);
  ticks->add_deadline_mono_ns(0);
  ticks->add_lateness_ns(0);
  EXPECT_THAT(ReadBytes(ChunkOf(content, 1, 3)).sequences, ElementsAre(1, 2, 3));
  ticks->set_sequence(0, 2);
  ExpectRefused(ChunkOf(content, 1, 3), "its records");  // a marker's number
  set->add_vcpus();
  ExpectRefused(ChunkOf(content, 1, 3), "column read_begin_ns");
  set->set_epoch(2);
  ExpectRefused(ChunkOf(content, 1, 3), "without a vCPU set");
}

TEST(ChunkRecovery, PayloadMustBeOneMessageOfTheGivenLength) {
  SmallTimeline timeline(1);
  const auto header = DecodeChunkHeader(timeline.bytes);
  ASSERT_TRUE(header.ok());
  const auto with = [&](ChunkHeader other, const Bytes& stored) {
    other.payload_bytes = static_cast<uint32_t>(stored.size());
    other.payload_crc = Crc32c(stored);
    return Join(EncodeChunkHeader(other), stored);
  };
  const Bytes payload(timeline.bytes.begin() + kChunkHeaderBytes, timeline.bytes.end());
  ASSERT_EQ(with(*header, payload), timeline.bytes);

  ChunkHeader changed = *header;
  changed.content_bytes += 1;
  ExpectRefused(with(changed, payload), "another size than its header says");
  changed = *header;
  changed.content_bytes -= 1;
  ExpectRefused(with(changed, payload), "another size than its header says");
  // One raw block of four bytes, in a frame that does not say its size.
  const Bytes unsized = {0x28, 0xb5, 0x2f, 0xfd, 0, 0, 4 << 3 | 1, 0, 0, 1, 2, 3, 4};
  changed.content_bytes = 4;
  changed.last_sequence = changed.first_sequence;
  ExpectRefused(with(changed, unsized), "another size than its header says");
  Bytes twice = payload;
  twice.insert(twice.end(), payload.begin(), payload.end());
  ExpectRefused(with(*header, twice), "not one zstd frame");
  ExpectRefused(with(*header, Bytes(10, 0xff)), "not one zstd frame");
  changed = *header;
  changed.required_features = 0;
  changed.content_bytes = changed.payload_bytes;
  ExpectRefused(with(changed, payload), "not a ChunkPayload");
}

Bytes StoredChunk(const std::string& content, uint64_t first = 2, uint64_t last = 1) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  const auto head = EncodeChunkHeader({.payload_bytes = static_cast<uint32_t>(content.size()),
                                       .content_bytes = static_cast<uint32_t>(content.size()),
                                       .first_sequence = first,
                                       .last_sequence = last,
                                       .payload_crc = Crc32c(bytes)});
  return Join(head, bytes);
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  return out + static_cast<char>(value);
}

std::string Delimited(int field, const std::string& content) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(content.size()) + content;
}

std::string Repeat(const std::string& unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

// What takes many times its bytes in memory, inside a message that a payload holds.
struct Flood {
  const char* name;
  int field;         // of ChunkPayload
  std::string unit;  // repeated in it
  bool is_packed = false;
};

std::vector<Flood> Floods() {
  return {{"vCPUs", 2, Delimited(5, "")},
          {"event names", 2, Delimited(7, "")},
          {"further groups", 2, Delimited(11, "")},
          {"sets", 2, ""},
          {"columns of counts", 4, Delimited(14, "")},
          {"columns of groups", 4, Delimited(20, "")},
          {"columns in groups", 4, Delimited(20, Delimited(3, ""))},
          {"numbers", 4, Varint(4 << 3) + Varint(0)},
          {"packed numbers", 4, std::string(1, '\0'), true},
          {"core PMUs", 1, Delimited(18, "")},
          {"ticks", 5, Delimited(4, Delimited(6, ""))},
          {"records", 5, ""},
          {"unknown numbers", 1, Varint(100 << 3) + Varint(0)},
          {"unknown texts", 1, Delimited(100, "")},
          {"unknown messages", 4, Delimited(100, "") + Varint(101 << 3) + Varint(0)},
          {"texts of another type", 1, Delimited(8, "")}};
}

std::string ContentOf(const Flood& flood, size_t bytes) {
  if (flood.unit.empty()) return Repeat(Delimited(flood.field, ""), bytes);
  if (flood.is_packed) return Delimited(flood.field, Delimited(9, Repeat(flood.unit, bytes)));
  return Delimited(flood.field, Repeat(flood.unit, bytes));
}

std::span<const uint8_t> BytesOf(const std::string& content) {
  return {reinterpret_cast<const uint8_t*>(content.data()), content.size()};
}

// Compressed, each of these is a file of 1.5 KB, which took up to 3.5 GB and 14 s.
TEST(ChunkRecovery, FloodsAreRefusedBeforeTheyTakeMemory) {
  for (const Flood& flood : Floods()) {
    SCOPED_TRACE(flood.name);
    ExpectRefused(StoredChunk(ContentOf(flood, 6u << 20)), "more memory than a chunk");
  }
}

// proto3 has no groups, so nothing reckons what is in one.
TEST(ChunkRecovery, AGroupIsNoPayload) {
  ExpectRefused(StoredChunk(Delimited(1, Varint(111 << 3 | 3) + Varint(111 << 3 | 4))),
                "not a ChunkPayload");
}

// What is reckoned is never less than what is taken.
TEST(ChunkRecovery, MemoryIsReckonedBeforeParsing) {
  std::vector<std::string> contents = {TwoMarkers().SerializeAsString()};
  for (const Flood& flood : Floods()) {
    contents.push_back(ContentOf(flood, 1));
    contents.push_back(ContentOf(flood, 5000));
    contents.push_back(ContentOf(flood, 100'000));
  }
  for (const Bytes& chunk : SmallTimeline(2, 7, 100, 40).chunks) {
    ChunkDecoder decoder;
    ASSERT_TRUE(decoder.Open(*DecodeChunkHeader(chunk), std::span(chunk).subspan(80)).ok());
    contents.push_back(decoder.context().SerializeAsString());
  }
  for (const std::string& content : contents) {
    SCOPED_TRACE(content.substr(0, 20));
    v1::ChunkPayload payload;
    ASSERT_TRUE(payload.ParseFromString(content));
    const auto reckoned = ReckonMemory(BytesOf(content));
    ASSERT_TRUE(reckoned.ok()) << reckoned.status();
    EXPECT_GE(*reckoned, content.size() + payload.SpaceUsedLong() - sizeof(payload));
  }
}

// vCPUs whose columns are a few bytes each still have a state and samples.
TEST(ChunkRecovery, WhatDecodingTakesIsReckonedToo) {
  v1::ChunkPayload content;
  for (uint32_t vm = 1; vm <= 12; ++vm) {
    TickRows rows{.vcpus = 5000, .events = 0};
    core::Sample sample;
    sample.vcpus.resize(rows.vcpus);
    rows.Append(vm, sample, std::vector<core::Verdict>(rows.vcpus));
    v1::VcpuSet* set = content.add_vcpu_sets();
    v1::VmTicks* ticks = content.add_ticks();
    set->set_vm(vm);
    ticks->set_vm(vm);
    for (size_t v = 0; v < rows.vcpus; ++v) set->add_vcpus();
    EncodeColumns(rows, ticks);
  }
  ASSERT_TRUE(ReckonMemory(BytesOf(content.SerializeAsString())).ok());
  ExpectRefused(ChunkOf(content, 1, 12), "more memory than a chunk");
}

// Kept memory adds up no more than that of one chunk: columns that are long in turn.
TEST(ChunkRecovery, DecoderForgetsWhatWasLong) {
  for (const size_t numbers : {1'000'000, 700'000}) {
    ChunkDecoder decoder;
    for (const int field : {5, 6, 7, 8, 9, 10, 11, 12, 13}) {
      const Bytes chunk = StoredChunk(Delimited(4, Delimited(field, std::string(numbers, '\0'))));
      EXPECT_FALSE(decoder.Open(*DecodeChunkHeader(chunk), std::span(chunk).subspan(80)).ok());
      EXPECT_LE(decoder.context().SpaceUsedLong(), kMaxChunkMemory);
    }
  }
}

// Counts what is read of it.
class CountedSource final : public ByteSource {
 public:
  explicit CountedSource(std::span<const uint8_t> bytes) : source_(NewMemorySource(bytes)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    asked_ += out.size();
    return source_->ReadAt(offset, out);
  }
  void Forget(uint64_t offset) override { source_->Forget(offset); }

  uint64_t asked() const { return asked_; }  // with what is not there

 private:
  std::unique_ptr<ByteSource> source_;
  uint64_t asked_ = 0;
};

// Headers whose payloads overlap, or lie beyond the end: 5 MB of them took 23 s.
TEST(ChunkRecovery, HeadersThatClaimTheSameBytesAreReadInLinearTime) {
  constexpr uint64_t kHeaders = 62'500;
  for (const bool beyond : {false, true}) {
    SCOPED_TRACE(beyond);
    const Bytes file = OverlappingHeaders(kHeaders, kMaxPayloadBytes, beyond);
    CountedSource source(file);
    std::vector<Damage> damages;
    ChunkScanner scanner(&source, &damages);
    uint64_t headers = 0;
    for (auto found = scanner.Next(); found.ok() && found->has_value(); found = scanner.Next()) {
      ++headers;
      const auto payload = scanner.ReadPayload(**found);
      ASSERT_TRUE(payload.ok());
      EXPECT_FALSE(payload->has_value());
    }
    EXPECT_GT(headers, kHeaders - 3);
    EXPECT_FALSE(damages.empty());
    EXPECT_LT(source.asked(), 4 * uint64_t{kMaxPayloadBytes} + 40 * file.size());
  }
}
}  // namespace
}  // namespace vcpulse::timeline
