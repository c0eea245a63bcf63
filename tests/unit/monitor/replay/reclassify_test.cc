#include "monitor/replay/reclassify.h"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/core/epoch_classifier.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using timeline::Bytes;
using timeline::Seen;
using timeline::SeenTick;

constexpr timeline::StreamId kNewId = {9, 9, 9};
constexpr int64_t kMillisecond_ns = 1'000'000;

Settings AsRecorded() {
  return {.choice = core::ClassifierChoice::kAuto, .profile = profile::BuiltIn().front()};
}

struct Classified {
  absl::Status status;
  std::vector<Bytes> chunks;
  uint64_t unusable_ticks = 0;
};

Classified Classify(std::span<const uint8_t> source, const Settings& settings) {
  Classified out;
  const auto writer = timeline::NewChunkWriter(kNewId, timeline::CollectInto(&out.chunks));
  Reclassify reclassify(
      "run.vpt", kNewId, [&](const v1::Session&, const v1::Profile*) { return settings; }, *writer);
  const auto read = timeline::ReadTimelineBytes(
      source, [&](const timeline::Entry& entry) { return reclassify.Take(entry); });
  out.status = read.ok() ? reclassify.Finish() : read.status();
  out.unusable_ticks = reclassify.unusable_ticks();
  return out;
}

Seen ClassifyAndRead(const std::vector<Bytes>& chunks, const Settings& settings = AsRecorded()) {
  const Classified classified = Classify(timeline::Concatenate(chunks), settings);
  EXPECT_TRUE(classified.status.ok()) << classified.status;
  return timeline::ReadBytes(timeline::Concatenate(classified.chunks));
}

// The ticks of a (vm, epoch) that came out, against what live recording said.
void ExpectTheSame(const std::vector<LiveTick>& live, const std::vector<SeenTick>& seen) {
  ASSERT_EQ(live.size(), seen.size());
  std::set<core::Band> bands;
  for (size_t i = 0; i < live.size(); ++i) {
    ASSERT_EQ(live[i].vm, seen[i].vm) << i;
    ASSERT_EQ(live[i].epoch, seen[i].epoch) << i;
    ASSERT_EQ(live[i].sample, seen[i].sample) << i;
    ASSERT_EQ(live[i].verdicts, seen[i].verdicts) << "VM " << live[i].vm << " tick " << i;
    for (const core::Verdict& verdict : live[i].verdicts) bands.insert(verdict.band);
  }
  EXPECT_EQ(bands.size(), core::kBands) << "a test of sameness that shows too little";
}

class SameAsLive : public ::testing::TestWithParam<std::pair<int64_t, LiveRecording::Groups>> {};

// One classifier, two ways to it: whatever the tick, and whatever the groups.
TEST_P(SameAsLive, EveryFieldOfEveryVerdict) {
  LiveRecording live(GetParam().first, GetParam().second);
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 3});
  live.Begin({.vm = 2, .epoch = 1, .vcpus = 2});
  live.Run(200);
  live.Begin({.vm = 1, .epoch = 2, .vcpus = 2});
  live.Run(200);
  live.End("duration");
  const std::vector<Bytes> chunks = live.chunks();
  ASSERT_GT(chunks.size(), 10U);
  ExpectTheSame(live.ticks(), ClassifyAndRead(chunks).ticks);
}

INSTANTIATE_TEST_SUITE_P(
    TicksAndGroups, SameAsLive,
    ::testing::Values(std::pair(5 * kMillisecond_ns, LiveRecording::Groups::kOne),
                      std::pair(100 * kMillisecond_ns, LiveRecording::Groups::kOne),
                      std::pair(5 * kMillisecond_ns, LiveRecording::Groups::kInTurns),
                      std::pair(100 * kMillisecond_ns, LiveRecording::Groups::kInTurns),
                      std::pair(5 * kMillisecond_ns, LiveRecording::Groups::kCorePmus),
                      std::pair(100 * kMillisecond_ns, LiveRecording::Groups::kCorePmus)));

LiveRecording SmallRecording() {
  LiveRecording live(100 * kMillisecond_ns, LiveRecording::Groups::kOne, /*keeps_profile=*/true);
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
  live.Run(95);
  live.End("duration");
  return live;
}

template <typename Record>
std::vector<Record> RecordsOf(std::span<const uint8_t> bytes) {
  std::vector<Record> records;
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    const auto* record = std::get_if<Record>(&entry.record);
    if (record != nullptr && entry.sequence != 0) records.push_back(*record);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read.status();
  return records;
}

