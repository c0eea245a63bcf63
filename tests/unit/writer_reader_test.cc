#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "monitor/core/delta.h"
#include "monitor/timeline/utf8_texts.h"
#include "tests/unit/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr StreamId kStream = {9};

v1::ClockSnapshot ClockAt(int64_t mono_ns) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  return clock;
}

v1::TimelineRecord SetRecord(v1::VcpuSet set) {
  v1::TimelineRecord record;
  *record.mutable_vcpu_set() = std::move(set);
  return record;
}

std::vector<uint64_t> Count(uint64_t first, uint64_t last) {
  std::vector<uint64_t> numbers;
  for (uint64_t n = first; n <= last; ++n) numbers.push_back(n);
  return numbers;
}

// A folder of its own for each test, gone afterwards.
class TimelineFile : public testing::Test {
 protected:
  TimelineFile() {
    std::string pattern = testing::TempDir() + "timeline.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
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

TEST(WriterReader, EverythingComesBack) {
  const SmallTimeline timeline(4);
  const Seen seen = ReadBytes(timeline.bytes);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.ticks);
  EXPECT_EQ(seen.sequences, Count(1, 15));
  EXPECT_EQ(seen.report->records, 15u);
  EXPECT_EQ(seen.report->chunks, 4u);
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
  EXPECT_TRUE(seen.report->ended_in_order);
  ASSERT_THAT(seen.others, SizeIs(7));  // no second Session or VcpuSet from the later chunks
  EXPECT_THAT(seen.others[0], StartsWith("0 ClockSnapshot"));
  EXPECT_EQ(seen.others[1], "1 Session host_name: \"small\"");
  EXPECT_THAT(seen.others[2], StartsWith("2 VcpuSet vm: 1 epoch: 1"));
  EXPECT_THAT(seen.others[3], StartsWith("0 ClockSnapshot"));
  EXPECT_EQ(seen.others[6], "15 Summary ticks: 12");
}

// Several VMs, an epoch that ends and the next one, and every kind of record between them.
TEST(WriterReader, VmsAndRecordsComeBackInOrder) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  fakes::SyntheticVm one({fakes::Load::kBusy, fakes::Load::kShared}, 10'000'000, 1);
  fakes::SyntheticVm two({fakes::Load::kIdle}, 10'000'000, 2);
  std::vector<SeenTick> expected;
  uint64_t sequence = 0;
  const auto add = [&](v1::TimelineRecord record) {
    writer->Add(std::move(record), 5);
    ++sequence;
  };
  const auto tick = [&](fakes::SyntheticVm& vm, uint32_t number, uint32_t epoch) {
    std::optional<core::Sample> previous;
    for (const SeenTick& before : expected) {
      if (before.vm == number && before.epoch == epoch) previous = before.sample;
    }
    const core::Sample& sample = vm.Next();
    writer->AddTick(number, epoch, sample, vm.Verdicts());
    expected.push_back({++sequence, number, epoch, sample, vm.Verdicts(), previous});
  };
  add(SessionRecord("h"));
  add(SetRecord(one.VcpuSet(1, 1)));
  add(SetRecord(two.VcpuSet(2, 1)));
  for (int i = 0; i < 3; ++i) {
    tick(one, 1, 1);
    add(MarkerRecord("phase", 7));
    tick(two, 2, 1);
  }
  ASSERT_TRUE(writer->Flush(ClockAt(8)).ok());
  tick(two, 2, 1);
  tick(one, 1, 1);
  writer->EndEpoch(1, 1);
  v1::TimelineRecord record;
  record.mutable_gap()->set_vm(1);
  add(record);
  record.mutable_life_cycle()->set_detail("a vCPU was unplugged");
  add(record);
  fakes::SyntheticVm smaller({fakes::Load::kBusy}, 10'000'000, 3);
  add(SetRecord(smaller.VcpuSet(1, 2)));
  tick(smaller, 1, 2);
  tick(two, 2, 1);
  ASSERT_TRUE(writer->Flush(ClockAt(9)).ok());
  record.mutable_clock_snapshot()->set_realtime_ns(77);
  add(record);
  writer->EndEpoch(2, 1);
  ASSERT_TRUE(writer->Flush(ClockAt(10)).ok());

  const Seen seen = ReadBytes(Concatenate(chunks));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, expected);
  EXPECT_EQ(seen.sequences, Count(1, sequence));
  EXPECT_EQ(chunks.size(), 3u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
  EXPECT_THAT(seen.others, testing::Contains(HasSubstr("LifeCycle detail: \"a vCPU was")));
  EXPECT_THAT(seen.others, testing::Contains(HasSubstr("ClockSnapshot realtime_ns: 77")));
}

