#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "monitor/stream/disk/files.h"
#include "monitor/stream/disk/names.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KernelFilesTest : public testing::Test {
 protected:
  KernelFilesTest() : folder_(fakes::MakeTemporaryFolder()) {}
  ~KernelFilesTest() override { std::filesystem::remove_all(folder_); }

  static std::vector<uint8_t> Some(size_t bytes) { return std::vector<uint8_t>(bytes, 'x'); }

  std::string folder_;
  Files& files_ = KernelFiles();
};

// No file of the process may grow beyond so many bytes; as the kernel does it, a write that goes
// beyond is cut, the next one fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(KernelFilesTest, WhatAFileTakesOfTheDiskIsBlocksNotBytes) {
  const std::string hole = folder_ + "/hole";
  std::ofstream(hole) << "x";
  std::filesystem::resize_file(hole, 16 << 20);
  const auto bytes = files_.DiskBytesOf(hole);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LT(*bytes, 1u << 20);
  EXPECT_EQ(*bytes % 512, 0u);
}

TEST_F(KernelFilesTest, PartOfAWriteIsTakenBack) {
  const std::string path = folder_ + "/file";
  const auto file = files_.OpenToAppend(path, true);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(Some(60)).ok());
  {
    const FileSizeLimit limit(100);
    const absl::Status status = (*file)->Append(Some(50));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    EXPECT_EQ(std::filesystem::file_size(path), 60);
    EXPECT_EQ((*file)->size(), 60);
    EXPECT_FALSE((*file)->is_torn());
    EXPECT_TRUE((*file)->Append(Some(40)).ok());
  }
  EXPECT_EQ(std::filesystem::file_size(path), 100);
}

TEST_F(KernelFilesTest, AppendsToWhatIsThere) {
  const std::string path = folder_ + "/file";
  ASSERT_TRUE((*files_.OpenToAppend(path, true))->Append(Some(3)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(files_.OpenToAppend(path, true).status()));
  const auto file = files_.OpenToAppend(path, false);
  EXPECT_EQ((*file)->size(), 3);
  EXPECT_TRUE((*file)->Append(Some(2)).ok());
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(*files_.SizeOf(path), 5);
  std::vector<uint8_t> bytes(10);
  EXPECT_EQ(*files_.ReadAt(path, 1, bytes), 4);
  EXPECT_TRUE((*file)->Truncate(1).ok());
  EXPECT_EQ(*files_.SizeOf(path), 1);
}

TEST_F(KernelFilesTest, FilesAndFoldersAreNotForOthers) {
  ASSERT_TRUE(files_.MakeDirectories(folder_ + "/a/b").ok());
  ASSERT_TRUE(files_.MakeDirectories(folder_ + "/a/b").ok());
  ASSERT_TRUE(files_.OpenToAppend(folder_ + "/a/b/file", true).ok());
  const auto mode = [](const std::string& path) {
    struct stat info{};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  EXPECT_EQ(mode(folder_ + "/a") & 0027, 0);
  EXPECT_EQ(mode(folder_ + "/a/b") & 0027, 0);
  EXPECT_EQ(mode(folder_ + "/a/b/file") & 0137, 0);
}

TEST_F(KernelFilesTest, LinksAreNeitherFollowedNorTakenForFiles) {
  std::ofstream(folder_ + "/target") << "text";
  std::filesystem::create_symlink(folder_ + "/target", folder_ + "/link");
  EXPECT_FALSE(files_.OpenToAppend(folder_ + "/link", false).ok());
  std::vector<uint8_t> bytes(4);
  EXPECT_FALSE(files_.ReadAt(folder_ + "/link", 0, bytes).ok());
  EXPECT_EQ(*files_.KindOf(folder_ + "/link"), Files::Kind::kOther);
  EXPECT_EQ(*files_.KindOf(folder_ + "/target"), Files::Kind::kFile);
  EXPECT_EQ(*files_.KindOf(folder_), Files::Kind::kDirectory);
  EXPECT_THAT(*files_.List(folder_), ElementsAre("link", "target"));
}

TEST_F(KernelFilesTest, AFolderIsLockedOnce) {
  auto lock = files_.Lock(folder_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.Lock(folder_).status()));
  lock->reset();
  EXPECT_TRUE(files_.Lock(folder_).ok());
}

// Later changes do not make it younger.
TEST_F(KernelFilesTest, AFileWasBegunBeforeItWasChanged) {
  const std::string path = folder_ + "/x";
  const auto file = files_.OpenToAppend(path, true);
  ASSERT_TRUE(file.ok());
  const auto begun_ns = files_.BegunAt_ns(path);
  ASSERT_TRUE(begun_ns.ok()) << begun_ns.status();
  EXPECT_GT(*begun_ns, int64_t{1'600'000'000'000'000'000});
  // An hour on; where the file system does not keep when a file was made, that tells nothing.
  const auto later = std::filesystem::file_time_type::clock::now() + std::chrono::hours(1);
  std::filesystem::last_write_time(path, later);
  if (*files_.BegunAt_ns(path) == *files_.ModifiedAt_ns(path)) GTEST_SKIP() << "no birth times";
  EXPECT_EQ(*files_.BegunAt_ns(path), *begun_ns);
  EXPECT_TRUE(absl::IsNotFound(files_.BegunAt_ns(folder_ + "/none").status()));
}

// An agent may have any name.
TEST_F(KernelFilesTest, TheLockIsInNoAgentsWay) {
  const auto lock = files_.Lock(folder_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto names = files_.List(folder_);
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    EXPECT_TRUE(name.starts_with('.')) << name << ": an agent's folder may be named so";
  }
  const absl::Status made = files_.MakeDirectories(folder_ + "/lock");
  EXPECT_TRUE(made.ok()) << made;
}

TEST(Names, ComeBack) {
  EXPECT_EQ(FileNameOf(42), "00000000000000000042.vpt");
  EXPECT_EQ(SequenceOfFileName("18446744073709551615.vpt"), UINT64_MAX);
  for (const char* name :
       {"18446744073709551616.vpt", "0000000000000000042.vpt", "00000000000000000042.vpt.damaged",
        "+0000000000000000042.vpt", ".vpt"}) {
    EXPECT_FALSE(SequenceOfFileName(name).has_value()) << name;
  }
  const timeline::StreamId stream{0x07, 0xAB};
  EXPECT_EQ(StreamOfHex(ToHex(stream)), stream);
  EXPECT_FALSE(StreamOfHex("07AB0000000000000000000000000000").has_value());
  EXPECT_EQ(ParentOf("/a/b"), "/a");
  EXPECT_EQ(ParentOf("/a//b/"), "/a");
  EXPECT_EQ(ParentOf("/a"), "/");
  EXPECT_EQ(ParentOf("a"), ".");
  EXPECT_EQ(ParentOf("/"), "/");
}

}  // namespace
}  // namespace vcpulse::stream
