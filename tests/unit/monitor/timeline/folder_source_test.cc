#include "monitor/timeline/folder_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A folder that a test fills with timelines.
class FolderOfTimelines : public testing::Test {
 protected:
  FolderOfTimelines() : folder_(fakes::MakeTemporaryFolder()) {}
  ~FolderOfTimelines() override { std::filesystem::remove_all(folder_); }

  // Appends.
  void Write(const std::string& name, std::span<const uint8_t> bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  static std::vector<uint8_t> ReadAll(ByteSource& source, size_t at_once) {
    std::vector<uint8_t> all;
    std::vector<uint8_t> bytes(at_once);
    while (true) {
      const auto got = source.ReadAt(all.size(), bytes);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok() || *got == 0) return all;
      all.insert(all.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(*got));
    }
  }
  static std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

  std::string folder_;
};

TEST_F(FolderOfTimelines, ReadsLikeOneFile) {
  const SmallTimeline timeline(4);
  Write("2.vpt", timeline.chunks[2]);
  Write("1.vpt", Concatenate({timeline.chunks[0], timeline.chunks[1]}));
  Write("3.vpt", timeline.chunks[3]);
  Write("1.vpt.damaged", timeline.chunks[0]);
  Write("notes.txt", Bytes("notes"));
  std::filesystem::create_directory(folder_ + "/4.vpt");
  Seen seen;
  seen.report = ReadTimeline(folder_, SinkInto(&seen));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.ticks);
  EXPECT_TRUE(seen.report->damages.empty());
  EXPECT_TRUE(seen.report->ended_in_order);
}

TEST_F(FolderOfTimelines, ReadsFromAnyOffset) {
  Write("a.vpt", Bytes("0123"));
  Write("b.vpt", Bytes(""));
  Write("c.vpt", Bytes("456789"));
  for (size_t at_once = 1; at_once < 12; ++at_once) {
    const auto source = OpenByteSource(folder_);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(ReadAll(**source, at_once), Bytes("0123456789"));
    std::vector<uint8_t> back(3);
    EXPECT_EQ(*(*source)->ReadAt(2, back), 3);
    EXPECT_EQ(back, Bytes("234"));
  }
  const auto source = OpenByteSource(folder_);
  std::vector<uint8_t> last(1);
  EXPECT_EQ(*(*source)->ReadAt(9, last), 1) << "without having read what is before it";
  EXPECT_EQ(last, Bytes("9"));
  EXPECT_EQ(*(*source)->ReadAt(10, last), 0);
}

TEST_F(FolderOfTimelines, FilesGrowAndAppearWhileItIsRead) {
  Write("a.vpt", Bytes("01"));
  const auto source = OpenByteSource(folder_);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(ReadAll(**source, 5), Bytes("01"));
  Write("a.vpt", Bytes("23"));
  Write("b.vpt", Bytes("45"));
  EXPECT_EQ(ReadAll(**source, 5), Bytes("012345"));
  Write("b.vpt", Bytes("6"));
  EXPECT_EQ(ReadAll(**source, 5), Bytes("0123456"));
}

TEST_F(FolderOfTimelines, FilesGoWhileItIsRead) {
  Write("a.vpt", Bytes("01"));
  Write("b.vpt", Bytes("23"));
  Write("c.vpt", Bytes("45"));
  const auto source = OpenByteSource(folder_);
  std::filesystem::remove(folder_ + "/b.vpt");
  EXPECT_EQ(ReadAll(**source, 5), Bytes("0145"));
}

TEST_F(FolderOfTimelines, SaysWhereTimelinesAre) {
  const auto message = [&] { return std::string(OpenByteSource(folder_).status().message()); };
  EXPECT_TRUE(absl::IsInvalidArgument(OpenByteSource(folder_).status()));
  EXPECT_THAT(message(), EndsWith(folder_ + " is a directory that holds no timeline (*.vpt)"));
  std::filesystem::create_directories(folder_ + "/agent/stream");
  EXPECT_THAT(message(), EndsWith("(*.vpt)"));
  Write("agent/stream/1.vpt", {});
  EXPECT_THAT(message(), EndsWith("; there are some in " + folder_ + "/agent/stream"));
}

TEST_F(FolderOfTimelines, NamesSomeOfManyFoldersWithTimelines) {
  for (const char* agent : {"a", "b", "c"}) {
    for (const char* stream : {"1", "2"}) {
      const std::string folder = std::string(agent) + "/" + stream;
      std::filesystem::create_directories(folder_ + "/" + folder);
      Write(folder + "/x.vpt", {});
    }
  }
  EXPECT_THAT(std::string(OpenByteSource(folder_).status().message()),
              EndsWith("; there are some in " + folder_ + "/a/1, " + folder_ + "/a/2, " + folder_ +
                       "/b/1, " + folder_ + "/b/2 and 2 more: name one of these"));
}

TEST_F(FolderOfTimelines, SeparateRecordingsAreNamed) {
  const SmallTimeline one(3, 1);
  const SmallTimeline two(3, 2);
  Write("a.vpt", one.bytes);
  Write("b.vpt", two.bytes);
  const auto refusal = [&] {
    bool given = false;
    const auto report = ReadTimeline(folder_, [&](const Entry&) {
      given = true;
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
    EXPECT_FALSE(given) << "before it was known that there are two";
    return std::string(report.status().message());
  };
  EXPECT_EQ(refusal(), folder_ +
                           " holds 2 separate recordings, and one is read at a time: name one of " +
                           folder_ + "/a.vpt, " + folder_ + "/b.vpt");
  Write("c.vpt", two.chunks[2]);
  Write("torn.vpt", Bytes("no chunk at all"));
  EXPECT_THAT(refusal(),
              EndsWith(folder_ + "/b.vpt (first of 2 files, which `vcpulse merge` joins)"));
  for (uint8_t i = 3; i < 9; ++i) {
    Write("d" + std::to_string(i) + ".vpt", SmallTimeline(1, i).bytes);
  }
  EXPECT_THAT(refusal(), AllOf(HasSubstr(" holds 8 separate recordings"),
                               EndsWith(folder_ + "/d4.vpt and 4 more")));
}

TEST_F(FolderOfTimelines, EmptyFilesAreNoTimeline) {
  Write("1.vpt", {});
  const auto report = ReadTimeline(folder_, [](const Entry&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("is empty"));
}

}  // namespace
}  // namespace vcpulse::timeline
