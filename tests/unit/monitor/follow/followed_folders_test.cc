#include "monitor/follow/followed_folders.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/follow/growing_file.h"
#include "tests/fakes/proc_dir.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::follow {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using timeline::Bytes;
using timeline::SmallTimeline;

const std::string kOld = "20260101T000000Z-00000000000000000000000000000001";
const std::string kNew = "20260102T000000Z-00000000000000000000000000000002";

void AppendTo(const fs::path& path, std::span<const uint8_t> bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

class FollowingFolders : public ::testing::Test {
 protected:
  void Open(FollowedFolders::Options options) {
    options.path = path_;
    auto followed = FollowedFolders::Open(options);
    ASSERT_TRUE(followed.ok()) << followed.status();
    followed_.emplace(*std::move(followed));
  }

  // "agent first-last [from N]" of each chunk that is new.
  std::vector<std::string> Poll() {
    std::vector<std::string> chunks;
    const absl::Status status = followed_->Poll(
        [&](const ChunkOwner& owner, std::span<const uint8_t> chunk, uint64_t from) {
          const auto header = timeline::DecodeChunkHeader(chunk);
          std::string text = owner.agent.value_or("-") + (owner.say_agent ? "! " : " ") +
                             std::to_string(header->first_sequence) + "-" +
                             std::to_string(header->last_sequence);
          if (from > header->first_sequence) text += " from " + std::to_string(from);
          chunks.push_back(text);
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return chunks;
  }

  fakes::ProcDir folder_;
  std::string path_ = folder_.Path("collected").string();
  // Chunks of 3 ticks: records 1-5 (with session and set), 6-8, 9-11, 12-15 (with the summary).
  SmallTimeline timeline_;
  std::optional<FollowedFolders> followed_;
};

TEST_F(FollowingFolders, LastTicksOfEachAgentsNewestStreamThenWhatComes) {
  const fs::path a = fs::path(path_) / "host-a";
  for (const Bytes& chunk : timeline_.chunks) AppendTo(a / kOld / "1.vpt", chunk);
  for (int i = 0; i < 3; ++i) AppendTo(a / kNew / "1.vpt", timeline_.chunks[i]);
  Open({.last_ticks = 4});
  EXPECT_THAT(Poll(), ElementsAre("host-a! 6-8 from 8", "host-a! 9-11"));
  EXPECT_THAT(Poll(), IsEmpty());
  AppendTo(a / kNew / "1.vpt", timeline_.chunks[3]);
  AppendTo(fs::path(path_) / "host-b" / kNew / "1.vpt", timeline_.chunks[0]);
  EXPECT_THAT(Poll(), ElementsAre("host-a! 12-15", "host-b! 1-5"));
}

TEST_F(FollowingFolders, FilesThatFollow) {
  path_ = (fs::path(path_) / "host-a" / kNew).string();
  AppendTo(path_ + "/1.vpt", timeline_.chunks[0]);
  AppendTo(path_ + "/2.vpt", timeline_.chunks[1]);
  Open({.last_ticks = 4});
  EXPECT_THAT(Poll(), ElementsAre("host-a 1-5 from 5", "host-a 6-8"));
  // Another file begins, and the one before it had grown.
  AppendTo(path_ + "/2.vpt", timeline_.chunks[2]);
  AppendTo(path_ + "/3.vpt", timeline_.chunks[3]);
  EXPECT_THAT(Poll(), ElementsAre("host-a 9-11", "host-a 12-15"));
}

TEST_F(FollowingFolders, FromTheStartFromNowAndOneAgent) {
  const fs::path stream = fs::path(path_) / "host-a" / kNew;
  AppendTo(stream / "1.vpt", timeline_.chunks[0]);
  AppendTo(stream / "2.vpt", timeline_.chunks[1]);
  Open({.from_start = true});
  EXPECT_THAT(Poll(), ElementsAre("host-a! 1-5", "host-a! 6-8"));
  Open({.last_ticks = 0});
  EXPECT_THAT(Poll(), IsEmpty());
  AppendTo(stream / "2.vpt", timeline_.chunks[2]);
  EXPECT_THAT(Poll(), ElementsAre("host-a! 9-11"));
  EXPECT_THAT(followed_->other_agents(), IsEmpty());
  Open({.agent = "host-b", .from_start = true});
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_THAT(followed_->other_agents(), ElementsAre("host-a"));
  EXPECT_FALSE(followed_->has_found_any());
  Open({.agent = "host-a", .last_ticks = 100});
  EXPECT_THAT(Poll(), ElementsAre("host-a! 1-5", "host-a! 6-8", "host-a! 9-11"));
}

// However a chunk comes, it is handed over once, when it is whole.
TEST_F(FollowingFolders, NeverAChunkThatIsNotWhole) {
  path_ += ".vpt";
  AppendTo(path_, timeline_.chunks[0]);
  Open({.from_start = true});
  EXPECT_THAT(Poll(), ElementsAre("- 1-5"));
  const Bytes& next = timeline_.chunks[1];
  for (size_t i = 0; i + 1 < next.size(); ++i) {
    AppendTo(path_, std::span(next).subspan(i, 1));
    ASSERT_THAT(Poll(), IsEmpty()) << i;
  }
  AppendTo(path_, std::span(next).last(1));
  EXPECT_THAT(Poll(), ElementsAre("- 6-8"));
  EXPECT_EQ(followed_->damaged_bytes(), 0u);
}

// A collector that was killed cuts the torn end off when it comes again.
TEST_F(FollowingFolders, ATornEndThatIsCutOff) {
  path_ += ".vpt";
  AppendTo(path_, timeline_.chunks[0]);
  AppendTo(path_, std::span(timeline_.chunks[1]).first(100));
  Open({.last_ticks = 100});
  EXPECT_THAT(Poll(), ElementsAre("- 1-5"));
  fs::resize_file(path_, timeline_.chunks[0].size());
  EXPECT_THAT(Poll(), IsEmpty());
  AppendTo(path_, timeline_.chunks[1]);
  EXPECT_THAT(Poll(), ElementsAre("- 6-8"));
}

// So it does with a chunk that it could not sync; another one may come in its place.
TEST_F(FollowingFolders, AWholeChunkThatIsCutOff) {
  path_ += ".vpt";
  AppendTo(path_, timeline_.chunks[0]);
  AppendTo(path_, timeline_.chunks[1]);
  Open({.from_start = true});
  EXPECT_THAT(Poll(), ElementsAre("- 1-5", "- 6-8"));
  fs::resize_file(path_, timeline_.chunks[0].size());
  EXPECT_THAT(Poll(), IsEmpty());
  AppendTo(path_, timeline_.chunks[3]);
  EXPECT_THAT(Poll(), ElementsAre("- 12-15"));
}

TEST_F(FollowingFolders, DamageIsPassedOverAndCounted) {
  path_ += ".vpt";
  Bytes damaged = timeline_.chunks[1];
  damaged.back() ^= 1;
  AppendTo(path_, timeline_.chunks[0]);
  AppendTo(path_, damaged);
  Open({.from_start = true});
  EXPECT_THAT(Poll(), ElementsAre("- 1-5"));
  AppendTo(path_, timeline_.chunks[2]);
  EXPECT_THAT(Poll(), ElementsAre("- 9-11"));
  EXPECT_EQ(followed_->damaged_bytes(), damaged.size());
}

// `record -o FILE` puts the older file aside.
TEST_F(FollowingFolders, AnotherFileOfThatName) {
  path_ += ".vpt";
  for (const Bytes& chunk : timeline_.chunks) AppendTo(path_, chunk);
  Open({.last_ticks = 0});
  EXPECT_THAT(Poll(), IsEmpty());
  fs::rename(path_, path_ + ".old");
  EXPECT_THAT(Poll(), IsEmpty());
  AppendTo(path_, timeline_.chunks[0]);
  EXPECT_THAT(Poll(), ElementsAre("- 1-5"));
}

TEST_F(FollowingFolders, FoldersThatGo) {
  const fs::path stream = fs::path(path_) / "host-a" / kNew;
  AppendTo(stream / "1.vpt", timeline_.chunks[0]);
  Open({.last_ticks = 0});
  fs::remove_all(fs::path(path_) / "host-a");
  EXPECT_THAT(Poll(), IsEmpty());
  AppendTo(stream / "1.vpt", timeline_.chunks[0]);
  EXPECT_THAT(Poll(), ElementsAre("host-a! 1-5"));
}

// It keeps nobody else back.
TEST_F(FollowingFolders, AnAgentOfALaterRelease) {
  timeline::ChunkHeader later = *timeline::DecodeChunkHeader(timeline_.chunks[0]);
  later.required_features = 1u << 30;
  AppendTo(fs::path(path_) / "host-a" / kNew / "1.vpt", timeline::EncodeChunkHeader(later));
  AppendTo(fs::path(path_) / "host-b" / kNew / "1.vpt", timeline_.chunks[0]);
  std::vector<std::string> said;
  Open({.from_start = true, .say = [&](const std::string& line) { said.push_back(line); }});
  EXPECT_THAT(Poll(), ElementsAre("host-b! 1-5"));
  AppendTo(fs::path(path_) / "host-b" / kNew / "1.vpt", timeline_.chunks[1]);
  EXPECT_THAT(Poll(), ElementsAre("host-b! 6-8"));
  EXPECT_THAT(said, ElementsAre(HasSubstr("host-a/" + kNew + "/1.vpt: ")));
}

TEST_F(FollowingFolders, WhatCannotBeOpened) {
  const auto none = FollowedFolders::Open({.path = path_ + "/none"});
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("none"));
  EXPECT_TRUE(absl::IsInvalidArgument(FollowedFolders::Open({.path = "/dev/null"}).status()));
}

// 5 MB of headers that claim each other took half a minute, each time that the file grew.
TEST(GrowingFile, OverlappingHeadersTakeLittleTime) {
  const fakes::ProcDir folder;
  const std::string path = folder.Path("f.vpt").string();
  const SmallTimeline timeline(2);
  AppendTo(path, timeline::OverlappingHeaders(62'500, 3'000'000));
  GrowingFile file(path);
  const std::clock_t begin = std::clock();
  size_t chunks = 0;
  const auto count = [&chunks](std::span<const uint8_t>) {
    ++chunks;
    return absl::OkStatus();
  };
  EXPECT_TRUE(file.ReadNew(count).ok());
  EXPECT_EQ(chunks, 0u);
  for (const Bytes& chunk : timeline.chunks) {
    AppendTo(path, chunk);
    EXPECT_TRUE(file.ReadNew(count).ok());
  }
  EXPECT_EQ(chunks, 2u);
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace vcpulse::follow
