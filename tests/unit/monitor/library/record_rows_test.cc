#include "monitor/library/record_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/collecting_writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::library {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Count = std::pair<std::optional<uint64_t>, double>;  // and its share

// One vCPU with two groups, of which each was on the PMU for what is given, of 80 ms on a CPU.
class RecordRowsTest : public ::testing::Test {
 protected:
  std::map<std::string, Count> Counts(uint32_t core_pmus, uint64_t first_ms, uint64_t second_ms) {
    v1::VcpuSet set;
    set.set_vm(1);
    set.set_epoch(1);
    set.set_core_pmus(core_pmus);
    set.add_vcpus()->set_index(0);
    set.add_events("cycles");
    set.add_absent_events()->set_event("ref-cycles");
    set.add_further_groups()->add_events(core_pmus > 1 ? "cycles" : "cache-misses");
    std::map<std::string, Count> counts;
    RecordRows rows([&](const vcpulse_record& record) {
      for (size_t i = 0; i < record.event_count; ++i) {
        const bool counted = record.event_shares[i] > 0;
        counts[record.event_names[i]] = {
            counted ? std::optional(record.event_counts[i]) : std::nullopt, record.event_shares[i]};
      }
      return true;
    });
    rows.Add(set);
    core::Sample before = Sample(0, 0, 0);
    const core::Sample after = Sample(100, first_ms, second_ms);
    rows.AddTick(1, 1, after, &before, std::vector<core::Verdict>(1));
    return counts;
  }

 private:
  // 1,000 counts per ms in the first group, 10 in the other.
  static core::Sample Sample(int64_t at_ms, uint64_t first_ms, uint64_t second_ms) {
    constexpr uint64_t kMs = 1'000'000;
    core::Sample sample;
    sample.vcpus.resize(1);
    sample.further.resize(1);
    sample.vcpus[0].read_begin_ns = sample.vcpus[0].read_end_ns = at_ms * 1'000'000;
    sample.vcpus[0].time_enabled_ns = at_ms > 0 ? 80 * kMs : 0;
    sample.vcpus[0].time_running_ns = first_ms * kMs;
    sample.vcpus[0].counts[0] = first_ms * 1000;
    sample.further[0].time_enabled_ns = sample.vcpus[0].time_enabled_ns;
    sample.further[0].time_running_ns = second_ms * kMs;
    sample.further[0].counts[0] = second_ms * 10;
    return sample;
  }
};

