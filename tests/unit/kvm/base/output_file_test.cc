#include "kvm/base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::recorder {
namespace {

namespace fs = std::filesystem;

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class OutputFileTest : public ::testing::Test {
 protected:
  size_t FilesInFolder() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(path_.parent_path()), fs::directory_iterator()));
  }

  fakes::ProcDir folder_;
  fs::path path_ = folder_.Path("out/x.vpt");
  void SetUp() override { fs::create_directories(path_.parent_path()); }
};

// Two recordings to one name: the second would push the first one's file away while it is written.
TEST_F(OutputFileTest, AFileThatIsBeingWrittenIsNotReplaced) {
  auto first = OutputFile::Create(path_);
  ASSERT_TRUE((*first)->Append(Bytes("one")).ok());
  const auto second = OutputFile::Create(path_);
  EXPECT_EQ(
      second.status().message(),
      path_.string() +
          " is being written by another recording: choose another file, or end that one first");
  first->reset();
  EXPECT_TRUE(OutputFile::Create(path_).ok());
  EXPECT_EQ(Contents(path_), "one");
}

// Neither has its name yet: each writes to a file of its own.
TEST_F(OutputFileTest, TwoThatBeginAtOnceDoNotMix) {
  auto first = OutputFile::Create(path_);
  auto second = OutputFile::Create(path_);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*first)->Append(Bytes("one")).ok());
  ASSERT_TRUE((*second)->Append(Bytes("two")).ok());
  EXPECT_EQ(Contents(path_), "two");
  EXPECT_EQ(Contents(path_.string() + ".old"), "one");
}

// A name never stands for less than a whole chunk.
TEST_F(OutputFileTest, AppearsWithItsFirstChunk) {
  auto file = OutputFile::Create(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE((*file)->Append(Bytes("one")).ok());
  EXPECT_EQ(Contents(path_), "one");
  ASSERT_TRUE((*file)->Append(Bytes("two")).ok());
  EXPECT_EQ(Contents(path_), "onetwo");
  EXPECT_EQ((*file)->bytes(), 6u);
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(OutputFileTest, KeepsTheOlderFile) {
  std::ofstream(path_) << "older";
  auto file = OutputFile::Create(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Contents(path_), "older");
  ASSERT_TRUE((*file)->Append(Bytes("new")).ok());
  EXPECT_EQ(Contents(path_), "new");
  EXPECT_EQ(Contents(path_.string() + ".old"), "older");
  EXPECT_EQ(FilesInFolder(), 2u);
}

// A recording that fails before its first chunk must not cost the file that was there.
TEST_F(OutputFileTest, WithoutAChunkNothingChanges) {
  std::ofstream(path_) << "older";
  {
    auto file = OutputFile::Create(path_);
  }
  EXPECT_EQ(Contents(path_), "older");
  EXPECT_EQ(FilesInFolder(), 1u);
}

// Where the older file cannot be kept, it is not given up for the new one.
TEST_F(OutputFileTest, AnOlderFileThatCannotBeKeptStays) {
  std::ofstream(path_) << "older";
  fs::create_directories(path_.string() + ".old/full");
  {
    auto file = OutputFile::Create(path_);
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE((*file)->Append(Bytes("new")).ok());
  }
  EXPECT_EQ(Contents(path_), "older");
  EXPECT_EQ(FilesInFolder(), 2u);
}

// A command that fails halfway must not put its half in the place of a good file.
TEST_F(OutputFileTest, AWholeFileAppearsWhenItIsFinished) {
  std::ofstream(path_) << "older";
  {
    auto file = OutputFile::Create(path_, OutputFile::Appears::kWhenFinished);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(Bytes("one")).ok());
    ASSERT_TRUE((*file)->Append(Bytes("two")).ok());
    EXPECT_EQ(Contents(path_), "older");
    ASSERT_TRUE((*file)->Finish().ok());
    EXPECT_EQ(Contents(path_), "onetwo");
    ASSERT_TRUE((*file)->Finish().ok()) << "it has its name";
  }
  EXPECT_EQ(Contents(path_), "onetwo");
  EXPECT_EQ(Contents(path_.string() + ".old"), "older");
  EXPECT_EQ(FilesInFolder(), 2u);
}

TEST_F(OutputFileTest, AWholeFileThatIsNotFinishedChangesNothing) {
  std::ofstream(path_) << "older";
  {
    auto file = OutputFile::Create(path_, OutputFile::Appears::kWhenFinished);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(Bytes("half")).ok());
  }
  EXPECT_EQ(Contents(path_), "older");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(OutputFileTest, AWholeFileThatCannotTakeItsNameLeavesTheOlderOne) {
  std::ofstream(path_) << "older";
  fs::create_directories(path_.string() + ".old/full");
  {
    auto file = OutputFile::Create(path_, OutputFile::Appears::kWhenFinished);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(Bytes("new")).ok());
    EXPECT_FALSE((*file)->Finish().ok());
  }
  EXPECT_EQ(Contents(path_), "older");
  EXPECT_EQ(FilesInFolder(), 2u);
}

