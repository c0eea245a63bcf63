#include "tools/vcpulse/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kvm/base/fd.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::tools {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(ProgressLine, TimeLeftIsInProportion) {
  EXPECT_EQ(ProgressLine("web.vpt", kGiB / 4, kGiB, absl::Seconds(4), 80),
            "reading web.vpt: 25 % of 1 GiB, 12 s left");
  EXPECT_EQ(ProgressLine("web.vpt", kGiB / 100, kGiB, absl::Seconds(2), 80),
            "reading web.vpt: 0 % of 1 GiB, 3 min 18 s left");
  EXPECT_EQ(ProgressLine("web.vpt", kGiB - 1, kGiB, absl::Seconds(30), 80),
            "reading web.vpt: 99 % of 1 GiB, 1 s left");
}

TEST(ProgressLine, NothingReadYetPromisesNothing) {
  EXPECT_EQ(ProgressLine("web.vpt", 0, kGiB, absl::Seconds(4), 80),
            "reading web.vpt: 0 % of 1 GiB");
}

TEST(ProgressLine, AnUnknownLengthHasNoShare) {
  EXPECT_EQ(ProgressLine("standard input", kGiB, std::nullopt, absl::Seconds(61), 80),
            "reading standard input: 1 GiB so far, 1 min 1 s");
}

TEST(ProgressLine, WhatComesAfterReadingIsWork) {
  EXPECT_EQ(ProgressLine("web.vpt", kGiB + 7, kGiB, absl::Seconds(5), 80),
            "read web.vpt: all of 1 GiB, at work for 5 s");
}

TEST(ProgressLine, FitsItsTerminal) {
  EXPECT_EQ(ProgressLine("web.vpt", 1, 4, absl::Seconds(5), 11), "reading web");
}

TEST(BytesToRead, OfFilesAndFolders) {
  const std::string folder = fakes::MakeTemporaryFolder();
  std::filesystem::create_directory(folder + "/parts");
  for (const char* const name : {"a.vpt", "parts/1.vpt", "parts/2.vpt", "parts/notes"}) {
    std::ofstream(folder + "/" + name) << "12345";
  }
  EXPECT_EQ(BytesToRead({folder + "/a.vpt"}), 5U);
  EXPECT_EQ(BytesToRead({folder + "/parts"}), 10U);
  EXPECT_EQ(BytesToRead({folder + "/a.vpt", folder + "/parts"}, 2), 30U);
  EXPECT_EQ(BytesToRead({folder + "/a.vpt", "-"}), std::nullopt);
  std::filesystem::remove_all(folder);
}

// One of the standard streams is `stand_in` as long as this lives.
class StreamIs {
 public:
  StreamIs(int stream, const Fd& stand_in) : stream_(stream), before_(dup(stream)) {
    dup2(stand_in.get(), stream_);
  }
  ~StreamIs() { dup2(before_.get(), stream_); }

 private:
  int stream_;
  Fd before_;
};

// What comes out within 3 s, up to `wanted`.
std::string Out(const Fd& end, const std::string& wanted) {
  std::string text;
  std::array<char, 1024> buffer{};
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (text.find(wanted) == std::string::npos && std::chrono::steady_clock::now() < give_up) {
    pollfd waits{.fd = end.get(), .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, 100) != 1) continue;
    const ssize_t got = read(end.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

// Reads a quarter of what Progress is told of.
void ReadAQuarterOf(size_t bytes) {
  const Fd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  std::vector<char> buffer(bytes / 4);
  ASSERT_EQ(read(zero.get(), buffer.data(), buffer.size()), static_cast<ssize_t>(buffer.size()));
}

constexpr size_t kBytes = 64 << 20;

// What a terminal on standard error sees where a quarter of kBytes is read, and what it sees after
// Stop(). Standard output is `out`.
std::pair<std::string, std::string> Seen(const Fd& out, Writes writes) {
  int ends[2];
  EXPECT_EQ(openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  const Fd screen(ends[0]);
  const Fd terminal(ends[1]);
  std::fflush(stdout);
  const StreamIs errors(STDERR_FILENO, terminal);
  const StreamIs output(STDOUT_FILENO, out.valid() ? out : terminal);
  ReadProgress progress("web.vpt", kBytes, writes);
  // The kernel's count is of this process, so what it reads once Progress has begun counts.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ReadAQuarterOf(kBytes);
  std::pair<std::string, std::string> seen;
  seen.first = Out(screen, " left");
  progress.Stop();
  seen.second = Out(screen, "\033[K");
  return seen;
}

TEST(ReadProgress, IsShownOnATerminalAndRemoved) {
  const auto [line, after] = Seen(Fd(), Writes::kFile);
  EXPECT_THAT(line, HasSubstr("\r\033[Kvcpulse: reading web.vpt: 25 % of 64 MiB"));
  EXPECT_TRUE(after.ends_with("\r\033[K")) << after;
}

// Its reader may own the screen; and a result on the terminal must not be erased.
TEST(ReadProgress, IsNotShownOverWhatElseMayBeThere) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  const Fd pipe(ends[1]);
  EXPECT_EQ(Seen(pipe, Writes::kFile).first, "");
  EXPECT_EQ(Seen(Fd(), Writes::kStdout).first, "");
}

TEST(ReadProgress, NothingGoesIntoAPipe) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const Fd end(ends[0]);
  const Fd pipe(ends[1]);
  const Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::fflush(stdout);
  {
    const StreamIs errors(STDERR_FILENO, pipe);
    const StreamIs output(STDOUT_FILENO, null);
    ReadProgress progress("web.vpt", kBytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    progress.Stop();
    SayWritten("/dev/null");
  }
  char byte = 0;
  EXPECT_EQ(read(end.get(), &byte, 1), -1);
}

}  // namespace
}  // namespace vcpulse::tools
