// Seeking by time, several streams in one input, and where the bytes come from.

#include "monitor/timeline/reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST(TimeRangeReading, GivesWhatLiesInside) {
  const SmallTimeline timeline(4);
  const int64_t from = timeline.ticks[4].sample.wake_ns;
  const int64_t to = timeline.ticks[7].sample.wake_ns;
  const Seen seen = ReadBytes(timeline.bytes, {.from_mono_ns = from, .to_mono_ns = to});
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, std::vector(timeline.ticks.begin() + 4, timeline.ticks.begin() + 8));
  EXPECT_EQ(seen.report->chunks, 2u);
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
  // What the ticks need comes although its own records were skipped.
  EXPECT_THAT(seen.others, testing::Contains(StartsWith("0 Session")));
  EXPECT_THAT(seen.others, testing::Contains(StartsWith("0 VcpuSet")));
}

TEST(TimeRangeReading, BoundsAreInclusive) {
  const SmallTimeline timeline(3);
  const int64_t at = timeline.ticks[5].sample.wake_ns;
  EXPECT_THAT(ReadBytes(timeline.bytes, {.from_mono_ns = at, .to_mono_ns = at}).ticks,
              ElementsAre(timeline.ticks[5]));
  EXPECT_THAT(ReadBytes(timeline.bytes, {.from_mono_ns = at + 1, .to_mono_ns = at + 1}).ticks,
              IsEmpty());
  EXPECT_THAT(ReadBytes(timeline.bytes, {.from_mono_ns = at, .to_mono_ns = {}}).ticks, SizeIs(4));
  const int64_t first_of_chunk = timeline.ticks[6].sample.wake_ns;
  EXPECT_THAT(ReadBytes(timeline.bytes, {.from_mono_ns = {}, .to_mono_ns = first_of_chunk}).ticks,
              SizeIs(7));
}

// A seek must not read what it skips: damage in there goes unseen.
TEST(TimeRangeReading, SkippedPayloadsAreNotRead) {
  const SmallTimeline timeline(4);
  Bytes bytes = timeline.bytes;
  const size_t second = timeline.chunks[0].size();
  bytes[kChunkHeaderBytes + 5] ^= 0xff;           // payload of chunk 0
  bytes[second + kChunkHeaderBytes + 5] ^= 0xff;  // payload of chunk 1
  bytes.back() ^= 0xff;                           // payload of chunk 3
  const TimeRange range = {.from_mono_ns = timeline.ticks[6].sample.wake_ns,
                           .to_mono_ns = timeline.ticks[8].sample.wake_ns};
  const Seen seen = ReadBytes(bytes, range);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_THAT(seen.ticks, SizeIs(3));
  EXPECT_THAT(seen.report->damages, IsEmpty());
  EXPECT_EQ(seen.report->lost_records, 0u);
}

// A cut chunk is told even where it would have been skipped, and what stands behind it is found.
TEST(TimeRangeReading, CutChunksAreToldWhenSkipped) {
  const SmallTimeline timeline(3);
  const TimeRange range = {.from_mono_ns = timeline.ticks[6].sample.wake_ns, .to_mono_ns = {}};
  std::vector<Bytes> parts = timeline.chunks;
  parts[1].resize(parts[1].size() - 1);
  const Seen seen = ReadBytes(Concatenate(parts), range);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_THAT(seen.ticks, SizeIs(3));
  EXPECT_THAT(seen.report->damages, SizeIs(1));
  EXPECT_EQ(seen.report->lost_records, 3u);
  const Seen tail = ReadBytes(std::span(timeline.bytes).first(timeline.bytes.size() - 1),
                              {.from_mono_ns = {}, .to_mono_ns = 0});
  ASSERT_TRUE(tail.report.ok()) << tail.report.status();
  ASSERT_THAT(tail.report->damages, SizeIs(1));
  EXPECT_THAT(tail.report->damages[0].reason, HasSubstr("ends inside a chunk"));
}

// `cat a.vpt b.vpt`: two streams, nothing lost between them.
TEST(Streams, FilesMayBeConcatenated) {
  const SmallTimeline a(2, 1);
  const SmallTimeline b(3, 2);
  const Seen seen = ReadBytes(Concatenate({a.bytes, b.bytes}));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  std::vector<SeenTick> both = a.ticks;
  both.insert(both.end(), b.ticks.begin(), b.ticks.end());
  EXPECT_EQ(seen.ticks, both);
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
  // The second stream's context is its own, even where its first chunk is missing.
  const Seen later = ReadBytes(Concatenate({a.bytes, b.chunks[1]}));
  EXPECT_EQ(std::count_if(later.others.begin(), later.others.end(),
                          [](const std::string& text) { return text.find("VcpuSet") == 2; }),
            2);
}

// A chunk that was sent twice must not count its ticks twice.
TEST(Streams, RepeatedChunksArePassedOver) {
  const SmallTimeline timeline(3);
  const Seen seen = ReadBytes(Concatenate(
      {timeline.chunks[0], timeline.chunks[1], timeline.chunks[1], timeline.chunks[2]}));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.ticks);
  EXPECT_EQ(seen.report->lost_records, 0u);
  ASSERT_THAT(seen.report->damages, SizeIs(1));
  EXPECT_THAT(seen.report->damages[0].reason, HasSubstr("repeats"));
  EXPECT_EQ(seen.report->damages[0].bytes, timeline.chunks[1].size());
}

