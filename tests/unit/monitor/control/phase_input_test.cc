// Markers from standard input.
#include "monitor/control/phase_input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kvm/base/fd.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

int64_t PhaseNow_ns() { return 4711; }

class PhaseInputTest : public ::testing::Test {
 protected:
  PhaseInputTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    read_end_ = Fd(ends[0]);
    write_end_ = Fd(ends[1]);
  }

  std::unique_ptr<PhaseInput> Open(int fd) {
    auto input =
        PhaseInput::Open(context_, fd, PhaseNow_ns,
                         {.mark =
                              [this](const std::string& name, int64_t now_ns) {
                                EXPECT_EQ(now_ns, 4711);
                                names_.push_back(name);
                              },
                          .say = [this](const std::string& line) { said_.push_back(line); }});
    EXPECT_TRUE(input.ok()) << input.status();
    return input.ok() ? *std::move(input) : nullptr;
  }

  void Write(const std::string& text) {
    EXPECT_EQ(write(write_end_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  boost::asio::io_context context_;
  Fd read_end_;
  Fd write_end_;
  std::vector<std::string> names_;
  std::vector<std::string> said_;
};

TEST_F(PhaseInputTest, EachLineIsAMarkerUntilTheEnd) {
  const auto input = Open(read_end_.get());
  Write("boot\nload ");
  context_.poll();
  EXPECT_THAT(names_, ElementsAre("boot"));
  Write("phase\r\nboot\nlast");
  write_end_ = Fd();
  context_.run();  // returns: the end of the input ends the reading
  EXPECT_THAT(names_, ElementsAre("boot", "load phase", "boot", "last"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PhaseInputTest, WhatIsNoMarkerIsSkippedAndSaidOnce) {
  const auto input = Open(read_end_.get());
  Write("a\n\n\nb\tc\n" + std::string(5000, 'x') + "\nd\n");
  write_end_ = Fd();
  context_.run();
  EXPECT_THAT(names_, ElementsAre("a", "d"));
  const std::string skipped = "a line of standard input is not a marker and is skipped: ";
  EXPECT_THAT(said_,
              ElementsAre(skipped + "column 1: a marker needs a name",
                          skipped + "column 2: the name of a marker has no control characters",
                          skipped + "column 4097: a line has at most 4096 bytes"));
}

// A shell shares its terminal with us.
TEST_F(PhaseInputTest, TheDescriptorKeepsItsBlockingMode) {
  const auto input = Open(read_end_.get());
  Write("x\n");
  context_.poll();
  EXPECT_THAT(names_, ElementsAre("x"));
  EXPECT_EQ(fcntl(read_end_.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(PhaseInputTest, AFileIsReadToItsEnd) {
  const std::filesystem::path folder = fakes::MakeTemporaryFolder();
  std::ofstream(folder / "phases") << "one\ntwo\n";
  const Fd file(open((folder / "phases").c_str(), O_RDONLY | O_CLOEXEC));
  const auto input = Open(file.get());
  context_.run();
  EXPECT_THAT(names_, ElementsAre("one", "two"));
  std::filesystem::remove_all(folder);
}

TEST_F(PhaseInputTest, WhatCannotBeReadIsSaidAndIsTheEnd) {
  const Fd folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto input = Open(folder.get());
  context_.run();
  EXPECT_THAT(said_, ElementsAre("standard input cannot be read: Is a directory; no more markers "
                                 "come from it"));
}

TEST_F(PhaseInputTest, WhatWaitsIsTakenInTheEndWithoutWaitingForMore) {
  const auto input = Open(read_end_.get());
  input->TakeWaiting();
  Write("one\ntwo\nhalf");
  input->TakeWaiting();
  EXPECT_THAT(names_, ElementsAre("one", "two"));
  write_end_ = Fd();
  input->TakeWaiting();
  input->TakeWaiting();
  EXPECT_THAT(names_, ElementsAre("one", "two", "half"));
}

TEST_F(PhaseInputTest, NothingIsReadAfterItsEnd) {
  auto input = Open(read_end_.get());
  input.reset();
  Write("x\n");
  context_.run();
  EXPECT_THAT(names_, IsEmpty());
}

TEST_F(PhaseInputTest, AClosedDescriptorIsAnError) {
  const auto input = PhaseInput::Open(context_, -1, PhaseNow_ns, {});
  EXPECT_FALSE(input.ok());
}

}  // namespace
}  // namespace vcpulse::control
