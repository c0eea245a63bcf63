#include "monitor/timeline/recut.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_encoder.h"
#include "monitor/timeline/chunk_scanner.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::HasSubstr;

// Every chunk of a file again, each at most so long.
std::vector<Bytes> RecutAll(const std::vector<Bytes>& chunks, size_t max_bytes) {
  std::vector<Bytes> again;
  for (const Bytes& chunk : chunks) {
    const absl::Status status = RecutChunk(chunk, max_bytes, CollectInto(&again));
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const Bytes& chunk : again) EXPECT_LE(chunk.size(), max_bytes);
  return again;
}

std::vector<Bytes> ChunksOf(const Bytes& file) {
  std::vector<Damage> damages;
  const auto source = NewMemorySource(file);
  ChunkScanner scanner(source.get(), &damages);
  std::vector<Bytes> chunks;
  while (true) {
    const auto found = scanner.Next();
    EXPECT_TRUE(found.ok());
    if (!found.ok() || !found->has_value()) break;
    chunks.emplace_back(file.begin() + static_cast<ptrdiff_t>((*found)->offset),
                        file.begin() + static_cast<ptrdiff_t>((*found)->end()));
    EXPECT_TRUE(*scanner.Skip(**found));
  }
  return chunks;
}

// The snapshot of a chunk is in each that is made of it: told again, it says nothing new.
std::vector<std::string> WithoutRepeatedClocks(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  std::string clock;
  for (const std::string& line : lines) {
    if (line.starts_with("0 ClockSnapshot")) {
      if (line == clock) continue;
      clock = line;
    }
    out.push_back(line);
  }
  return out;
}

void ExpectSame(const std::vector<Bytes>& recut, const std::vector<Bytes>& original) {
  const Seen seen = ReadBytes(Concatenate(recut));
  const Seen wanted = ReadBytes(Concatenate(original));
  ASSERT_TRUE(seen.report.ok() && wanted.report.ok());
  EXPECT_EQ(seen.ticks, wanted.ticks);  // `previous` too
  EXPECT_EQ(seen.sequences, wanted.sequences);
  EXPECT_EQ(WithoutRepeatedClocks(seen.others), WithoutRepeatedClocks(wanted.others));
  EXPECT_EQ(seen.report->lost_records, wanted.report->lost_records);
  EXPECT_EQ(seen.report->damages.size(), wanted.report->damages.size());
  EXPECT_EQ(seen.report->ended_in_order, wanted.report->ended_in_order);
}

// Two VMs, further groups, markers between the ticks, an epoch that ends and one that begins, all
// in three long chunks.
std::vector<Bytes> LongChunks() {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter({3}, CollectInto(&chunks));
  fakes::SyntheticVm one({fakes::Load::kBusy, fakes::Load::kShared}, 10'000'000, 1);
  fakes::SyntheticVm two({fakes::Load::kIdle}, 10'000'000, 2);
  fakes::SyntheticVm other({fakes::Load::kBusy}, 10'000'000, 3);
  const auto at = [](const core::Sample& sample) { return sample.wake_ns; };
  writer->Add(SessionRecord("h"), 1);
  v1::TimelineRecord profile;
  profile.mutable_profile()->set_name("p");
  writer->Add(profile, 1);
  writer->Add(SetRecord(one.VcpuSet(1, 1)), 1);
  v1::VcpuSet set = two.VcpuSet(2, 1);
  *set.add_further_groups()->mutable_events() = set.events();
  writer->Add(SetRecord(set), 1);
  for (int chunk = 0; chunk < 3; ++chunk) {
    for (uint64_t t = 1; t <= 60; ++t) {
      core::Sample sample = two.Next();
      sample.further.resize(1);
      sample.further[0].counts[0] = t * t;
      sample.further[0].time_enabled_ns = t;
      writer->AddTick(2, 1, sample, two.Verdicts());
      if (t % 9 == 0) writer->Add(MarkerRecord("phase", at(sample)), at(sample));
      if (chunk < 2) writer->AddTick(1, 1, one.Next(), one.Verdicts());
      if (chunk == 1 && t == 50) writer->Add(SetRecord(other.VcpuSet(1, 2)), at(sample));
      if (chunk == 2 && t == 59) {
        v1::TimelineRecord gap;
        gap.mutable_gap()->set_vm(1);
        gap.mutable_gap()->set_epoch(2);
        gap.mutable_gap()->set_mono_ns(at(sample));
        writer->Add(gap, at(sample));
      }
      if (chunk == 1 && t > 50) writer->AddTick(1, 2, other.Next(), other.Verdicts());
    }
    if (chunk == 1) writer->EndEpoch(1, 1);
    if (chunk == 2) {
      v1::TimelineRecord summary;
      summary.mutable_summary()->set_ticks(180);
      writer->Add(summary, 90'000'000'000'000);  // after the last tick
    }
    EXPECT_TRUE(writer->Flush(ClockAt(chunk + 1)).ok());
  }
  EXPECT_EQ(chunks.size(), 3u);
  return chunks;
}