// Each chunk must be readable alone: a rotated, dropped or damaged one never orphans the next.
TEST(WriterReader, EachChunkIsReadableAlone) {
  const SmallTimeline timeline(4);
  for (size_t c = 0; c < timeline.chunks.size(); ++c) {
    SCOPED_TRACE(c);
    const Seen seen = ReadBytes(timeline.chunks[c]);
    ASSERT_TRUE(seen.report.ok()) << seen.report.status();
    const auto from = timeline.ticks.begin() + static_cast<ptrdiff_t>(3 * c);
    EXPECT_EQ(seen.ticks, std::vector(from, from + 3));  // `previous` too
    EXPECT_THAT(seen.others, testing::Contains(HasSubstr("Session host_name: \"small\"")));
    EXPECT_THAT(seen.others, testing::Contains(HasSubstr("VcpuSet vm: 1 epoch: 1")));
    EXPECT_THAT(seen.others, testing::Contains(StartsWith("0 ClockSnapshot")));
    EXPECT_EQ(seen.report->lost_records, 0u);
  }
}

TEST(WriterReader, NothingIsWrittenForNothing) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_THAT(chunks, IsEmpty());
  writer->Add(MarkerRecord("a", 5), 5);
  EXPECT_TRUE(writer->Flush(ClockAt(6)).ok());
  EXPECT_TRUE(writer->Flush(ClockAt(7)).ok());
  EXPECT_THAT(chunks, SizeIs(1));
}

// The range in the header is what a seek goes by.
TEST(WriterReader, HeaderHasTheRangesOfTheRecordsInside) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  writer->Add(MarkerRecord("a", 70), 70);
  writer->Add(MarkerRecord("b", 50), 50);
  writer->Add(MarkerRecord("c", 60), 60);
  EXPECT_TRUE(writer->Flush(ClockAt(100)).ok());
  writer->Add(MarkerRecord("d", -3), -3);
  EXPECT_TRUE(writer->Flush(ClockAt(100)).ok());
  const auto first = DecodeChunkHeader(chunks.at(0));
  const auto second = DecodeChunkHeader(chunks.at(1));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->stream_id, kStream);
  EXPECT_EQ(first->first_sequence, 1u);
  EXPECT_EQ(first->last_sequence, 3u);
  EXPECT_EQ(first->first_mono_ns, 50);
  EXPECT_EQ(first->last_mono_ns, 70);
  EXPECT_EQ(second->first_sequence, 4u);
  EXPECT_EQ(second->first_mono_ns, -3);
  EXPECT_EQ(second->last_mono_ns, -3);
}

