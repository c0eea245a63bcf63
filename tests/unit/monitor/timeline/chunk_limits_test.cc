#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "monitor/timeline/chunk_decoder.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr StreamId kStream = {9};

// Without a flush, memory is bounded: the writer cuts on its own, and keeps a failure for Flush.
TEST(ChunkLimits, CutsALongChunkItself) {
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
  EXPECT_GE(chunks, 6u);
  EXPECT_LE(chunks, 8u);
  const absl::Status status = writer->Flush(ClockAt(1));
  EXPECT_EQ(status.message(), "the second one fails");
  const Seen seen = ReadBytes(file);
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_GT(seen.report->lost_records, 500u);
  EXPECT_EQ(seen.report->records + seen.report->lost_records, 4001u);
  EXPECT_THAT(seen.report->damages, IsEmpty());
}

// Further groups count for what is buffered: 100 of them take several times what the vCPUs do.
TEST(ChunkLimits, CutsByFurtherGroupsToo) {
  std::vector<Bytes> chunks;
  const auto writer =
      NewChunkWriter(kStream, CollectInto(&chunks), {.max_buffered_bytes = 1 << 20});
  fakes::SyntheticVm vm(std::vector<fakes::Load>(64, fakes::Load::kBusy), 1'000'000, 1);
  v1::VcpuSet set = vm.VcpuSet(1, 1);
  for (size_t g = 1; g < core::kMaxGroups; ++g) set.add_further_groups()->add_events("e");
  writer->Add(SetRecord(set), 1);
  const size_t bytes =
      64 * (sizeof(core::VcpuSample) + (core::kMaxGroups - 1) * sizeof(core::GroupSample));
  const size_t ticks = 4 * (size_t{1} << 20) / bytes;
  for (size_t i = 0; i < ticks; ++i) {
    core::Sample sample = vm.Next();
    sample.further.resize(64 * (core::kMaxGroups - 1));
    writer->AddTick(1, 1, sample, vm.Verdicts());
  }
  EXPECT_GE(chunks.size(), 3u);  // before any flush
}