TEST(Recut, SameEntriesWhateverTheLength) {
  const std::vector<Bytes> original = LongChunks();
  size_t longest = 0;
  for (const Bytes& chunk : original) longest = std::max(longest, chunk.size());
  size_t before = original.size();
  for (const size_t max_bytes : {longest, longest - 1, longest / 2, longest / 4, size_t{1000}}) {
    SCOPED_TRACE(max_bytes);
    const std::vector<Bytes> again = RecutAll(original, max_bytes);
    ExpectSame(again, original);
    EXPECT_GE(again.size(), before);
    before = again.size();
  }
  EXPECT_GT(before, 20u);
  EXPECT_EQ(RecutAll(original, longest), original);
}

// Each of them can be read alone, as any chunk; a tick knows the sample that it follows.
TEST(Recut, EachChunkIsReadableAlone) {
  const std::vector<Bytes> original = LongChunks();
  const std::vector<SeenTick> ticks = ReadBytes(Concatenate(original)).ticks;
  size_t next = 0;
  size_t gaps = 0;
  for (const Bytes& chunk : RecutAll(original, 1000)) {
    const Seen seen = ReadBytes(chunk);
    ASSERT_TRUE(seen.report.ok());
    const bool has_gap = std::ranges::any_of(seen.others, [](const std::string& line) {
      return line.find(" Gap vm: 1 epoch: 2") != std::string::npos;
    });
    if (has_gap) {
      ++gaps;
      EXPECT_THAT(seen.others, testing::Contains(HasSubstr("0 VcpuSet vm: 1 epoch: 2")));
    }
    for (const SeenTick& tick : seen.ticks) EXPECT_EQ(tick, ticks.at(next++));
    EXPECT_THAT(seen.others, testing::Contains(HasSubstr("Session host_name: \"h\"")));
    EXPECT_THAT(seen.others, testing::Contains(testing::StartsWith("0 ClockSnapshot")));
  }
  EXPECT_EQ(next, ticks.size());
  EXPECT_EQ(gaps, 1u);
}

// Half of the file alone, as who begins in its middle reads it.
TEST(Recut, ContextComesAsEarlyAsBefore) {
  const std::vector<Bytes> original = LongChunks();
  for (const Bytes& chunk : original) ExpectSame(RecutAll({chunk}, 1000), {chunk});
}

// A reader that looks for a time finds the same records.
TEST(Recut, InstantsAreThoseOfTheRecords) {
  const std::vector<Bytes> original = LongChunks();
  const Bytes again = Concatenate(RecutAll(original, 700));
  const std::vector<SeenTick> ticks = ReadBytes(Concatenate(original)).ticks;
  for (size_t i = 0; i < ticks.size(); i += 17) {
    const TimeRange range{.from_mono_ns = ticks[i].sample.wake_ns,
                          .to_mono_ns = ticks[i].sample.wake_ns + 25'000'000};
    EXPECT_EQ(ReadBytes(again, range).ticks, ReadBytes(Concatenate(original), range).ticks);
  }
  // Records without an instant of their own keep the whole range that they were written with.
  const std::vector<Bytes> pieces = ChunksOf(again);
  EXPECT_EQ(DecodeChunkHeader(pieces.front())->first_mono_ns, 1);
  EXPECT_EQ(DecodeChunkHeader(original.front())->first_mono_ns, 1);
  EXPECT_EQ(DecodeChunkHeader(pieces.back())->last_mono_ns,
            DecodeChunkHeader(original.back())->last_mono_ns);
  std::set<uint64_t> ends;  // of the original chunks: the first and last record of each
  for (const Bytes& chunk : original) {
    ends.insert(DecodeChunkHeader(chunk)->first_sequence);
    ends.insert(DecodeChunkHeader(chunk)->last_sequence);
  }
  size_t inner = 0;
  size_t alone = 0;  // one tick in a piece of its own
  for (const Bytes& chunk : pieces) {
    const auto header = DecodeChunkHeader(chunk);
    ASSERT_TRUE(header.ok());
    EXPECT_LE(header->first_mono_ns, header->last_mono_ns);
    const Seen seen = ReadBytes(chunk);
    const std::vector<SeenTick>& within = seen.ticks;
    if (within.size() != seen.sequences.size()) continue;  // a marker or a set is there too
    const bool is_end =
        ends.contains(header->first_sequence) || ends.contains(header->last_sequence);
    if (is_end || within.empty()) continue;
    ++inner;
    alone += within.size() == 1 && header->first_sequence == header->last_sequence ? 1 : 0;
    const auto by_wake = [](const SeenTick& tick) { return tick.sample.wake_ns; };
    EXPECT_EQ(header->first_mono_ns, by_wake(*std::ranges::min_element(within, {}, by_wake)));
    EXPECT_EQ(header->last_mono_ns, by_wake(*std::ranges::max_element(within, {}, by_wake)));
  }
  EXPECT_GT(inner, 5u);
  EXPECT_GT(alone, 0u);
}