TEST_F(RecordRowsTest, GroupsThatTakeTurnsHaveSharesOfTheirOwn) {
  EXPECT_THAT(Counts(1, 60, 20),
              UnorderedElementsAre(Pair("cycles", Pair(60'000U, DoubleEq(0.75))),
                                   Pair("cache-misses", Pair(200U, DoubleEq(0.25))),
                                   Pair("ref-cycles", Pair(std::nullopt, DoubleEq(0)))));
}

TEST_F(RecordRowsTest, GroupsOfSeveralCorePmusAddUp) {
  EXPECT_THAT(Counts(2, 60, 20),
              UnorderedElementsAre(Pair("cycles", Pair(60'200U, DoubleEq(1))),
                                   Pair("ref-cycles", Pair(std::nullopt, DoubleEq(0)))));
}

TEST_F(RecordRowsTest, AGroupThatWasNeverOnThePmuHasNoCount) {
  EXPECT_THAT(Counts(1, 80, 0),
              UnorderedElementsAre(Pair("cycles", Pair(80'000U, DoubleEq(1))),
                                   Pair("cache-misses", Pair(std::nullopt, DoubleEq(0))),
                                   Pair("ref-cycles", Pair(std::nullopt, DoubleEq(0)))));
}

v1::TimelineRecord Marker(const std::string& name) {
  v1::TimelineRecord record;
  record.mutable_marker()->set_name(name);
  return record;
}

class ObservingWriterTest : public ::testing::Test {
 protected:
  // With nobody who wants records where `most` is 0.
  std::unique_ptr<ObservingWriter> Writer(size_t most) {
    auto collecting = std::make_unique<fakes::CollectingWriter>();
    next_ = collecting.get();
    RecordRows::Sink sink;
    if (most > 0) {
      sink = [this, most](const vcpulse_record& record) {
        lines_.push_back(std::to_string(record.kind) + " " + (record.vm ? record.vm : "-") + " " +
                         (record.text ? record.text : std::to_string(record.vcpu)));
        return lines_.size() < most;
      };
    }
    return std::make_unique<ObservingWriter>(
        std::move(collecting), [this] { ++signals_; }, std::move(sink));
  }

  void AddSet(ObservingWriter& writer, uint32_t epoch) {
    v1::TimelineRecord record;
    *record.mutable_vcpu_set() = vm_.VcpuSet(1, epoch);
    writer.Add(record, 0);
  }
  void AddTick(ObservingWriter& writer, uint32_t epoch) {
    const core::Sample& sample = vm_.Next();
    writer.AddTick(1, epoch, sample, vm_.Verdicts());
  }

  fakes::SyntheticVm vm_{{fakes::Load::kBusy, fakes::Load::kIdle}, 100'000'000, 3};
  fakes::CollectingWriter* next_ = nullptr;
  std::vector<std::string> lines_;
  int signals_ = 0;
};

TEST_F(ObservingWriterTest, HandsAllOnAndTellsTicksFromTheSecondSampleOfAnEpoch) {
  const auto writer = Writer(100);
  AddSet(*writer, 1);
  AddTick(*writer, 1);
  EXPECT_THAT(lines_, IsEmpty());
  AddTick(*writer, 1);
  writer->Add(Marker("work"), 0);
  EXPECT_THAT(lines_, ElementsAre("1 guest-1 0", "1 guest-1 1", "2 - work"));
  EXPECT_THAT(next_->ticks, SizeIs(2));
  EXPECT_THAT(next_->records, SizeIs(2));
  writer->EndEpoch(1, 1);
  EXPECT_THAT(next_->ended, ElementsAre(std::pair(1U, 1U)));
}

TEST_F(ObservingWriterTest, AnotherEpochBeginsWithoutASampleBefore) {
  const auto writer = Writer(100);
  AddSet(*writer, 1);
  AddTick(*writer, 1);
  writer->EndEpoch(1, 1);
  AddSet(*writer, 2);
  AddTick(*writer, 2);
  EXPECT_THAT(lines_, IsEmpty());
  AddTick(*writer, 2);
  EXPECT_THAT(lines_, SizeIs(2));
}

TEST_F(ObservingWriterTest, WhoWantsNoMoreIsNotAskedAgainAndTheRecordingGoesOn) {
  const auto writer = Writer(1);
  AddSet(*writer, 1);
  for (int i = 0; i < 3; ++i) AddTick(*writer, 1);
  writer->Add(Marker("work"), 0);
  EXPECT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(next_->ticks, SizeIs(3));
  EXPECT_THAT(next_->records, SizeIs(2));
}

TEST_F(ObservingWriterTest, SamplesAndGapsAreSignsOfTheTickThreadAndNothingElseIs) {
  const auto writer = Writer(0);
  AddSet(*writer, 1);
  writer->Add(Marker("work"), 0);
  EXPECT_EQ(signals_, 0);
  AddTick(*writer, 1);
  EXPECT_EQ(signals_, 1);
  v1::TimelineRecord gap;
  gap.mutable_gap()->set_reason(v1::Gap::REASON_READ_FAILED);
  writer->Add(gap, 0);
  EXPECT_EQ(signals_, 2);
}

TEST_F(ObservingWriterTest, GapsAndLivesAreTold) {
  const auto writer = Writer(100);
  v1::TimelineRecord gap;
  gap.mutable_gap()->set_reason(v1::Gap::REASON_QUEUE_FULL);
  writer->Add(gap, 0);
  v1::TimelineRecord skipped;  // never recorded: it has no number
  skipped.mutable_life_cycle()->set_kind(v1::LifeCycle::KIND_VM_SKIPPED);
  skipped.mutable_life_cycle()->mutable_instance()->set_name("other\xff");
  writer->Add(skipped, 0);
  EXPECT_THAT(lines_, ElementsAre("3 - queue-full", "4 other? vm-skipped"));
}

}  // namespace

}  // namespace vcpulse::library