// A full disk: the error comes out, the hole shows, and the writer can go on.
TEST(WriterReader, FailedSinkLeavesAHole) {
  Bytes file;
  bool full = false;
  const auto writer = NewChunkWriter(kStream, [&](std::span<const uint8_t> bytes) {
    if (full) return absl::ResourceExhaustedError("no space left on device");
    file.insert(file.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  fakes::SyntheticVm vm({fakes::Load::kBusy}, 10'000'000, 1);
  writer->Add(SetRecord(vm.VcpuSet(1, 1)), 1);
  std::vector<core::Sample> samples;
  for (int second = 0; second < 3; ++second) {
    full = second == 1;
    for (int i = 0; i < 2; ++i) {
      samples.push_back(vm.Next());
      writer->AddTick(1, 1, samples.back(), vm.Verdicts());
    }
    const absl::Status status = writer->Flush(ClockAt(1));
    EXPECT_EQ(status.message(), full ? "no space left on device" : "");
  }
  const Seen seen = ReadBytes(file);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_THAT(seen.sequences, ElementsAre(1, 2, 3, 6, 7));
  EXPECT_EQ(seen.report->lost_records, 2u);
  ASSERT_THAT(seen.ticks, SizeIs(4));
  // The first tick behind the hole still knows the sample it follows.
  EXPECT_EQ(seen.ticks[2].previous, samples[3]);
  EXPECT_EQ(seen.ticks[2].sample, samples[4]);
}

// Without a flush, memory is bounded: the writer cuts on its own, and keeps a failure for Flush.
TEST(WriterReader, CutsALongChunkItself) {
  Bytes file;
  size_t chunks = 0;
  const auto writer = NewChunkWriter(kStream, [&](std::span<const uint8_t> bytes) {
    if (++chunks == 2) return absl::DataLossError("the second one fails");
    file.insert(file.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  fakes::SyntheticVm vm(std::vector<fakes::Load>(64, fakes::Load::kBusy), 1'000'000, 1);
  writer->Add(SetRecord(vm.VcpuSet(1, 1)), 1);
  for (int i = 0; i < 4000; ++i) writer->AddTick(1, 1, vm.Next(), vm.Verdicts());
  EXPECT_GE(chunks, 3u);
  EXPECT_LE(chunks, 5u);
  const absl::Status status = writer->Flush(ClockAt(1));
  EXPECT_EQ(status.message(), "the second one fails");
  const Seen seen = ReadBytes(file);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_GT(seen.report->lost_records, 500u);
  EXPECT_EQ(seen.report->records + seen.report->lost_records, 4001u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
}

// Whatever the values, a chunk that the writer cuts is one that the reader takes.
TEST(WriterReader, WorstValuesFitIntoAChunk) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  constexpr size_t kVcpus = 64;
  v1::VcpuSet set;
  set.set_vm(1);
  set.set_epoch(1);
  for (size_t v = 0; v < kVcpus; ++v) set.add_vcpus();
  for (size_t e = 0; e < core::kMaxEvents; ++e) set.add_events("e");
  writer->Add(SetRecord(set), 1);
  core::Sample sample;
  sample.vcpus.resize(kVcpus);
  const std::vector<core::Verdict> verdicts(kVcpus);
  uint64_t random = 1;
  const auto next = [&] { return random = random * 6364136223846793005u + 1442695040888963407u; };
  for (int t = 0; t < 1500; ++t) {
    for (core::VcpuSample& vcpu : sample.vcpus) {
      vcpu.read_begin_ns = static_cast<int64_t>(next());
      vcpu.read_end_ns = static_cast<int64_t>(next());
      vcpu.time_enabled_ns = next();
      vcpu.time_running_ns = next();
      for (uint64_t& count : vcpu.counts) count = next();
      vcpu.has_scheduler_times = next() >> 63 != 0;
      vcpu.run_ns = vcpu.has_scheduler_times ? next() : 0;
      vcpu.run_delay_ns = vcpu.has_scheduler_times ? next() : 0;
    }
    writer->AddTick(1, 1, sample, verdicts);
  }
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const auto report =
      ReadTimelineBytes(Concatenate(chunks), [](const Entry&) { return absl::OkStatus(); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->records, 1501u);
  EXPECT_THAT(report->damages, IsEmpty());
}

// One record beyond any chunk is lost with its reason, and nothing else is.
TEST(WriterReader, RecordTooLargeForAChunkIsAnError) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  writer->Add(MarkerRecord("a", 1), 1);
  writer->Add(MarkerRecord(std::string(kMaxPayloadBytes + 1, 'x'), 1), 1);
  writer->Add(MarkerRecord("b", 1), 1);
  const absl::Status status = writer->Flush(ClockAt(1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(ReadBytes(Concatenate(chunks)).sequences, ElementsAre(1, 3));
}

// A VM may be named with any bytes, and protobuf would refuse the whole chunk for it.
TEST(WriterReader, NamesThatAreNotUtf8DoNotCostAChunk) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  v1::VcpuSet set;
  set.mutable_instance()->set_name("vm\xff-\xc3\xa4");
  set.add_notes("a\x80");
  set.add_vcpus()->set_found_by("\xe2\x82");
  writer->Add(SetRecord(set), 1);
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  v1::VcpuSet back;
  const auto report = ReadTimelineBytes(Concatenate(chunks), [&](const Entry& entry) {
    if (const auto* found = std::get_if<v1::VcpuSet>(&entry.record)) back = *found;
    return absl::OkStatus();
  });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->damages, IsEmpty());
  EXPECT_EQ(back.instance().name(), "vm?-\xc3\xa4");
  EXPECT_EQ(back.notes(0), "a?");
  EXPECT_EQ(back.vcpus(0).found_by(), "??");
}

TEST(Utf8Texts, KeepsWhatIsWellFormedAndNothingElse) {
  const auto fixed = [](std::string text) {
    MakeUtf8(&text);
    return text;
  };
  const std::string good = "a\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80"
                           "\xf4\x8f\xbf\xbf";
  EXPECT_EQ(fixed(good), good);
  EXPECT_EQ(fixed("\xc0\x80"), "??");              // overlong
  EXPECT_EQ(fixed("\xe0\x9f\xbf"), "???");         // overlong
  EXPECT_EQ(fixed("\xed\xa0\x80"), "???");         // surrogate
  EXPECT_EQ(fixed("\xf0\x8f\xbf\xbf"), "????");    // overlong
  EXPECT_EQ(fixed("\xf4\x90\x80\x80"), "????");    // beyond U+10FFFF
  EXPECT_EQ(fixed("\xf5\x80\x80\x80x"), "????x");
  EXPECT_EQ(fixed("\xc3"), "?");                   // cut off
  EXPECT_EQ(fixed("\xe2\x82" "a"), "??a");
}

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

TEST(Streams, SinkErrorStopsTheReading) {
  const SmallTimeline timeline(3);
  int calls = 0;
  const auto report = ReadTimelineBytes(timeline.bytes, [&](const Entry&) {
    return ++calls == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(report.status(), absl::CancelledError("enough"));
  EXPECT_EQ(calls, 3);
}

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
  EXPECT_THAT(std::string(read(path).message()), StartsWith(path + " is no vcpulse timeline"));
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

std::vector<v1::TimelineRecord> ParseDelimited(const std::vector<Bytes>& parts) {
  const Bytes bytes = Concatenate(parts);
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  std::vector<v1::TimelineRecord> records;
  bool clean_end = false;
  v1::TimelineRecord record;
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &in, &clean_end)) {
    records.push_back(record);
    record.Clear();
  }
  EXPECT_TRUE(clean_end);
  return records;
}

// Plain rows for other languages: deltas as core makes them, none in an epoch's first.
TEST(DelimitedWriter, WritesRowsOfDeltas) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kIdle}, 10'000'000, 4);
  writer->Add(SessionRecord("h\xff"), 1);
  writer->Add(SetRecord(vm.VcpuSet(3, 2)), 1);
  core::Sample first = vm.Next();
  writer->AddTick(3, 2, first, vm.Verdicts());
  EXPECT_THAT(parts, IsEmpty());
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_THAT(parts, SizeIs(1));
  core::Sample second = vm.Next();
  second.vcpus[1].has_scheduler_times = false;
  writer->AddTick(3, 2, second, vm.Verdicts());
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());

  const std::vector<v1::TimelineRecord> records = ParseDelimited(parts);
  ASSERT_THAT(records, SizeIs(4));
  for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].sequence(), i + 1);
  EXPECT_EQ(records[0].session().host_name(), "h?");
  EXPECT_EQ(records[1].vcpu_set().vcpus_size(), 2);

  const v1::Tick& start = records[2].tick();
  EXPECT_TRUE(start.first_of_epoch());
  EXPECT_EQ(start.vm(), 3u);
  EXPECT_EQ(start.epoch(), 2u);
  EXPECT_EQ(start.tick(), first.tick);
  EXPECT_EQ(start.deadline_mono_ns(), first.deadline_ns);
  EXPECT_EQ(start.wake_mono_ns(), first.wake_ns);
  ASSERT_EQ(start.vcpus_size(), 2);
  EXPECT_EQ(start.vcpus(0).read_begin_mono_ns(), first.vcpus[0].read_begin_ns);
  EXPECT_EQ(start.vcpus(0).counts_size(), 0);
  EXPECT_EQ(start.vcpus(0).time_enabled_ns(), 0u);
  EXPECT_EQ(start.vcpus(0).band(), v1::BAND_UNSPECIFIED);
  EXPECT_FALSE(start.vcpus(0).has_run_ns());

  const v1::Tick& next = records[3].tick();
  EXPECT_FALSE(next.first_of_epoch());
  const core::VcpuDelta delta = core::Subtract(first.vcpus[0], second.vcpus[0]);
  const v1::VcpuTick& busy = next.vcpus(0);
  EXPECT_EQ(busy.interval_ns(), static_cast<uint64_t>(delta.interval_ns));
  EXPECT_EQ(busy.time_enabled_ns(), delta.time_enabled_ns);
  EXPECT_EQ(busy.time_running_ns(), delta.time_running_ns);
  EXPECT_THAT(busy.counts(), ElementsAre(delta.counts[0], delta.counts[1], delta.counts[2],
                                         delta.counts[3]));
  EXPECT_EQ(busy.run_ns(), delta.run_ns.value());
  EXPECT_TRUE(busy.has_run_delay_ns());
  EXPECT_EQ(busy.band(), v1::BAND_PRODUCTIVE);
  EXPECT_EQ(busy.rule(), v1::RULE_IPC_HIGH);
  EXPECT_FALSE(next.vcpus(1).has_run_ns());
  EXPECT_FALSE(next.vcpus(1).has_run_delay_ns());
  EXPECT_EQ(next.vcpus(1).state(), static_cast<v1::ThreadState>(second.vcpus[1].state));
}

TEST(DelimitedWriter, FailedSinkIsReportedOnce) {
  std::vector<Bytes> parts;
  bool full = true;
  const auto writer = NewDelimitedWriter([&](std::span<const uint8_t> bytes) {
    if (full) return absl::ResourceExhaustedError("no space left on device");
    return CollectInto(&parts)(bytes);
  });
  writer->Add(MarkerRecord("lost", 1), 1);
  EXPECT_EQ(writer->Flush(ClockAt(1)).message(), "no space left on device");
  full = false;
  writer->Add(MarkerRecord("kept", 1), 1);
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const auto records = ParseDelimited(parts);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].sequence(), 2u);
}

}  // namespace
}  // namespace vcpulse::timeline