TEST(Reclassify, NamesWhatItWasMadeOfAndWith) {
  const LiveRecording live = SmallRecording();
  Settings settings = AsRecorded();
  settings.choice = core::ClassifierChoice::kIpcBands;
  settings.profile.values.ipc_bands.spinning_below = 0.4;
  const Classified out = Classify(timeline::Concatenate(live.chunks()), settings);
  ASSERT_TRUE(out.status.ok()) << out.status;
  const Bytes bytes = timeline::Concatenate(out.chunks);

  const auto sessions = RecordsOf<v1::Session>(bytes);
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(sessions[0].derived_from(), LiveRecording::StreamIdBytes());
  EXPECT_EQ(sessions[0].stream_id(), std::string(kNewId.begin(), kNewId.end()));
  EXPECT_EQ(sessions[0].classifier().name(), "ipc-bands");
  EXPECT_EQ(sessions[0].classifier().spinning_below(), 0.4);
  EXPECT_EQ(sessions[0].classifier().profile(), "generic");
  EXPECT_EQ(sessions[0].host_name(), "host1");
  const auto profiles = RecordsOf<v1::Profile>(bytes);
  ASSERT_THAT(profiles, SizeIs(1));
  EXPECT_EQ(profiles[0].name(), "generic");
  const auto sets = RecordsOf<v1::VcpuSet>(bytes);
  ASSERT_THAT(sets, SizeIs(1));
  EXPECT_EQ(sets[0].classifier(), "ipc-bands");
  EXPECT_THAT(RecordsOf<v1::Summary>(bytes), SizeIs(1));
  const Seen seen = timeline::ReadBytes(bytes);
  ASSERT_THAT(seen.others, SizeIs(::testing::Ge(3U)));
  EXPECT_THAT(seen.others[0] + seen.others[1], HasSubstr("Session"));  // after the chunk's clock
  EXPECT_TRUE(seen.report->ended_in_order);
  EXPECT_THAT(seen.report->damages, SizeIs(0));
}

// The same chunks with the same clocks, so the same parts can be sought in it.
TEST(Reclassify, KeepsTheChunksAndTheirClocks) {
  const LiveRecording live = SmallRecording();
  const Classified out = Classify(timeline::Concatenate(live.chunks()), AsRecorded());
  EXPECT_EQ(out.chunks.size(), live.chunks().size());
  const auto clocks = [](const std::vector<Bytes>& chunks) {
    std::vector<std::string> found;
    for (const std::string& other : timeline::ReadBytes(timeline::Concatenate(chunks)).others) {
      if (other.find("ClockSnapshot") != std::string::npos) found.push_back(other);
    }
    return found;
  };
  EXPECT_EQ(clocks(out.chunks), clocks(live.chunks()));
}

// Whatever is no tick is kept, of every kind.
TEST(Reclassify, KeepsWhatWasReadBesideTheCounters) {
  std::vector<Bytes> chunks;
  const auto writer = timeline::NewChunkWriter({1}, timeline::CollectInto(&chunks));
  writer->Add(timeline::SessionRecord("h"), 1);
  v1::TimelineRecord statistics;
  statistics.mutable_statistics()->set_kvm_missing("no descriptor");
  writer->Add(statistics, 2);
  v1::TimelineRecord hot;
  hot.mutable_hot_addresses()->set_source("cycles");
  writer->Add(hot, 3);
  ASSERT_TRUE(writer->Flush(timeline::ClockAt(4)).ok());
  EXPECT_THAT(ClassifyAndRead(chunks).others,
              ::testing::AllOf(::testing::Contains(HasSubstr("Statistics kvm_missing")),
                               ::testing::Contains(HasSubstr("HotAddresses source: \"cycles\""))));
}

TEST(Reclassify, TwiceIsAsOnce) {
  const LiveRecording live = SmallRecording();
  const Classified once = Classify(timeline::Concatenate(live.chunks()), AsRecorded());
  const Classified twice = Classify(timeline::Concatenate(once.chunks), AsRecorded());
  const Seen first = timeline::ReadBytes(timeline::Concatenate(once.chunks));
  EXPECT_EQ(first.ticks, timeline::ReadBytes(timeline::Concatenate(twice.chunks)).ticks);
}

// A lost chunk: its ticks are a gap, and the first tick after it has the sample before it to be
// subtracted from, as in the source. Else one verdict would stand for the whole hole.
TEST(Reclassify, MakesAGapOfADamagedChunk) {
  const LiveRecording live = SmallRecording();
  std::vector<Bytes> chunks = live.chunks();
  ASSERT_GT(chunks.size(), 6U);
  const Seen lost = timeline::ReadBytes(chunks.at(4));
  chunks.at(4).at(200) ^= 0xff;
  const Seen source = timeline::ReadBytes(timeline::Concatenate(chunks));

  const Classified out = Classify(timeline::Concatenate(chunks), AsRecorded());
  ASSERT_TRUE(out.status.ok()) << out.status;
  const Bytes bytes = timeline::Concatenate(out.chunks);
  const auto gaps = RecordsOf<v1::Gap>(bytes);
  ASSERT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(gaps[0].reason(), v1::Gap::REASON_SOURCE_LOST);
  EXPECT_EQ(gaps[0].vm(), 0U);
  EXPECT_EQ(gaps[0].first_tick(), lost.ticks.front().sample.tick);
  EXPECT_EQ(gaps[0].last_tick(), lost.ticks.back().sample.tick);
  EXPECT_EQ(RecordsOf<v1::Summary>(bytes).at(0).gaps(), 1U);

  const Seen seen = timeline::ReadBytes(bytes);
  ASSERT_EQ(seen.ticks.size(), source.ticks.size() + 1);
  bool met = false;
  for (size_t i = 0, s = 0; i < seen.ticks.size(); ++i) {
    if (seen.ticks[i].sample.tick == gaps[0].last_tick()) {
      EXPECT_EQ(seen.ticks[i].verdicts, std::vector<core::Verdict>(2));
      EXPECT_EQ(seen.ticks[i].sample, lost.ticks.back().sample);
      met = true;
      continue;
    }
    EXPECT_EQ(seen.ticks[i].sample, source.ticks[s].sample);
    EXPECT_EQ(seen.ticks[i].previous, source.ticks[s].previous);
    ++s;
  }
  EXPECT_TRUE(met);
}

