// A folder of timelines where a file was expected before.

#include "tools/vcpulse/timeline_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "monitor/reading/part.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse {
namespace {

using ::testing::HasSubstr;

class FolderInput : public testing::Test {
 protected:
  FolderInput() : folder_(fakes::MakeTemporaryFolder()) {
    std::filesystem::create_directory(folder_ + "/in");
    Write("in/1.vpt", timeline_.chunks[0]);
  }
  ~FolderInput() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const timeline::Bytes& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  absl::Status Check(const std::string& output) const {
    return tools::CheckNotSameFile(folder_ + "/in", folder_ + "/" + output);
  }

  const timeline::SmallTimeline timeline_{2};
  std::string folder_;
};

TEST_F(FolderInput, IsReadAgainAndNotKeptInMemory) {
  const auto input = reading::RepeatableInput::Open(folder_ + "/in");
  ASSERT_TRUE(input.ok()) << input.status();
  timeline::Seen seen;
  seen.report = input->Read(timeline::SinkInto(&seen));
  const size_t before = seen.ticks.size();
  Write("in/2.vpt", timeline_.chunks[1]);
  timeline::Seen again;
  again.report = input->Read(timeline::SinkInto(&again));
  EXPECT_EQ(before, 3);
  EXPECT_EQ(again.ticks, timeline_.ticks);
}

TEST_F(FolderInput, OutputMustNotBecomeAPartOfIt) {
  EXPECT_TRUE(absl::IsInvalidArgument(Check("in/1.vpt")));
  EXPECT_TRUE(absl::IsInvalidArgument(Check("in/new.vpt")));
  EXPECT_THAT(std::string(Check("in/new.vpt").message()), HasSubstr("lies in the folder"));
  std::filesystem::create_symlink(folder_ + "/in/1.vpt", folder_ + "/link");
  EXPECT_TRUE(absl::IsInvalidArgument(Check("link")));
  EXPECT_TRUE(Check("out.vpt").ok()) << Check("out.vpt");
  EXPECT_TRUE(Check("in/table.csv").ok());
}

}  // namespace
}  // namespace vcpulse
