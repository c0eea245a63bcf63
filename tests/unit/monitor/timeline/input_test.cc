#include "monitor/timeline/input.h"

#include <filesystem>
#include <fstream>
#include <random>

#include "monitor/timeline/recordings.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Joining : public testing::Test {
 protected:
  Joining() : folder_(fakes::MakeTemporaryFolder()) {}
  ~Joining() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const Bytes& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return Path(name);
  }

  static Seen Read(const Input& input) {
    Seen seen;
    seen.report = ReadTimeline(input, SinkInto(&seen));
    return seen;
  }
  static Bytes BytesOf(const Input& input) {
    Bytes bytes(1 << 20);
    const auto source = input.Open();
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    const auto got = (*source)->ReadAt(0, bytes);
    EXPECT_TRUE(got.ok()) << got.status();
    bytes.resize(got.value_or(0));
    return bytes;
  }

  const SmallTimeline whole_{12};
  const std::vector<Bytes>& chunks_ = whole_.chunks;
  std::string folder_;
};

// As several collectors keep one stream: each chunk in one folder or in several of them.
TEST_F(Joining, ThreeFoldersWithOverlapsAreTheWhole) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::minstd_rand random(seed);
    std::vector<std::string> folders;
    std::vector<std::map<std::string, Bytes>> files(3);
    for (size_t i = 0; i < chunks_.size(); ++i) {
      const size_t surely = random() % 3;
      for (size_t f = 0; f < 3; ++f) {
        if (f != surely && random() % 3 > 0) continue;
        Bytes& file = files[f][std::to_string(100 + i / (1 + random() % 4)) + ".vpt"];
        file.insert(file.end(), chunks_[i].begin(), chunks_[i].end());
      }
    }
    for (size_t f = 0; f < 3; ++f) {
      const std::string name = std::to_string(seed) + "/c" + std::to_string(f);
      for (const auto& [file, bytes] : files[f]) Write(name + "/" + file, bytes);
      if (!files[f].empty()) folders.push_back(Path(name));
    }
    const auto input = Input::Join(folders);
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_EQ(BytesOf(*input), whole_.bytes) << "seed " << seed;
    const Seen seen = Read(*input);
    const Seen expected = ReadBytes(whole_.bytes);
    EXPECT_EQ(seen.ticks, expected.ticks);
    EXPECT_EQ(seen.others, expected.others);
    EXPECT_EQ(seen.report->lost_records, 0u);
    EXPECT_THAT(seen.report->damages, IsEmpty());
  }
}

TEST_F(Joining, WhatNoneHasIsALoss) {
  const auto input = Input::Join({Write("a/1.vpt", Concatenate({chunks_[0], chunks_[1]})),
                                  Write("b/4.vpt", Concatenate({chunks_[4], chunks_[5]}))});
  ASSERT_TRUE(input.ok()) << input.status();
  const Seen seen = Read(*input);
  EXPECT_EQ(seen.report->lost_records, 6u);
  EXPECT_EQ(BytesOf(*input), Concatenate({chunks_[0], chunks_[1], chunks_[4], chunks_[5]}));
}

TEST_F(Joining, WhereOneCopyIsDamagedAnotherIsRead) {
  Bytes damaged = chunks_[1];
  damaged[damaged.size() / 2] ^= 0x40;
  const std::string a = Write("a.vpt", Concatenate({chunks_[0], damaged, chunks_[2]}));
  const std::string b = Write("b.vpt", Concatenate({chunks_[1], chunks_[3]}));
  const auto input = Input::Join({a, b});
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(BytesOf(*input), Concatenate({chunks_[0], chunks_[1], chunks_[2], chunks_[3]}));
  const Seen seen = Read(*input);
  EXPECT_EQ(seen.report->lost_records, 0u);
  ASSERT_THAT(seen.report->damages, SizeIs(1));
  EXPECT_THAT(seen.report->damages[0].reason, HasSubstr("(in " + a + ")"));
  EXPECT_TRUE(seen.report->lost_end) << "it may have been there";
  const auto closed =
      Input::Join({a, b, Write("c.vpt", Concatenate({chunks_.begin() + 4, chunks_.end()}))});
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_FALSE(Read(*closed).report->lost_end);
}

// A collector that is killed while it makes a file leaves it empty.
TEST_F(Joining, AnEmptyFileOfAFolderIsSkippedAndWhatIsNamedIsNot) {
  Write("s/1.vpt", Concatenate({chunks_[1], chunks_[0]}));
  const std::string empty = Write("s/2.vpt", {});
  const Seen alone = Read(Path("s"));
  ASSERT_TRUE(alone.report.ok()) << alone.report.status();
  EXPECT_THAT(alone.report->damages, IsEmpty());
  const auto joined = Input::Join({Write("rest.vpt", chunks_[2]), Path("s")});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_THAT(Read(*joined).report->damages, IsEmpty());
  EXPECT_EQ(Input::Join({empty, Path("s")}).status(),
            absl::InvalidArgumentError(empty + " is empty: leave it out"));
}

