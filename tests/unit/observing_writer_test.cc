#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "monitor/library/record_rows.h"
#include "tests/fakes/collecting_writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::library {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
