#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_encoder.h"
#include "monitor/timeline/tick_columns.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr StreamId kStream = {9};

TEST(WriterReader, EverythingComesBack) {
  const SmallTimeline timeline(4);
  const Seen seen = ReadBytes(timeline.bytes);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.ticks, timeline.ticks);
  EXPECT_EQ(seen.sequences, Numbers(1, 15));
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
  record.mutable_statistics()->set_kvm_missing("no descriptor");
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
  EXPECT_EQ(seen.sequences, Numbers(1, sequence));
  EXPECT_EQ(chunks.size(), 3u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
  EXPECT_THAT(seen.others, testing::Contains(HasSubstr("LifeCycle detail: \"a vCPU was")));
  EXPECT_THAT(seen.others, testing::Contains(HasSubstr("Statistics kvm_missing: \"no desc")));
  EXPECT_THAT(seen.others, testing::Contains(HasSubstr("ClockSnapshot realtime_ns: 77")));
}

// A chunk that holds nothing of an epoch but a gap says whose gap it is, in recut chunks too.
TEST(WriterReader, AGapBringsTheSetOfItsEpoch) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  fakes::SyntheticVm vm({fakes::Load::kBusy}, 10'000'000, 4);
  fakes::SyntheticVm other({fakes::Load::kBusy}, 10'000'000, 4);
  writer->Add(SessionRecord("h"), 1);
  writer->Add(SetRecord(vm.VcpuSet(1, 1)), 2);
  writer->Add(SetRecord(other.VcpuSet(2, 1)), 2);
  ASSERT_TRUE(writer->Flush(ClockAt(3)).ok());
  v1::TimelineRecord gap;
  gap.mutable_gap()->set_vm(1);
  gap.mutable_gap()->set_epoch(1);
  writer->Add(gap, 4);
  writer->EndEpoch(1, 1);
  gap.mutable_gap()->set_vm(2);
  writer->Add(gap, 4);
  ASSERT_TRUE(writer->Flush(ClockAt(5)).ok());
  writer->Add(MarkerRecord("phase", 6), 6);
  ASSERT_TRUE(writer->Flush(ClockAt(7)).ok());

  ASSERT_THAT(chunks, testing::SizeIs(3));
  const auto sets_in = [](const Bytes& chunk) {
    ChunkDecoder decoder;
    std::vector<uint32_t> vms;
    const auto header = DecodeChunkHeader(chunk);
    EXPECT_TRUE(header.ok());
    EXPECT_TRUE(decoder.Open(*header, std::span(chunk).subspan(header->header_bytes)).ok());
    for (const v1::VcpuSet& set : decoder.context().vcpu_sets()) vms.push_back(set.vm());
    return vms;
  };
  EXPECT_THAT(sets_in(chunks[0]), IsEmpty());
  EXPECT_THAT(sets_in(chunks[1]), testing::ElementsAre(1u, 2u));
  EXPECT_THAT(sets_in(chunks[2]), IsEmpty());
}

// Groups that take turns, and those of a hybrid host, which a reader that cannot add up must
// refuse.
TEST(WriterReader, FurtherGroupsComeBackAcrossChunks) {
  for (const uint32_t core_pmus : {1u, 2u}) {
    std::vector<Bytes> chunks;
    const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
    fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kIdle}, 10'000'000, 4);
    v1::VcpuSet set = vm.VcpuSet(1, 1);
    set.set_core_pmus(core_pmus);
    v1::EventGroup& group = *set.add_further_groups();
    for (int e = 0; e < set.events_size(); ++e) group.add_events(set.events(e));
    writer->Add(SessionRecord("h"), 1);
    writer->Add(SetRecord(set), 1);
    std::vector<core::Sample> samples;
    for (uint64_t t = 1; t <= 6; ++t) {
      core::Sample& sample = samples.emplace_back(vm.Next());
      for (uint64_t v = 1; v <= 2; ++v) {
        core::GroupSample& seen = sample.further.emplace_back();
        seen.time_enabled_ns = t * v * 1'000'000;
        seen.time_running_ns = t * v * 400'000;
        seen.counts[0] = t * t * v;
      }
      writer->AddTick(1, 1, sample, vm.Verdicts());
      if (t == 3) {
        ASSERT_TRUE(writer->Flush(ClockAt(8)).ok());
      }
    }
    ASSERT_TRUE(writer->Flush(ClockAt(9)).ok());
    ASSERT_THAT(chunks, SizeIs(2));
    const Seen seen = ReadBytes(Concatenate(chunks));
    ASSERT_THAT(seen.ticks, SizeIs(6));
    for (size_t t = 0; t < 6; ++t) {
      EXPECT_EQ(seen.ticks[t].sample, samples[t]);
      if (t > 0) {
        EXPECT_EQ(seen.ticks[t].previous, samples[t - 1]);
      }
    }
    const auto header = DecodeChunkHeader(chunks[0]);
    ASSERT_TRUE(header.ok());
    EXPECT_EQ((header->required_features & kFeatureCorePmus) != 0, core_pmus > 1);
  }
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
    // Chunk 0 has records 1 to 5, each later one three. A later part is not damaged.
    const uint64_t before = c == 0 ? 0 : 3 * c + 2;
    EXPECT_EQ(seen.report->lost_records, before);
    EXPECT_EQ(seen.report->lost_before_first, before);
    EXPECT_THAT(seen.report->damages, IsEmpty());
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