// What is killed meanwhile must leave nothing behind.
TEST_F(OutputFileTest, HasNoNameUntilItIsFinished) {
  const auto file = OutputFile::Create(path_, OutputFile::Appears::kWhenFinished);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(Bytes("half")).ok());
  EXPECT_EQ(FilesInFolder(), 0u);
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_EQ(Contents(path_), "half");
  EXPECT_EQ(fs::status(path_).permissions() & fs::perms::owner_all,
            fs::perms::owner_read | fs::perms::owner_write);
}

// So that a command can end without a complaint where `| head` has seen enough.
TEST_F(OutputFileTest, AReaderThatWentAwayIsCancelled) {
  std::signal(SIGPIPE, SIG_IGN);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  auto file = OutputFile::Create(path_, OutputFile::Appears::kWhenFinished);
  close(reader);
  ASSERT_TRUE(file.ok());
  const absl::Status status = (*file)->Append(Bytes("x"));
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ToStd(status.message()), "cannot write " + path_.string() + ": Broken pipe");
}

TEST_F(OutputFileTest, AFullDeviceIsAnErrorThatNamesIt) {
  auto file = OutputFile::Create("/dev/full");
  ASSERT_TRUE(file.ok());
  const absl::Status status = (*file)->Append(Bytes("x"));
  EXPECT_EQ(
      ToStd(status.message()),
      "cannot write /dev/full (free some space or choose another file): No space left on device");
}