TEST(Recut, TimelinesOfEveryRelease) {
  for (const char* name : {"/timeline-v1.vpt", "/timeline-v2.vpt"}) {
    std::ifstream in(std::string(VCPULSE_TEST_DATA) + name, std::ios::binary);
    const Bytes file((std::istreambuf_iterator<char>(in)), {});
    const std::vector<Bytes> original = ChunksOf(file);
    ASSERT_GT(original.size(), 1u);
    size_t longest = 0;
    for (const Bytes& chunk : original) longest = std::max(longest, chunk.size());
    // Somewhat below it: another release of zstd may make it a little shorter.
    const std::vector<Bytes> again = RecutAll(original, longest * 15 / 16);
    EXPECT_GT(again.size(), original.size());
    ExpectSame(again, original);
  }
}

// What this release does not know goes along.
TEST(Recut, RecordsOfALaterReleaseAreKept) {
  v1::ChunkPayload payload;
  for (uint64_t s = 5; s <= 40; ++s) {
    v1::TimelineRecord* record = payload.add_records();
    record->set_sequence(s);
    if (s % 2 == 0) record->mutable_marker()->set_name("m" + std::to_string(s * 7919 % 1000));
    if (s % 2 == 1) {
      record->GetReflection()->MutableUnknownFields(record)->AddLengthDelimited(
          900, "later " + std::to_string(s * 7919 % 1000));
    }
  }
  ChunkEncoder encoder;
  const auto chunk =
      encoder.Encode({.stream_id = {1}, .first_sequence = 5, .last_sequence = 40}, payload);
  ASSERT_TRUE(chunk.ok());
  const std::vector<Bytes> original = {Bytes(chunk->begin(), chunk->end())};
  const std::vector<Bytes> again = RecutAll(original, original[0].size() * 2 / 3);
  EXPECT_GT(again.size(), 1u);
  ExpectSame(again, original);
  for (const uint64_t sequence : ReadBytes(original[0]).sequences) {
    EXPECT_EQ(sequence % 2, 0u) << "not one of this release's records";
  }
  EXPECT_EQ(DecodeChunkHeader(again.back())->last_sequence, 40u);
  EXPECT_EQ(DecodeChunkHeader(again.front())->first_sequence, 5u);
}

TEST(Recut, RecordThatIsTooLongIsNamed) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter({3}, CollectInto(&chunks));
  for (int i = 0; i < 6; ++i) writer->Add(MarkerRecord("m", 1), 1);
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 4000; ++i)
    noise += static_cast<char>(' ' + (x = x * 1664525 + 1013904223) / 65536 % 90);
  writer->Add(MarkerRecord(noise, 1), 1);
  ASSERT_TRUE(writer->Flush(ClockAt(1)).ok());
  std::vector<Bytes> again;
  const absl::Status status = RecutChunk(chunks.at(0), 1000, CollectInto(&again));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "record 7 does not fit into a chunk of 1000 bytes");
}

