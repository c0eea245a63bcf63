#include "monitor/replay/record_copy.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/delimited_message_util.h"
#include "gtest/gtest.h"
#include "monitor/timeline/reader.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/live_recording.h"

namespace vcpulse::replay {
namespace {

using check::DrawnRecording;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<v1::TimelineRecord> Parse(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  std::vector<v1::TimelineRecord> records;
  bool at_end = false;
  while (true) {
    v1::TimelineRecord record;  // parsing adds to what is there
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &in, &at_end)) break;
    records.push_back(std::move(record));
  }
  EXPECT_TRUE(at_end);
  return records;
}

// What is written of the entries that `passes` lets through.
template <typename Passes>
std::vector<v1::TimelineRecord> Copied(const std::string& file, const Passes& passes) {
  std::string bytes;
  const auto writer = timeline::NewDelimitedWriter([&bytes](std::span<const uint8_t> more) {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return absl::OkStatus();
  });
  RecordCopy copy(*writer);
  EXPECT_TRUE(timeline::ReadTimeline(file, [&](const timeline::Entry& entry) {
                if (passes(entry)) copy.Take(entry);
                return absl::OkStatus();
              }).ok());
  EXPECT_TRUE(writer->Flush({}).ok());
  EXPECT_EQ(copy.unusable_ticks(), 0U);
  return Parse(bytes);
}

std::vector<v1::TimelineRecord> Copied(const std::string& file) {
  return Copied(file, [](const timeline::Entry&) { return true; });
}

// Of the ticks: which, and how many cycles vCPU 0 counted; "first" where nothing was subtracted.
std::vector<std::string> Ticks(const std::vector<v1::TimelineRecord>& records) {
  std::vector<std::string> ticks;
  for (const v1::TimelineRecord& record : records) {
    if (record.has_vcpu_set()) ticks.emplace_back("set");
    if (!record.has_tick()) continue;
    const v1::Tick& tick = record.tick();
    ticks.push_back(tick.first_of_epoch() ? "first"
                                          : std::to_string(tick.vcpus(0).counts(0) / 1'000'000));
  }
  return ticks;
}

// The same records as `record --format delimited` would have written.
TEST(RecordCopy, AWholeRecordingIsTheSame) {
  for (const auto groups : {LiveRecording::Groups::kOne, LiveRecording::Groups::kInTurns}) {
    LiveRecording live(100'000'000, groups, /*keeps_profile=*/true);
    live.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
    live.Run(50);
    live.End("duration");
    const std::string path = ::testing::TempDir() + "/record_copy_" + std::to_string(getpid());
    const timeline::Bytes chunks = timeline::Concatenate(live.chunks());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(chunks.data()),
               static_cast<std::streamsize>(chunks.size()));
    const std::vector<v1::TimelineRecord> records = Copied(path);
    std::vector<timeline::Entry> entries;
    ASSERT_TRUE(timeline::ReadTimeline(path, [&](const timeline::Entry& entry) {
                  if (entry.sequence != 0) entries.push_back(entry);
                  return absl::OkStatus();
                }).ok());
    std::remove(path.c_str());
    ASSERT_EQ(records.size(), entries.size());
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].sequence(), entries[i].sequence);
      EXPECT_EQ(records[i].has_tick(),
                std::holds_alternative<timeline::TickEntry>(entries[i].record));
      EXPECT_EQ(records[i].has_profile(), std::holds_alternative<v1::Profile>(entries[i].record));
      EXPECT_EQ(records[i].has_summary(), std::holds_alternative<v1::Summary>(entries[i].record));
      if (!records[i].has_tick()) continue;
      const auto& tick = std::get<timeline::TickEntry>(entries[i].record);
      EXPECT_EQ(records[i].tick().tick(), tick.sample.tick);
      EXPECT_EQ(records[i].tick().vcpus_size(), 2);
    }
  }
}

// What was counted in the first tick of a part is told, and nothing of what was left out.
TEST(RecordCopy, APartBeginsWithTheSampleBefore) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPP");
  int ticks = 0;
  const auto records = Copied(drawn.Finish(), [&ticks](const timeline::Entry& entry) {
    if (!std::holds_alternative<timeline::TickEntry>(entry.record)) return true;
    ++ticks;
    return ticks == 3 || ticks == 6 || ticks == 7;  // the first sample is a tick too
  });
  EXPECT_THAT(Ticks(records), ElementsAre("set", "first", "100", "set", "first", "100", "100"));
  uint64_t sequence = 0;
  for (const v1::TimelineRecord& record : records) EXPECT_EQ(record.sequence(), ++sequence);
}

TEST(RecordCopy, LostRecordsLeaveAHole) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  drawn.Flush();
  drawn.Draw("PP");
  drawn.Flush(/*lost=*/true);
  drawn.Draw("PP");
  EXPECT_THAT(Ticks(Copied(drawn.Finish())),
              ElementsAre("set", "first", "100", "100", "set", "first", "100", "100"));
}

// A set that does not fit, or none: counted, never written.
TEST(RecordCopy, SamplesWithoutASetAreLeftOut) {
  std::string bytes;
  const auto writer = timeline::NewDelimitedWriter([&bytes](std::span<const uint8_t> more) {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return absl::OkStatus();
  });
  RecordCopy copy(*writer);
  timeline::TickEntry tick{.vm = 1, .epoch = 1};
  tick.sample.vcpus.resize(2);
  copy.Take({.sequence = 1, .record = tick});
  v1::VcpuSet set;
  set.set_vm(1);
  set.set_epoch(1);
  set.add_vcpus();
  copy.Take({.sequence = 2, .record = set});
  copy.Take({.sequence = 3, .record = tick});
  set.set_epoch(2);
  for (size_t i = 0; i <= core::kMaxEvents; ++i) set.add_events("e" + std::to_string(i));
  copy.Take({.sequence = 4, .record = set});
  tick.epoch = 2;
  tick.sample.vcpus.resize(1);
  copy.Take({.sequence = 5, .record = tick});
  EXPECT_EQ(copy.unusable_ticks(), 3U);
  ASSERT_TRUE(writer->Flush({}).ok());
  EXPECT_THAT(Ticks(Parse(bytes)), ElementsAre("set"));
}

}  // namespace
}  // namespace vcpulse::replay