// Chunks that came late lie in a file of their own, whose name is that of its first record.
TEST_F(Joining, AFolderWhoseFilesOverlapIsJoinedByItself) {
  Write("s/1.vpt", Concatenate({chunks_[0], chunks_[1], chunks_[4]}));
  Write("s/2.vpt", Concatenate({chunks_[2], chunks_[3]}));
  Write("s/3.vpt", chunks_[5]);
  const Seen seen = Read(Path("s"));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
  EXPECT_EQ(seen.ticks.size(), 18u);
}

// As a collector that shares a stream writes them: in the order in which they came.
TEST_F(Joining, AFolderWithOneFileOutOfSequenceToo) {
  Write("s/1.vpt", Concatenate({chunks_[1], chunks_[0], chunks_[3], chunks_[2]}));
  const Seen seen = Read(Path("s"));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_EQ(seen.ticks.size(), 12u);
}

TEST_F(Joining, PartsOfSeveralRecordingsAreRefused) {
  const SmallTimeline other(3, 9);
  const auto input = Input::Join({Write("a.vpt", whole_.bytes), Write("b.vpt", other.bytes)});
  EXPECT_EQ(input.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(input.status().message()), HasSubstr("are separate recordings"));
  EXPECT_FALSE(Input::Join({Path("a.vpt"), "-"}).ok());
  EXPECT_EQ(Input::Join({Path("a.vpt"), Path("none.vpt")}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(Joining, OneInputIsReadAsItIs) {
  const std::string path = Write("a.vpt", whole_.bytes);
  const auto input = Input::Join({path});
  ASSERT_TRUE(input.ok());
  EXPECT_FALSE(input->IsJoined());
  EXPECT_EQ(input->Name(), path);
  EXPECT_EQ(Input("-").Name(), "standard input");
}

constexpr char kStreamName[] = "20261122T072146Z-07000000000000000000000000000000";

TEST_F(Joining, RecordingsAreFoundBelowSeveralCollectors) {
  const SmallTimeline other(3, 9);
  const std::string stream = kStreamName;
  Write("c1/host1/" + stream + "/1.vpt", chunks_[0]);
  Write("c2/host1/" + stream + "/2.vpt", chunks_[1]);
  Write("c2/host2/" + stream + "/1.vpt", chunks_[0]);  // the same stream under another agent
  Write("c2/host2/other/1.vpt", other.bytes);
  Write("c2/.rollup/1.vpt", chunks_[0]);
  const std::vector<std::string> parts = {Path("c1/host1/" + stream), Path("c2/host1/" + stream),
                                          Path("c2/host2/" + stream)};
  // What is named twice is there once.
  for (const std::vector<std::string>& paths :
       {std::vector{Path("c1"), Path("c2")}, {Path("c1"), Path("c2"), Path("c2/host2")}}) {
    const FoundRecordings found = FindRecordings(paths);
    EXPECT_THAT(found.left_out, IsEmpty());
    ASSERT_THAT(found.recordings, SizeIs(2));
    EXPECT_EQ(found.recordings[0].paths, parts);
    EXPECT_THAT(found.recordings[1].paths, ElementsAre(Path("c2/host2/other")));
  }
}

TEST_F(Joining, RecordingsOfOneFolderAreFoundByTheirFiles) {
  const SmallTimeline other(3, 9);
  const std::string a = Write("d/a.vpt", whole_.bytes);
  const std::string b = Write("d/b.vpt", other.bytes);
  const FoundRecordings found = FindRecordings({Path("d")});
  ASSERT_THAT(found.recordings, SizeIs(2));
  EXPECT_THAT(found.recordings[0].paths, ElementsAre(a));
  EXPECT_THAT(found.recordings[1].paths, ElementsAre(b));
}

TEST_F(Joining, AFileIsAPartOfItsStreamAsAFolderIs) {
  const std::string file = Write("a.vpt", whole_.bytes);
  const std::string folder = "c1/host1/" + std::string(kStreamName);
  Write(folder + "/1.vpt", chunks_[0]);
  for (const std::vector<std::string>& paths :
       {std::vector{file, Path(folder)}, {Path(folder), file}}) {
    const FoundRecordings found = FindRecordings(paths);
    ASSERT_THAT(found.recordings, SizeIs(1));
    EXPECT_EQ(found.recordings[0].paths, paths);
  }
}

TEST_F(Joining, WhereThereIsNoneThatIsSaid) {
  const std::string file = Write("a.vpt", whole_.bytes);
  std::filesystem::create_directories(Path("empty"));
  const FoundRecordings found = FindRecordings({Path("none"), Path("empty"), file});
  ASSERT_THAT(found.left_out, SizeIs(2));
  EXPECT_EQ(found.left_out[0].code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.left_out[0].message()), HasSubstr("cannot read " + Path("none")));
  EXPECT_THAT(std::string(found.left_out[1].message()),
              HasSubstr(Path("empty") + " is a directory that holds no timeline (*.vpt)"));
  EXPECT_THAT(found.recordings, SizeIs(1));
}

}  // namespace
}  // namespace vcpulse::timeline