TEST_F(OutputFileTest, AMissingFolderIsAnErrorAtOnce) {
  const auto file = OutputFile::Create(folder_.Path("nowhere/x.vpt"));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(OutputFileTest, AFolderIsNoFile) {
  const auto file = OutputFile::Create(path_.parent_path());
  EXPECT_EQ(ToStd(file.status().message()),
            absl::StrCat("cannot write ", path_.parent_path().string(),
                         " (name a file in it): Is a directory"));
}

// A pipe of one page that its reader does not read, and is full.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(::mkfifo(Path().c_str(), 0600), 0);
    end_ = Fd(::open(Path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    EXPECT_GT(::fcntl(end_.get(), F_SETPIPE_SZ, 4096), 0);
    const std::string page(4096, 'x');
    while (::write(end_.get(), page.data(), page.size()) > 0) ++pages_;
  }

  std::string Path() const { return folder_.Path("pipe"); }

  // Reads until `size` bytes came after those that filled it, at most 10 s.
  std::string Read(size_t size) const {
    std::string all;
    const Deadline deadline(absl::Seconds(10));
    while (all.size() < pages_ * 4096 + size && !deadline.over()) {
      char some[4096];
      const ssize_t got = ::read(end_.get(), some, sizeof(some));
      if (got > 0) all.append(some, static_cast<size_t>(got));
    }
    return all.substr(std::min(all.size(), pages_ * 4096));
  }

 private:
  fakes::ProcDir folder_;
  Fd end_;
  size_t pages_ = 0;
};

std::unique_ptr<OutputThread> ThreadOn(const std::string& path) {
  auto file = OutputFile::Create(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return std::make_unique<OutputThread>(*std::move(file));
}

constexpr absl::Duration kSoon = absl::Milliseconds(50);
constexpr absl::Duration kLong = absl::Seconds(10);

TEST_F(OutputFileTest, TheThreadWritesAllInOrder) {
  auto output = ThreadOn(path_);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string chunk = std::to_string(i) + "\n";
    all += chunk;
    ASSERT_TRUE(output->Append(Bytes(chunk)).ok());
  }
  EXPECT_TRUE(output->Settle(Deadline(kLong)).ok());
  EXPECT_EQ(Contents(path_), all);
  ASSERT_TRUE(output->Append(Bytes("end")).ok());
  EXPECT_TRUE(output->Finish(Deadline(kLong)).ok());
  EXPECT_EQ(Contents(path_), all + "end");
}

TEST(OutputThread, AnOutputThatTakesNoDataKeepsNobodyWaiting) {
  const FullPipe pipe;
  auto output = ThreadOn(pipe.Path());
  ASSERT_TRUE(output->Append(Bytes("first")).ok());
  ASSERT_TRUE(output->Append(Bytes("second")).ok());
  EXPECT_FALSE(output->backlogged());
  const Deadline generous(kLong);
  EXPECT_TRUE(output->Settle(Deadline(kSoon)).ok());
  const absl::Status status = output->Finish(Deadline(kSoon));
  EXPECT_FALSE(generous.over());
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  const std::string text(status.message());
  EXPECT_NE(text.find("cannot write " + pipe.Path() + ": it takes no data"), text.npos) << text;
  EXPECT_NE(text.find("(11 bytes) of the recording were not written"), text.npos) << text;
  // What is left behind ends, and writes no more than it had begun.
  output.reset();
  EXPECT_EQ(pipe.Read(5), "first");
}

// A reader that comes late gets all of it.
TEST(OutputThread, WhatWaitedIsNotLost) {
  const FullPipe pipe;
  auto output = ThreadOn(pipe.Path());
  std::string all;
  for (int i = 0; i < 64; ++i) {
    all += std::string(1000, static_cast<char>('A' + i % 26));
    ASSERT_TRUE(output->Append(Bytes(all.substr(all.size() - 1000))).ok());
  }
  EXPECT_TRUE(output->Settle(Deadline(kSoon)).ok());
  EXPECT_EQ(pipe.Read(all.size()), all);
  EXPECT_TRUE(output->Finish(Deadline(kLong)).ok());
}

TEST(OutputThread, ItsMemoryIsBounded) {
  const FullPipe pipe;
  auto output = ThreadOn(pipe.Path());
  const std::string chunk(OutputThread::kBacklogBytes / 2, 'x');
  ASSERT_TRUE(output->Append(Bytes(chunk)).ok());
  EXPECT_FALSE(output->backlogged());
  ASSERT_TRUE(output->Append(Bytes(chunk)).ok());
  EXPECT_TRUE(output->backlogged());
  for (size_t i = 2; i < 2 * OutputThread::kMostBytes / OutputThread::kBacklogBytes; ++i) {
    ASSERT_TRUE(output->Append(Bytes(chunk)).ok());
  }
  EXPECT_EQ(output->Append(Bytes("x")).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(output->Finish(Deadline(kSoon)).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(OutputThread, TheFirstErrorStays) {
  auto output = ThreadOn("/dev/full");
  ASSERT_TRUE(output->Append(Bytes("one")).ok());
  const absl::Status status = output->Settle(Deadline(kLong));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(output->Append(Bytes("two")), status);
  EXPECT_EQ(output->Finish(Deadline(kLong)), status);
}

}  // namespace
}  // namespace vcpulse::recorder
