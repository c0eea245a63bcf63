#include "monitor/timeline/merge.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "monitor/timeline/chunk_encoder.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/recut.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Chunks of a small recording, in files of a folder.
class Merge : public testing::Test {
 protected:
  Merge() : folder_(fakes::MakeTemporaryFolder()) {}
  ~Merge() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string Write(const std::string& name, const std::vector<Bytes>& chunks) const {
    const Bytes bytes = Concatenate(chunks);
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return Path(name);
  }

  absl::StatusOr<MergeReport> MergeFiles(const std::vector<std::string>& files) {
    merged_.clear();
    return MergeTimelines(files, [this](std::span<const uint8_t> bytes) {
      merged_.insert(merged_.end(), bytes.begin(), bytes.end());
      return absl::OkStatus();
    });
  }

  std::string Refusal(const std::vector<std::string>& files) {
    const auto merged = MergeFiles(files);
    EXPECT_FALSE(merged.ok());
    EXPECT_THAT(merged_, IsEmpty()) << "written before it was refused";
    return std::string(merged.status().message());
  }

  const SmallTimeline whole_{6};
  const std::vector<Bytes>& chunks_ = whole_.chunks;
  std::string folder_;
  Bytes merged_;
};

TEST_F(Merge, PartsAreTheWholeByteForByteInAnyOrder) {
  const std::string a = Write("a.vpt", {chunks_[0], chunks_[1]});
  const std::string b = Write("b.vpt", {chunks_[2], chunks_[3], chunks_[4]});
  const std::string c = Write("c.vpt", {chunks_[5]});
  for (const std::vector<std::string>& order :
       {std::vector{a, b, c}, {c, a, b}, {b, c, a}, {c, b, a}}) {
    const auto merged = MergeFiles(order);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(merged_, whole_.bytes);
    EXPECT_EQ(merged->chunks, 6u);
    EXPECT_EQ(merged->repeated_chunks, 0u);
    EXPECT_EQ(merged->first_sequence, 1u);
    EXPECT_EQ(merged->last_sequence, whole_.ticks.back().sequence + 1);
    EXPECT_EQ(merged->holes, 0u);
    EXPECT_TRUE(merged->ended_in_order);
  }
}

TEST_F(Merge, ChunksThatAreThereTwiceAreWrittenOnce) {
  const std::string a = Write("a.vpt", {chunks_[0], chunks_[1], chunks_[3]});
  const std::string b = Write("b.vpt", {chunks_[1], chunks_[2], chunks_[3], chunks_[4]});
  const auto merged = MergeFiles({a, Write("c.vpt", {chunks_[5]}), b, a});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_EQ(merged->repeated_chunks, 5u);
  EXPECT_EQ(merged->lost_records, 0u);
}

