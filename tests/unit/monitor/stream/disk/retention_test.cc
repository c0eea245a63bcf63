#include "monitor/stream/disk/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/fakes/crashing_files.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kFolderA[] = "/d/a/20260101T000000Z-07ab0000000000000000000000000000";
constexpr char kFolderB[] = "/d/b/20260102T000000Z-08ab0000000000000000000000000000";

// Files of ten bytes, each at its own instant.
// What a file of 10 bytes and a folder take of the disk, with their inodes and names.
constexpr uint64_t kFile = 10 + 512;
constexpr uint64_t kFolder = 4096;

class RetentionTest : public testing::Test {
 protected:
  std::string Put(const std::string& folder, const std::string& name, int64_t at_ns) {
    files_.SetTime(at_ns);
    files_.Put(folder + "/" + name, std::vector<uint8_t>(10, 'x'));
    return folder + "/" + name;
  }
  Removed Apply(const Retention& retention, int64_t now_ns, const std::string& live = "") {
    auto removed = ApplyRetention(files_, "/d", retention, now_ns,
                                  [&](const std::string& folder) { return folder == live; });
    EXPECT_TRUE(removed.ok()) << removed.status();
    return removed.ok() ? *removed : Removed{};
  }
  // The files that are left.
  std::vector<std::string> Left() const {
    std::vector<std::string> left;
    for (const std::string& path : files_.Paths()) {
      if (files_.Get(path).size() == 10) left.push_back(path);
    }
    return left;
  }

  fakes::CrashingFiles files_;
};

TEST_F(RetentionTest, FilesThatAreTooOldGoWithTheirFolders) {
  Put(kFolderA, "00000000000000000001.vpt", 100);
  Put(kFolderA, "00000000000000000011.vpt", 150);
  const std::string newer = Put(kFolderB, "00000000000000000001.vpt", 200);
  const Removed removed = Apply({.max_age_ns = 100}, 300);
  EXPECT_THAT(Left(), ElementsAre(newer)) << "exactly as old as it may be";
  EXPECT_EQ(removed.files, 2);
  EXPECT_EQ(removed.bytes, 2 * kFile + kFolder);
  EXPECT_THAT(removed.errors, IsEmpty());
  EXPECT_THAT(files_.Paths(), testing::Not(testing::Contains("/d/a")));
  EXPECT_THAT(files_.Paths(), testing::Contains("/d/b"));
}

TEST_F(RetentionTest, OldestGoUntilTheRestFits) {
  const std::string a2 = Put(kFolderA, "00000000000000000002.vpt", 400);
  Put(kFolderA, "00000000000000000001.vpt", 100);
  Put(kFolderB, "00000000000000000001.vpt", 200);
  const std::string b2 = Put(kFolderB, "00000000000000000002.vpt", 300);
  EXPECT_EQ(Apply({.max_bytes = 4 * kFile + 2 * kFolder}, 500).files, 0);
  EXPECT_EQ(Apply({.max_bytes = 3 * kFile + 2 * kFolder - 1}, 500).files, 2);
  EXPECT_THAT(Left(), ElementsAre(a2, b2));
}

TEST_F(RetentionTest, OneThatSendsMuchCostsItsOwn) {
  const std::string quiet = Put(kFolderA, "00000000000000000001.vpt", 100);
  Put(kFolderB, "00000000000000000001.vpt", 200);
  Put(kFolderB, "00000000000000000002.vpt", 300);
  const std::string newest = Put(kFolderB, "00000000000000000003.vpt", 400);
  EXPECT_EQ(Apply({.max_bytes = 2 * kFile + 2 * kFolder}, 500).files, 2);
  EXPECT_THAT(Left(), ElementsAre(quiet, newest));
}

TEST_F(RetentionTest, OfThoseThatHaveTheSameTheOldestGoes) {
  Put(kFolderA, "00000000000000000001.vpt", 100);
  const std::string b = Put(kFolderB, "00000000000000000001.vpt", 200);
  EXPECT_EQ(Apply({.max_bytes = kFile + kFolder}, 500).files, 1);
  EXPECT_THAT(Left(), ElementsAre(b));
}

TEST_F(RetentionTest, WhereTheOneWithTheMostHasNothingToGiveTheNextGives) {
  const std::string live = Put(kFolderB, "00000000000000000001.vpt", 100);
  files_.SetTime(100);
  files_.Put(live, std::vector<uint8_t>(50, 'x'));
  Put(kFolderA, "00000000000000000001.vpt", 200);
  const Removed removed = Apply({.max_bytes = 40 + kFile + kFolder}, 500, kFolderB);
  EXPECT_EQ(removed.files, 1);
  EXPECT_EQ(removed.bytes, kFile + kFolder);
}

TEST_F(RetentionTest, NewestFileOfALiveStreamStays) {
  Put(kFolderA, "00000000000000000001.vpt", 100);
  const std::string newest = Put(kFolderA, "00000000000000000021.vpt", 50);  // the clock went back
  EXPECT_EQ(Apply({.max_age_ns = 1, .max_bytes = 0}, 1000, kFolderA).files, 1);
  EXPECT_THAT(Left(), ElementsAre(newest));
  EXPECT_EQ(Apply({.max_age_ns = 1}, 1000).files, 1) << "it may go once the stream has ended";
  EXPECT_THAT(files_.Paths(), ElementsAre("/d"));
}