TEST(Reclassify, GoesOnWithoutTheFirstChunk) {
  std::vector<Bytes> chunks = SmallRecording().chunks();
  const Seen lost = timeline::ReadBytes(chunks.front());
  chunks.front().at(200) ^= 0xff;
  const Classified out = Classify(timeline::Concatenate(chunks), AsRecorded());
  ASSERT_TRUE(out.status.ok()) << out.status;
  const Bytes bytes = timeline::Concatenate(out.chunks);
  EXPECT_THAT(RecordsOf<v1::Session>(bytes), SizeIs(1));
  EXPECT_THAT(RecordsOf<v1::VcpuSet>(bytes), SizeIs(1));
  const auto gaps = RecordsOf<v1::Gap>(bytes);
  ASSERT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(gaps[0].first_tick(), 0U);
  EXPECT_EQ(gaps[0].last_tick(), lost.ticks.back().sample.tick);
}

TEST(Reclassify, RefusesASecondRecording) {
  const LiveRecording live = SmallRecording();
  Bytes both = timeline::Concatenate(live.chunks());
  const Bytes other = timeline::Concatenate(Classify(both, AsRecorded()).chunks);
  both.insert(both.end(), other.begin(), other.end());
  const absl::Status status = Classify(both, AsRecorded()).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("run.vpt: a second recording"));
}

// A year of VMs that come and go must not keep them all: a set ends once a chunk had none of its
// ticks, and not at once, as its last ticks come after the record of its end.
TEST(Reclassify, EndsEpochs) {
  LiveRecording live(100 * kMillisecond_ns, LiveRecording::Groups::kOne);
  live.Begin({.vm = 1, .epoch = 1, .vcpus = 1});
  live.Run(15);
  live.Ended(1);
  live.Run(3);  // of a queue
  live.Stop({1, 1});
  live.Begin({.vm = 2, .epoch = 1, .vcpus = 1});
  live.Run(40);
  live.End("signal");

  EndingWriter writer;
  Reclassify reclassify(
      "run.vpt", kNewId, [](const v1::Session&, const v1::Profile*) { return AsRecorded(); },
      writer);
  const auto read = timeline::ReadTimelineBytes(
      timeline::Concatenate(live.chunks()),
      [&](const timeline::Entry& entry) { return reclassify.Take(entry); });
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(reclassify.unusable_ticks(), 0U);
  ASSERT_THAT(writer.ended, SizeIs(1));
  EXPECT_EQ(writer.ended[0].key, std::pair(1U, 1U));
  EXPECT_EQ(writer.ended[0].ticks_before, 18U + 12U);  // in the second chunk after its last tick
  ASSERT_TRUE(reclassify.Finish().ok());
  EXPECT_THAT(writer.ended, SizeIs(2));
}

// Older timelines: the numbers of their sessions hold.
TEST(RecordedSettings, OfASessionWithoutAProfile) {
  v1::Session session;
  v1::ClassifierSettings& classifier = *session.mutable_classifier();
  classifier.set_name("ipc-bands");
  classifier.set_halted_enter(0.03);
  classifier.set_halted_leave(0.05);
  classifier.set_spinning_below(0.5);
  classifier.set_productive_from(0.9);
  const auto settings = SettingsOf(session, nullptr);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->choice, core::ClassifierChoice::kIpcBands);
  EXPECT_EQ(settings->profile.name, "generic");
  EXPECT_EQ(settings->profile.values.presence.halted_enter, 0.03);
  EXPECT_EQ(settings->profile.values.presence.halted_leave, 0.05);
  EXPECT_EQ(settings->profile.values.ipc_bands.spinning_below, 0.5);
  EXPECT_EQ(settings->profile.values.ipc_bands.productive_from, 0.9);
  EXPECT_THAT(settings->remark, HasSubstr("keeps no profile"));
  classifier.set_name("of-2031");
  EXPECT_THAT(std::string(SettingsOf(session, nullptr).status().message()),
              HasSubstr("'of-2031', which this vcpulse does not know"));
}

}  // namespace
}  // namespace vcpulse::replay
