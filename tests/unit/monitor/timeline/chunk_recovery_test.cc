// What is recovered from a cut or damaged timeline: every other chunk, and the loss is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "monitor/timeline/chunk_header.h"
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
      continue;
    }
    ASSERT_THAT(seen.report->damages, SizeIs(1));
    const Damage& damage = seen.report->damages[0];
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
        // Between chunks that were read, the loss is known to the record.
        const bool between = c == 1 || c == 2;
        ASSERT_EQ(seen.report->lost_records, between ? 3 : 0);
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
  ExpectRefused(with(changed, payload), "shorter than its header says");
  changed = *header;
  changed.content_bytes -= 1;
  ExpectRefused(with(changed, payload), "zstd");
  Bytes twice = payload;
  twice.insert(twice.end(), payload.begin(), payload.end());
  ExpectRefused(with(*header, twice), "not one zstd frame");
  ExpectRefused(with(*header, Bytes(10, 0xff)), "not one zstd frame");
  changed = *header;
  changed.required_features = 0;
  changed.content_bytes = changed.payload_bytes;
  ExpectRefused(with(changed, payload), "no ChunkPayload");
}

// An empty message of two bytes takes hundreds of bytes in memory: a chunk of nothing else would
// take gigabytes.
TEST(ChunkRecovery, FloodOfEmptyMessagesIsRefused) {
  Bytes flood;
  for (int i = 0; i < 200'000; ++i) flood.insert(flood.end(), {4 << 3 | 2, 0});  // empty VmTicks
  const auto head = EncodeChunkHeader({.payload_bytes = static_cast<uint32_t>(flood.size()),
                                       .content_bytes = static_cast<uint32_t>(flood.size()),
                                       .first_sequence = 1,
                                       .payload_crc = Crc32c(flood)});
  ExpectRefused(Join(head, flood), "no ChunkPayload");
}

}  // namespace
}  // namespace vcpulse::timeline