TEST_F(RetentionTest, FilesOfTheFutureAreNotOld) {
  Put(kFolderA, "00000000000000000001.vpt", 5000);
  EXPECT_EQ(Apply({.max_age_ns = 10}, 300).files, 0);
}

TEST_F(RetentionTest, NothingElseIsTouched) {
  Put("/d", "00000000000000000001.vpt", 1);
  Put("/d/a", "00000000000000000001.vpt", 1);
  Put("/d/a/mine", "00000000000000000001.vpt", 1);
  Put(kFolderA, "mine.vpt", 1);
  Put(kFolderA, "00000000000000000001.vpt.gz", 1);
  Put(std::string(kFolderB) + "/deeper", "00000000000000000001.vpt", 1);
  Put(kFolderA, "00000000000000000001.vpt", 1);
  EXPECT_EQ(Apply({.max_age_ns = 1, .max_bytes = 0}, 1000).files, 1);
  EXPECT_THAT(Left(), SizeIs(6));
}

TEST_F(RetentionTest, SaysWhatItCannotRemove) {
  const std::string path = Put(kFolderA, "00000000000000000001.vpt", 1);
  files_.FailAll(EROFS);
  const Removed removed = Apply({.max_age_ns = 1}, 1000);
  EXPECT_EQ(removed.files, 0);
  EXPECT_THAT(removed.errors, ElementsAre(testing::HasSubstr(path)));
}

TEST_F(RetentionTest, NoDirectoryIsAnError) {
  const auto removed =
      ApplyRetention(files_, "/none", {}, 0, [](const std::string&) { return false; });
  EXPECT_TRUE(absl::IsNotFound(removed.status())) << removed.status();
}

TEST(RetentionOnDisk, LinksAreNotFollowed) {
  const std::string folder = fakes::MakeTemporaryFolder();
  const std::string stream = "/20260101T000000Z-07ab0000000000000000000000000000";
  const auto write = [](const std::string& path) { std::ofstream(path) << "x"; };
  std::filesystem::create_directories(folder + "/outside" + stream);
  std::filesystem::create_directories(folder + "/d/a" + stream);
  write(folder + "/outside" + stream + "/00000000000000000001.vpt");
  write(folder + "/outside/file");
  std::filesystem::create_symlink(folder + "/outside", folder + "/d/linked_agent");
  std::filesystem::create_symlink(folder + "/outside" + stream,
                                  folder + "/d/a/2" + stream.substr(1));
  std::filesystem::create_symlink(folder + "/outside/file",
                                  folder + "/d/a" + stream + "/00000000000000000002.vpt");
  write(folder + "/d/a" + stream + "/00000000000000000001.vpt");
  const auto removed = ApplyRetention(KernelFiles(), folder + "/d", {.max_bytes = 0}, 0,
                                      [](const std::string&) { return false; });
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->files, 1);
  EXPECT_TRUE(std::filesystem::exists(folder + "/outside" + stream + "/00000000000000000001.vpt"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/outside/file"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/d/a" + stream + "/00000000000000000002.vpt"));
  std::filesystem::remove_all(folder);
}

constexpr int64_t kHour_ns = 3'600'000'000'000;

TEST(WallClockTest, IsTrustedWhileItGoesAsTheTimeSinceBootDoes) {
  WallClock clock;
  EXPECT_TRUE(clock.IsPlausible(1000 * kHour_ns, 0));
  EXPECT_TRUE(clock.IsPlausible(1500 * kHour_ns, 500 * kHour_ns)) << "the machine was asleep";
  EXPECT_TRUE(clock.IsPlausible(1502 * kHour_ns, 501 * kHour_ns)) << "set by an hour";
}

TEST(WallClockTest, IsNotTrustedAfterAJumpUntilItIsBackOrADayHasGone) {
  for (const int64_t jump_ns : {2 * kHour_ns, 400'000 * kHour_ns, -2 * kHour_ns}) {
    SCOPED_TRACE(jump_ns);
    WallClock clock;
    const auto is_plausible = [&](int64_t hours, int64_t off_ns) {
      return clock.IsPlausible((1000 + hours) * kHour_ns + off_ns, hours * kHour_ns);
    };
    EXPECT_TRUE(is_plausible(0, 0));
    EXPECT_FALSE(is_plausible(1, jump_ns));
    EXPECT_FALSE(is_plausible(20, jump_ns));
    EXPECT_TRUE(is_plausible(21, 0)) << "it was set back";
    EXPECT_FALSE(is_plausible(22, jump_ns));
    EXPECT_FALSE(is_plausible(40, 3 * jump_ns)) << "another jump: the day begins again";
    EXPECT_FALSE(is_plausible(63, 3 * jump_ns));
    EXPECT_TRUE(is_plausible(64, 3 * jump_ns));
    EXPECT_TRUE(is_plausible(65, 3 * jump_ns));
  }
}

}  // namespace
}  // namespace vcpulse::stream