// Gaps and hot addresses name an epoch: each chunk that has one has its set, without a tick too.
TEST(Recut, ARecordOfAnEpochHasItsSet) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter({3}, CollectInto(&chunks));
  writer->Add(SetRecord(fakes::SyntheticVm({fakes::Load::kBusy}, 10'000'000, 1).VcpuSet(1, 1)), 1);
  ASSERT_TRUE(writer->Flush(ClockAt(1)).ok());
  for (int i = 0; i < 40; ++i) writer->Add(MarkerRecord("m" + std::to_string(i * 7919), 1), 1);
  v1::TimelineRecord hot;
  hot.mutable_hot_addresses()->set_vm(1);
  hot.mutable_hot_addresses()->set_epoch(1);
  hot.mutable_hot_addresses()->set_mono_ns(9);
  writer->Add(hot, 9);
  ASSERT_TRUE(writer->Flush(ClockAt(10)).ok());
  ASSERT_EQ(chunks.size(), 2u);
  const auto has_set = testing::Contains(HasSubstr("VcpuSet vm: 1 epoch: 1"));
  EXPECT_THAT(ReadBytes(chunks[1]).others, has_set);
  const std::vector<Bytes> pieces = RecutAll({chunks[1]}, chunks[1].size() * 3 / 4);
  ASSERT_GT(pieces.size(), 1u);
  EXPECT_THAT(ReadBytes(pieces.back()).others,
              testing::AllOf(has_set, testing::Contains(HasSubstr("HotAddresses"))));
  EXPECT_EQ(DecodeChunkHeader(pieces.back())->last_mono_ns, 9);
}

// As merge does with a chunk whose beginning another part has; here it has none of it.
TEST(Recut, OneRecordAloneIsCutToItself) {
  v1::ChunkPayload payload;
  payload.add_records()->set_sequence(7);
  payload.mutable_records(0)->mutable_marker()->set_name("m");
  ChunkEncoder encoder;
  const auto chunk =
      encoder.Encode({.stream_id = {1}, .first_sequence = 7, .last_sequence = 7}, payload);
  ASSERT_TRUE(chunk.ok());
  std::vector<Bytes> again;
  ASSERT_TRUE(CutChunkBefore(7, *chunk, CollectInto(&again)).ok());
  EXPECT_EQ(again, std::vector<Bytes>{Bytes(chunk->begin(), chunk->end())});
}

TEST(EditChunk, ChangesRecordsAndNothingElse) {
  const std::vector<Bytes> original = LongChunks();
  std::vector<Bytes> edited;
  for (const Bytes& chunk : original) {
    const absl::Status status = EditChunk(
        chunk,
        [](v1::ChunkPayload& content) {
          bool any = false;
          for (v1::TimelineRecord& record : *content.mutable_records()) {
            if (!record.has_marker()) continue;
            record.mutable_marker()->set_name("renamed");
            any = true;
          }
          return any;
        },
        CollectInto(&edited));
    ASSERT_TRUE(status.ok()) << status;
  }
  Seen seen = ReadBytes(Concatenate(edited));
  const Seen wanted = ReadBytes(Concatenate(original));
  ASSERT_TRUE(seen.report.ok());
  EXPECT_EQ(seen.ticks, wanted.ticks);
  EXPECT_EQ(seen.sequences, wanted.sequences);
  int renamed = 0;
  for (std::string& line : seen.others) {
    const size_t at = line.find("\"renamed\"");
    if (at == std::string::npos) continue;
    line.replace(at, 9, "\"phase\"");
    ++renamed;
  }
  EXPECT_EQ(renamed, 18);
  EXPECT_EQ(seen.others, wanted.others);
  EXPECT_EQ(seen.report->ended_in_order, wanted.report->ended_in_order);
}

TEST(EditChunk, GivesWhatIsNotChangedByteForByte) {
  const std::vector<Bytes> original = LongChunks();
  std::vector<Bytes> same;
  for (const Bytes& chunk : original) {
    ASSERT_TRUE(EditChunk(
                    chunk,
                    [](v1::ChunkPayload& content) {
                      content.Clear();
                      return false;
                    },
                    CollectInto(&same))
                    .ok());
  }
  EXPECT_EQ(same, original);
  const auto edit = [](v1::ChunkPayload&) { return true; };
  EXPECT_TRUE(absl::IsDataLoss(EditChunk({}, edit, CollectInto(&same))));
}

TEST(Recut, WhatIsNoWholeChunkIsRefused) {
  const Bytes chunk = LongChunks()[0];
  std::vector<Bytes> again;
  const auto recut = [&](const Bytes& bytes) {
    return RecutChunk(bytes, 1000, CollectInto(&again));
  };
  EXPECT_TRUE(absl::IsDataLoss(recut({})));
  Bytes bad = chunk;
  bad.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(recut(bad)));
  bad = chunk;
  bad.push_back(0);
  EXPECT_TRUE(absl::IsDataLoss(recut(bad)));
  bad = chunk;
  bad.back() = static_cast<uint8_t>(bad.back() ^ 1);
  EXPECT_TRUE(absl::IsDataLoss(recut(bad)));
  EXPECT_TRUE(again.empty());
  const absl::Status full = RecutChunk(chunk, 1000, [](std::span<const uint8_t>) {
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_EQ(full.message(), "disk full");
}

}  // namespace
}  // namespace vcpulse::timeline