// No more than a sample has places for.
TEST(WriterReader, ASetIsWritableUpToTheSamplesPlaces) {
  v1::VcpuSet set;
  for (size_t i = 0; i < core::kMaxEvents; ++i) set.add_events(std::to_string(i));
  for (size_t g = 1; g < core::kMaxGroups; ++g)
    *set.add_further_groups()->mutable_events() = set.events();
  EXPECT_TRUE(IsWritable(set));
  v1::VcpuSet more = set;
  more.add_events("one more");
  EXPECT_FALSE(IsWritable(more));
  more = set;
  more.add_further_groups();
  EXPECT_FALSE(IsWritable(more));
  more = set;
  more.mutable_further_groups(0)->add_events("one more");
  EXPECT_FALSE(IsWritable(more));
}

TEST(WriterReader, ATickThatDoesNotFitItsSetIsABug) {
  for (const bool delimited : {false, true}) {
    std::vector<Bytes> chunks;
    const auto writer = delimited ? NewDelimitedWriter(CollectInto(&chunks))
                                  : NewChunkWriter(kStream, CollectInto(&chunks));
    fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kBusy}, 100'000'000, 1);
    writer->Add(SetRecord(vm.VcpuSet(1, 1)), 1);
    core::Sample sample = vm.Next();
    const std::vector<core::Verdict> verdicts = vm.Verdicts();
    EXPECT_ANY_THROW(writer->AddTick(1, 1, sample, std::span(verdicts).first(1)));
    sample.vcpus.resize(1);
    EXPECT_ANY_THROW(writer->AddTick(1, 1, sample, verdicts));
  }
}

// A chunk may begin with a tick, and that may be the first record of all.
TEST(WriterReader, ATickMayBeRecordNumberOne) {
  fakes::SyntheticVm vm({fakes::Load::kBusy}, 100'000'000, 1);
  TickRows rows{.vcpus = 1, .events = static_cast<size_t>(vm.VcpuSet(1, 1).events_size())};
  rows.Append(1, vm.Next(), vm.Verdicts());
  v1::ChunkPayload content;
  *content.add_vcpu_sets() = vm.VcpuSet(1, 1);
  v1::VmTicks* ticks = content.add_ticks();
  ticks->set_vm(1);
  ticks->set_epoch(1);
  EncodeColumns(rows, ticks);
  ChunkEncoder encoder;
  const auto chunk =
      encoder.Encode({.stream_id = kStream, .first_sequence = 1, .last_sequence = 1}, content);
  ASSERT_TRUE(chunk.ok());
  EXPECT_THAT(ReadBytes(*chunk).ticks, SizeIs(1));
}

// A month of epochs must not gather in memory: an ended one may be declared again.
TEST(WriterReader, EndedEpochsAreForgotten) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  fakes::SyntheticVm vm({fakes::Load::kBusy}, 10'000'000, 1);
  for (int i = 0; i < 2; ++i) {
    writer->Add(SetRecord(vm.VcpuSet(1, 1)), 1);
    writer->AddTick(1, 1, vm.Next(), vm.Verdicts());
    writer->EndEpoch(1, 1);
    EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
    writer->Add(SetRecord(vm.VcpuSet(1, 1)), 1);  // and one without ticks
    writer->EndEpoch(1, 1);
  }
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const Seen seen = ReadBytes(Concatenate(chunks));
  ASSERT_THAT(seen.ticks, SizeIs(2));
  EXPECT_EQ(seen.ticks[1].previous, std::nullopt);
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

}  // namespace
}  // namespace vcpulse::timeline