// `cat` in the wrong sequence: a reader would pass over what goes back.
TEST_F(Merge, ChunksOfOneFileAreSorted) {
  const auto merged = MergeFiles(
      {Write("x.vpt", {chunks_[4], chunks_[5], chunks_[2], chunks_[3], chunks_[0], chunks_[1]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_THAT(merged->parts.at(0).damages, IsEmpty());
  EXPECT_EQ(merged->repeated_chunks, 0u);
}

TEST_F(Merge, AFolderIsTheFilesInIt) {
  Write("stream/00000000000000000001.vpt", {chunks_[0], chunks_[1], chunks_[2]});
  Write("stream/00000000000000000012.vpt", {chunks_[3]});
  const auto merged = MergeFiles({Path("stream"), Write("rest.vpt", {chunks_[4], chunks_[5]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_EQ(merged->parts.size(), 3u);
}

// A collector that is killed while it makes a file or folder leaves it empty.
TEST_F(Merge, EmptyFilesAndFoldersAreSkipped) {
  const std::string all = Write("stream/00000000000000000001.vpt", chunks_);
  const std::string file = Write("stream/00000000000000000002.vpt", {});
  const std::string folder = Path("none");
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const auto merged = MergeFiles({folder, Path("stream")});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_EQ(merged->parts.size(), 1u);
  EXPECT_THAT(merged->empty, ElementsAre(folder, file));

  merged_.clear();
  const auto nothing = MergeFiles({folder, file});
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(nothing.status().message(), folder + ", " + file + ": there is no record");
}

TEST_F(Merge, WhatOnlyADamagedChunkHeldAtTheEndIsLost) {
  Bytes torn = chunks_[3];
  torn.resize(torn.size() - 7);
  const std::string a = Write("a.vpt", {chunks_[0], chunks_[1], chunks_[2], torn});
  const auto merged = MergeFiles({a});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->lost_records, 3u);
  EXPECT_EQ(merged->holes, 1u);
  const Seen seen = ReadBytes(merged_);
  EXPECT_EQ(seen.report->lost_records, 3u);
  EXPECT_EQ(
      seen.report->lost_records,
      ReadBytes(Concatenate({chunks_[0], chunks_[1], chunks_[2], torn})).report->lost_records);

  const auto whole = MergeFiles({a, Write("b.vpt", {chunks_[3], chunks_[4], chunks_[5]})});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_EQ(whole->lost_records, 0u);
}

TEST_F(Merge, APartWithoutAWholeHeaderIsSaid) {
  const std::string piece =
      Write("piece.vpt", {Bytes(chunks_[2].begin(), chunks_[2].begin() + 28)});
  const auto merged = MergeFiles({Write("a.vpt", chunks_), piece});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_EQ(merged->parts.at(1).damages.size(), 1u);
}

TEST_F(Merge, WhatNoPartHasIsAHole) {
  const auto merged =
      MergeFiles({Write("b.vpt", {chunks_[4]}), Write("a.vpt", {chunks_[1], chunks_[2]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, Concatenate({chunks_[1], chunks_[2], chunks_[4]}));
  // Chunk 0 has records 1 to 5, each later one three.
  EXPECT_EQ(merged->first_sequence, 6u);
  EXPECT_THAT(merged->first_holes, ElementsAre(SequenceRange{12, 14}));
  EXPECT_EQ(merged->lost_records, 3u);
  EXPECT_FALSE(merged->ended_in_order);
  const Seen seen = ReadBytes(merged_);  // a reader says the same
  EXPECT_EQ(seen.report->lost_before_first, 5u);
  EXPECT_EQ(seen.report->lost_records, 5u + 3u);
}

TEST_F(Merge, ManyHolesAreCountedAndTheFirstOnesNamed) {
  const SmallTimeline longer(20);
  std::vector<Bytes> every_other;
  for (size_t i = 0; i < 20; i += 2) every_other.push_back(longer.chunks[i]);
  const auto merged = MergeFiles({Write("a.vpt", every_other)});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->holes, 9u);
  EXPECT_EQ(merged->lost_records, 27u);
  EXPECT_THAT(merged->first_holes,
              ElementsAre(SequenceRange{6, 8}, SequenceRange{12, 14}, SequenceRange{18, 20}));
}

TEST_F(Merge, ADamagedChunkIsTakenFromAnotherPart) {
  Bytes damaged = chunks_[2];
  damaged[damaged.size() / 2 + kChunkHeaderBytes / 2] ^= 0x10;
  const std::string a = Write("a.vpt", {chunks_[0], chunks_[1], damaged, chunks_[3]});
  const std::string b = Write("b.vpt", {chunks_[2], chunks_[3], chunks_[4], chunks_[5]});
  for (const std::vector<std::string>& order : {std::vector{a, b}, {b, a}}) {
    const auto merged = MergeFiles(order);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(merged_, whole_.bytes);
    EXPECT_EQ(merged->parts.at(order[0] == a ? 0 : 1).damages.size(), 1u);
    EXPECT_EQ(merged->holes, 0u);
  }
  const auto alone = MergeFiles({a});
  ASSERT_TRUE(alone.ok());
  EXPECT_THAT(alone->first_holes, ElementsAre(SequenceRange{9, 11}));
}

TEST_F(Merge, AHoleAndDamageBehindItAreOneHole) {
  Bytes damaged = chunks_[3];
  damaged.back() ^= 1;
  const auto merged =
      MergeFiles({Write("a.vpt", {chunks_[0], chunks_[1], damaged, chunks_[4], chunks_[5]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(merged->first_holes, ElementsAre(SequenceRange{9, 14}));
  EXPECT_EQ(merged->lost_records, 6u);
  EXPECT_EQ(merged->holes, 1u);
}

TEST_F(Merge, AChunkThatIsCutOffIsTakenFromAnotherPart) {
  Bytes torn = chunks_[3];
  torn.resize(torn.size() - 5);
  const std::string a = Write("a.vpt", {chunks_[0], chunks_[1], chunks_[2], torn});
  const std::string b = Write("b.vpt", {chunks_[3], chunks_[4], chunks_[5]});
  for (const std::vector<std::string>& order : {std::vector{a, b}, {b, a}}) {
    const auto merged = MergeFiles(order);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(merged_, whole_.bytes);
    EXPECT_EQ(merged->parts.at(order[0] == a ? 0 : 1).damages.size(), 1u);
    EXPECT_EQ(merged->repeated_chunks, 0u);
  }
}

// The same recording, its chunks cut at other records, as an uplink does it.
TEST_F(Merge, ChunksThatOverlapInPartAreCut) {
  const SmallTimeline other(4, 7, 5);  // records 1 to 7, then five each
  const SmallTimeline same(5, 7, 4);   // records 1 to 6, then four each
  ASSERT_EQ(other.ticks, same.ticks);
  const auto merged =
      MergeFiles({Write("a.vpt", {other.chunks[0], other.chunks[2]}),
                  Write("b.vpt", {same.chunks[1], same.chunks[3], same.chunks[4]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  // 1-7, 7-10 cut to 8-10, hole 11-12, 13-17, 15-18 cut to 18, 19-23.
  EXPECT_THAT(merged->first_holes, ElementsAre(SequenceRange{11, 12}));
  const Seen seen = ReadBytes(merged_);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_THAT(seen.report->damages, IsEmpty());
  EXPECT_EQ(seen.report->lost_records, 2u);
  std::vector<SeenTick> wanted = same.ticks;
  wanted.erase(wanted.begin() + 8, wanted.begin() + 10);
  EXPECT_EQ(seen.ticks, wanted) << "`previous` too";
  EXPECT_TRUE(seen.report->ended_in_order);
}

TEST_F(Merge, AChunkThatFitsIsNotCut) {
  const SmallTimeline other(4, 7, 5);
  const SmallTimeline same(5, 7, 4);
  const auto merged = MergeFiles(
      {Write("a.vpt", {other.chunks[0]}), Write("b.vpt", {same.chunks[1]}),
       Write("c.vpt", {other.chunks[1], other.chunks[2]}), Write("d.vpt", {other.chunks[3]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, other.bytes);
  EXPECT_EQ(merged->repeated_chunks, 1u);

  // Nor where one that has to be cut reaches further.
  const SmallTimeline one_chunk(1, 7, 20);
  std::vector<Bytes> from_5;
  ASSERT_TRUE(CutChunkBefore(5, one_chunk.chunks[0], CollectInto(&from_5)).ok());
  ASSERT_TRUE(MergeFiles({Write("a.vpt", {other.chunks[0]}), Write("b.vpt", from_5),
                          Write("c.vpt", {other.chunks[1], other.chunks[2], other.chunks[3]})})
                  .ok());
  EXPECT_EQ(merged_, other.bytes);
}

v1::LostRecords Lost(uint64_t first, uint64_t last) {
  v1::LostRecords lost;
  lost.set_first_sequence(first);
  lost.set_last_sequence(last);
  lost.set_reason(v1::LostRecords::REASON_NOT_HELD);
  return lost;
}

// One collector went away, another took the rest: each has what the other is told to be lost.
TEST_F(Merge, WhatOnePartTellsAsLostIsTakenFromAnother) {
  const Bytes lost = EncodeLostChunk({7}, Lost(1, 8));
  const std::string later = Write("b.vpt", {lost, chunks_[2], chunks_[3], chunks_[4], chunks_[5]});
  const auto merged = MergeFiles({later, Write("a.vpt", {chunks_[0], chunks_[1]})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);

  // The middle is in neither: told for that alone.
  const auto partly = MergeFiles({later, Write("a.vpt", {chunks_[0]})});
  ASSERT_TRUE(partly.ok()) << partly.status();
  EXPECT_THAT(partly->first_holes, ElementsAre(SequenceRange{6, 8}));
  const Seen seen = ReadBytes(merged_);
  EXPECT_EQ(seen.report->lost_records, 3u);
  EXPECT_THAT(seen.report->told_losses,
              ElementsAre(ToldLoss{6, 8, v1::LostRecords::REASON_NOT_HELD}));

  EXPECT_EQ(merged_, Concatenate({chunks_[0], EncodeLostChunk({7}, Lost(6, 8)), chunks_[2],
                                  chunks_[3], chunks_[4], chunks_[5]}));
  ASSERT_TRUE(MergeFiles({later, Write("a.vpt", {chunks_[1]})}).ok());
  EXPECT_EQ(merged_, Concatenate({EncodeLostChunk({7}, Lost(1, 5)), chunks_[1], chunks_[2],
                                  chunks_[3], chunks_[4], chunks_[5]}));

  // As the part tells it where no other has any of them.
  const auto alone = MergeFiles({later});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(merged_, Concatenate({lost, chunks_[2], chunks_[3], chunks_[4], chunks_[5]}));
  EXPECT_EQ(alone->first_sequence, 9u);
  EXPECT_EQ(alone->holes, 0u) << "they lie before it begins";
}

TEST_F(Merge, ALossAtTheEndIsKept) {
  const uint64_t next = whole_.ticks.back().sequence + 2;
  const Bytes lost = EncodeLostChunk({7}, Lost(next, next + 9));
  const auto merged = MergeFiles({Write("a.vpt", {whole_.bytes, lost})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, Concatenate({whole_.bytes, lost}));
  EXPECT_EQ(merged->lost_records, 10u);
}

TEST_F(Merge, WildNumbersMakeNoHole) {
  constexpr uint64_t kWild = 1ull << 60;
  ChunkEncoder encoder;
  v1::ChunkPayload payload;
  const auto nothing = encoder.Encode(
      {.stream_id = {7}, .first_sequence = kWild, .last_sequence = kWild - 1}, payload);
  ASSERT_TRUE(nothing.ok());
  const std::string empty = Write("empty.vpt", {Bytes(nothing->begin(), nothing->end())});
  *payload.add_records() = MarkerRecord("last", 1);
  payload.mutable_records(0)->set_sequence(~0ull);
  const auto last =
      encoder.Encode({.stream_id = {7}, .first_sequence = ~0ull, .last_sequence = ~0ull}, payload);
  ASSERT_TRUE(last.ok());
  const std::string beyond = Write("beyond.vpt", {Bytes(last->begin(), last->end())});
  const auto merged = MergeFiles({empty, beyond, Write("a.vpt", {whole_.bytes})});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged_, whole_.bytes);
  EXPECT_EQ(merged->holes, 0u);
  EXPECT_EQ(merged->parts.at(1).damages.size(), 1u);
}

TEST_F(Merge, SeparateRecordingsAreRefusedByName) {
  const std::string one = Write("web1.vpt", {whole_.bytes});
  const std::string two = Write("web2.vpt", {SmallTimeline(3, 8).bytes});
  EXPECT_THAT(Refusal({one, two}),
              AllOf(HasSubstr(one + ", " + two + " are separate recordings"),
                    HasSubstr("`vcpulse report FILE`"), HasSubstr("`vcpulse compare A B`")));
  std::vector<std::string> many = {one};
  for (uint8_t i = 0; i < 5; ++i) {
    const std::string name = "host" + std::to_string(i) + ".vpt";
    many.push_back(Write(name, {SmallTimeline(2, 20 + i).bytes}));
  }
  EXPECT_THAT(Refusal(many), AllOf(HasSubstr("host2.vpt and 2 more"), Not(HasSubstr("host3"))));
  EXPECT_THAT(Refusal({Write("both.vpt", {whole_.bytes, SmallTimeline(3, 8).bytes})}),
              HasSubstr("both.vpt holds several recordings"));
}

TEST_F(Merge, WhatIsNotATimelineIsRefusedByName) {
  const std::string good = Write("a.vpt", {whole_.bytes});
  EXPECT_THAT(Refusal({good, Path("none.vpt")}), HasSubstr("none.vpt"));
  EXPECT_THAT(Refusal({good, Write("text.vpt", {Bytes(100, 'x')})}),
              HasSubstr("text.vpt is not a vcpulse timeline"));
  EXPECT_THAT(Refusal({good, "/dev/null"}), HasSubstr("/dev/null is not a regular file"));
  Write("folder/text", {Bytes(100, 'x')});
  EXPECT_THAT(Refusal({good, Path("folder")}), HasSubstr("holds no timeline"));
  Bytes damaged = chunks_[0];
  damaged.back() ^= 1;
  EXPECT_THAT(Refusal({Write("d.vpt", {damaged})}), HasSubstr("d.vpt: no record can be read"));
}

TEST_F(Merge, ErrorsOfTheSinkAreGivenAsTheyAre) {
  const std::vector<std::string> files = {Write("a.vpt", {whole_.bytes})};
  size_t given = 0;
  const auto merged = MergeTimelines(files, [&](std::span<const uint8_t> /*bytes*/) {
    return ++given < 3 ? absl::OkStatus() : absl::ResourceExhaustedError("full");
  });
  EXPECT_EQ(merged.status(), absl::ResourceExhaustedError("full"));
  EXPECT_EQ(given, 3u);
}

// Every release's golden timeline, cut at each of its chunks.
TEST_F(Merge, GoldenTimelinesComeBackFromTwoParts) {
  for (const char* name : {"/timeline-v1.vpt", "/timeline-v2.vpt"}) {
    std::ifstream in(std::string(VCPULSE_TEST_DATA) + name, std::ios::binary);
    const Bytes golden((std::istreambuf_iterator<char>(in)), {});
    size_t cuts = 0;
    for (size_t at = 1; at < golden.size(); ++at) {
      const bool chunk_begins = DecodeChunkHeader(std::span(golden).subspan(at)).ok();
      if (!chunk_begins) continue;
      ++cuts;
      const auto middle = golden.begin() + static_cast<ptrdiff_t>(at);
      const std::string first = Write("first.vpt", {Bytes(golden.begin(), middle)});
      const std::string second = Write("second.vpt", {Bytes(middle, golden.end())});
      const auto merged = MergeFiles({second, first});
      ASSERT_TRUE(merged.ok()) << merged.status();
      EXPECT_EQ(merged_, golden);
    }
    EXPECT_EQ(cuts, 3u);
  }
}

}  // namespace
}  // namespace vcpulse::timeline