// A host of 10,000 vCPUs, each tick and its base a sixth of what is buffered: a reader takes such a
// chunk, and twice as much.
TEST(ChunkLimits, CutsFarBelowWhatAReaderTakes) {
  constexpr uint32_t kVms = 5;
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  std::vector<fakes::SyntheticVm> vms;
  for (uint32_t vm = 1; vm <= kVms; ++vm) {
    vms.emplace_back(std::vector<fakes::Load>(2000, fakes::Load::kShared), 100'000'000, vm);
    v1::VcpuSet set = vms.back().VcpuSet(vm, 1);
    writer->Add(SetRecord(set), 1);
  }
  for (int tick = 0; tick < 10; ++tick) {
    for (uint32_t vm = 1; vm <= kVms; ++vm) {
      const core::Sample& sample = vms[vm - 1].Next();
      writer->AddTick(vm, 1, sample, vms[vm - 1].Verdicts());
    }
  }
  ASSERT_TRUE(writer->Flush(ClockAt(1)).ok());
  ASSERT_GE(chunks.size(), 3u);
  for (const Bytes& chunk : chunks) {
    const auto header = DecodeChunkHeader(chunk);
    ChunkDecoder decoder;
    ASSERT_TRUE(decoder.Open(*header, std::span(chunk).subspan(kChunkHeaderBytes)).ok());
    const std::string content = decoder.context().SerializeAsString();
    const auto bytes =
        ReckonMemory({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
    ASSERT_TRUE(bytes.ok());
    EXPECT_TRUE(CheckDecodingMemory(decoder.context(), *bytes + kMaxChunkMemory / 2).ok());
  }
}

// VMs take memory beside their samples.
TEST(ChunkLimits, CutsBetweenVmsOfOneTick) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  fakes::SyntheticVm vm({fakes::Load::kBusy}, 100'000'000, 1);
  constexpr uint32_t kVms = 20'000;
  for (uint32_t number = 1; number <= kVms; ++number) {
    writer->Add(SetRecord(vm.VcpuSet(number, 1)), 1);
  }
  const core::Sample& sample = vm.Next();
  for (uint32_t number = 1; number <= kVms; ++number) {
    writer->AddTick(number, 1, sample, vm.Verdicts());
  }
  ASSERT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_THAT(ReadBytes(Concatenate(chunks)).ticks, SizeIs(kVms));
}

// Never what no reader would take.
TEST(ChunkLimits, RefusesWhatTakesTooMuchMemory) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  v1::VcpuSet set;
  set.set_vm(1);
  set.set_epoch(1);
  for (int i = 0; i < 100'000; ++i) set.add_unopened_vcpus();  // 200 KB
  for (uint32_t epoch = 1; epoch <= 6; ++epoch) {
    set.set_epoch(epoch);
    writer->Add(SetRecord(set), 1);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(writer->Flush(ClockAt(1))));
  EXPECT_THAT(chunks, SizeIs(0));
}

// Small records take more memory than their bytes, so their number is bounded too.
TEST(ChunkLimits, CutsAfterManyRecords) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  for (int i = 0; i < 70'000; ++i) writer->Add(MarkerRecord("", 1), 1);
  EXPECT_THAT(chunks, SizeIs(1));
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_EQ(ReadBytes(Concatenate(chunks)).sequences, Numbers(1, 70'000));
}

// A VM of so many vCPUs whose samples are as far from what is expected as they can be: chunks of
// it.
std::vector<Bytes> WorstChunks(size_t vcpus, int ticks, const ChunkWriterOptions& options) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks), options);
  v1::VcpuSet set;
  set.set_vm(1);
  set.set_epoch(1);
  for (size_t v = 0; v < vcpus; ++v) set.add_vcpus();
  for (size_t e = 0; e < core::kMaxEvents; ++e) set.add_events("e");
  writer->Add(SetRecord(set), 1);
  core::Sample sample;
  sample.vcpus.resize(vcpus);
  const std::vector<core::Verdict> verdicts(vcpus);
  uint64_t random = 1;
  const auto next = [&] { return random = random * 6364136223846793005u + 1442695040888963407u; };
  for (int t = 0; t < ticks; ++t) {
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
  return chunks;
}

// Whatever the values, a chunk that the writer cuts is one that the reader takes.
TEST(ChunkLimits, WorstValuesFitIntoAChunk) {
  const auto report = ReadTimelineBytes(Concatenate(WorstChunks(64, 1500, {})),
                                        [](const Entry&) { return absl::OkStatus(); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->records, 1501u);
  EXPECT_THAT(report->damages, IsEmpty());
}

// And one that is cut for the wire goes over any of them (stream::kMaxChunkBytes).
TEST(ChunkLimits, WorstValuesFitIntoAMessage) {
  size_t most = 0;
  for (const size_t vcpus : {1, 64, 1000}) {
    const auto chunks = WorstChunks(vcpus, static_cast<int>(20'000 / vcpus),
                                    {.max_buffered_bytes = kBufferedBytesForWire});
    EXPECT_GE(chunks.size(), 3u);
    for (const Bytes& chunk : chunks) most = std::max(most, chunk.size());
  }
  EXPECT_LE(most, (size_t{1} << 20) - 1024);
  EXPECT_GT(most, size_t{1} << 18) << "of worst values";
  RecordProperty("longest_chunk_bytes", std::to_string(most));
}

// One record beyond any chunk is lost with its reason, and nothing else is.
TEST(ChunkLimits, RecordTooLargeForAChunkIsAnError) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kStream, CollectInto(&chunks));
  writer->Add(MarkerRecord("a", 1), 1);
  writer->Add(MarkerRecord(std::string(kMaxPayloadBytes + 1, 'x'), 1), 1);
  writer->Add(MarkerRecord("b", 1), 1);
  const absl::Status status = writer->Flush(ClockAt(1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(ReadBytes(Concatenate(chunks)).sequences, ElementsAre(1, 3));
}

}  // namespace
}  // namespace vcpulse::timeline
