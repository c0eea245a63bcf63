#include "monitor/stream/disk/stream_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/crashing_files.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kFolderNow_ns = 1'795'328'000'000'000'000;  // 2026-11-22T06:13:20Z

// Counts how often a folder is listed.
class ListedFiles : public fakes::CrashingFiles {
 public:
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    ++lists;
    return CrashingFiles::List(directory);
  }
  int lists = 0;
};

TEST(StreamFoldersTest, ANewOneIsNamedByTheTimeAndTheStream) {
  fakes::CrashingFiles files;
  EXPECT_EQ(StreamFolders(files, "/c").FolderOf("host1", StreamNumber(7), kFolderNow_ns).value(),
            "/c/host1/20261122T061320Z-07ab0000000000000000000000000000");
}

TEST(StreamFoldersTest, TheOneThatIsThereIsFoundByTheStreamWhateverTheTime) {
  ListedFiles files;
  const std::string first =
      StreamFolders(files, "/c").FolderOf("host1", StreamNumber(7), kFolderNow_ns).value();
  ASSERT_TRUE(files.MakeDirectories(first).ok());
  ASSERT_TRUE(files.MakeDirectories("/c/host1/not-a-stream").ok());
  StreamFolders folders(files, "/c");
  files.lists = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(folders.FolderOf("host1", StreamNumber(7), 2 * kFolderNow_ns).value(), first);
  }
  EXPECT_EQ(files.lists, 1) << "an agent may have many streams";
  EXPECT_NE(folders.FolderOf("host2", StreamNumber(7), kFolderNow_ns).value(), first);
}

TEST(StreamFoldersTest, AnAgentHasSoManyStreamsAndNoMore) {
  fakes::CrashingFiles files;
  StreamFolders folders(files, "/c", 2);
  const auto folder_of = [&](uint8_t stream) {
    auto folder = folders.FolderOf("host1", StreamNumber(stream), kFolderNow_ns);
    EXPECT_TRUE(!folder.ok() || files.MakeDirectories(*folder).ok());
    return folder;
  };
  EXPECT_TRUE(folder_of(1).ok());
  EXPECT_TRUE(folder_of(2).ok());
  EXPECT_TRUE(absl::IsOutOfRange(folder_of(3).status()));
  EXPECT_THAT(std::string(folder_of(3).status().message()), HasSubstr("--keep-for"));
  EXPECT_TRUE(folder_of(2).ok()) << "one that is there goes on";
  EXPECT_TRUE(folders.FolderOf("host2", StreamNumber(3), kFolderNow_ns).ok());
  ASSERT_TRUE(files.RemoveDirectory(*folder_of(1)).ok());
  EXPECT_FALSE(folder_of(3).ok());
  folders.Forget();
  EXPECT_TRUE(folder_of(3).ok());
}

}  // namespace
}  // namespace vcpulse::stream