// "Ended in order" is about the end of the input, not about some Summary in it.
TEST(Streams, LossBehindASummaryIsNoOrderlyEnd) {
  const SmallTimeline a(2, 1);
  EXPECT_TRUE(ReadBytes(a.bytes).report->ended_in_order);
  Bytes b = SmallTimeline(1, 2).bytes;
  b.back() ^= 1;
  EXPECT_FALSE(ReadBytes(Concatenate({a.bytes, b})).report->ended_in_order);
}

TEST(Streams, SinkErrorStopsTheReading) {
  const SmallTimeline timeline(3);
  int calls = 0;
  const auto report = ReadTimelineBytes(timeline.bytes, [&](const Entry&) {
    return ++calls == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(report.status(), absl::CancelledError("enough"));
  EXPECT_EQ(calls, 3);
}

// A folder of its own for each test, gone afterwards.
class TimelineFile : public testing::Test {
 protected:
  TimelineFile() { folder_ = fakes::MakeTemporaryFolder(); }
  ~TimelineFile() override { std::filesystem::remove_all(folder_); }

  std::string Write(std::span<const uint8_t> bytes) const {
    const std::string path = folder_ + "/t.vpt";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  std::string folder_;
};

TEST_F(TimelineFile, ReadsLikeBytes) {
  const SmallTimeline timeline(4);
  Seen seen;
  seen.report = ReadTimeline(Write(timeline.bytes), SinkInto(&seen));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.ticks);
}

// One clear line each, naming the file.
TEST_F(TimelineFile, SaysWhatIsWrongWithTheFile) {
  const auto read = [](const std::string& path) {
    return ReadTimeline(path, [](const Entry&) { return absl::OkStatus(); }).status();
  };
  const std::string missing = folder_ + "/missing.vpt";
  EXPECT_TRUE(absl::IsNotFound(read(missing))) << read(missing);
  EXPECT_THAT(std::string(read(missing).message()), HasSubstr(missing));
  EXPECT_TRUE(absl::IsInvalidArgument(read(folder_))) << read(folder_);
  EXPECT_THAT(std::string(read(folder_).message()), HasSubstr(folder_ + " is a directory"));
  const std::string path = Write({});
  EXPECT_TRUE(absl::IsInvalidArgument(read(path))) << read(path);
  EXPECT_THAT(std::string(read(path).message()), StartsWith(path + " is empty: "));
  const std::string text = "PERFILE2 or anything else";
  Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  EXPECT_TRUE(absl::IsInvalidArgument(read(path))) << read(path);
  EXPECT_THAT(std::string(read(path).message()), StartsWith(path + " is not a vcpulse timeline"));
}

TEST_F(TimelineFile, UnreadableFileIsNamed) {
  const std::string path = Write(SmallTimeline(1).bytes);
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;  // which may read every file
  if (root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const auto report = ReadTimeline(path, [](const Entry&) { return absl::OkStatus(); });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_TRUE(absl::IsPermissionDenied(report.status())) << report.status();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr(path));
}

// A pipe cannot be read at an offset; recovery and ranges must work all the same, in any portions.
TEST_F(TimelineFile, PipesReadLikeFiles) {
  const SmallTimeline timeline(4);
  std::vector<Bytes> parts = timeline.chunks;
  parts[1].resize(parts[1].size() - 20);
  const Bytes bytes = Concatenate(parts);
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread feeder([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < bytes.size(); i += 37) {
      const size_t length = std::min<size_t>(37, bytes.size() - i);
      if (::write(fd, bytes.data() + i, length) != static_cast<ssize_t>(length)) break;
    }
    ::close(fd);
  });
  Seen seen;
  seen.report = ReadTimeline(path, SinkInto(&seen),
                             {.from_mono_ns = timeline.ticks[1].sample.wake_ns, .to_mono_ns = {}});
  feeder.join();
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  std::vector<SeenTick> expected = timeline.TicksWithout({1});
  expected.erase(expected.begin());
  EXPECT_EQ(seen.ticks, expected);
  EXPECT_EQ(seen.report->lost_records, 3u);
}

// A window that moved all that it holds for each header, or grew by all that one claims, took
// minutes.
TEST_F(TimelineFile, PipesOfOverlappingHeadersTakeLittleTime) {
  for (const bool beyond : {false, true}) {
    const Bytes bytes = OverlappingHeaders(40'000, kMaxPayloadBytes, beyond);
    const std::string path = folder_ + (beyond ? "/pipe2" : "/pipe1");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::clock_t begin = std::clock();
    std::thread feeder([&] {
      std::ofstream out(path, std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    });
    Seen seen;
    seen.report = ReadTimeline(path, SinkInto(&seen));
    feeder.join();
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    EXPECT_LT(std::clock() - begin, 3 * CLOCKS_PER_SEC);
  }
}

}  // namespace
}  // namespace vcpulse::timeline
