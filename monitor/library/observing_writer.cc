#include "monitor/library/observing_writer.h"

namespace vcpulse::library {
namespace {

// Of a record that is no tick; those that the C API does not tell are taken as they are.
bool AddTo(RecordRows& rows, const v1::TimelineRecord& record) {
  switch (record.record_case()) {
    case v1::TimelineRecord::kSession:
      return rows.Add(record.session());
    case v1::TimelineRecord::kVcpuSet:
      return rows.Add(record.vcpu_set());
    case v1::TimelineRecord::kMarker:
      return rows.Add(record.marker());
    case v1::TimelineRecord::kGap:
      return rows.Add(record.gap());
    case v1::TimelineRecord::kLifeCycle:
      return rows.Add(record.life_cycle());
    default:
      return true;
  }
}

}  // namespace

ObservingWriter::ObservingWriter(std::unique_ptr<timeline::RecordWriter> next,
                                 std::function<void()> on_signal, RecordRows::Sink rows)
    : next_(std::move(next)), on_signal_(std::move(on_signal)) {
  if (rows) rows_.emplace(std::move(rows));
}

void ObservingWriter::AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
                              std::span<const core::Verdict> verdicts) {
  next_->AddTick(vm, epoch, sample, verdicts);
  on_signal_();
  if (!rows_) return;
  const auto [before, first] = previous_.try_emplace({vm, epoch});
  const core::Sample* previous = first ? nullptr : &before->second;
  if (rows_->AddTick(vm, epoch, sample, previous, verdicts)) {
    before->second = sample;
  } else {
    StopWatching();
  }
}

void ObservingWriter::Add(v1::TimelineRecord record, int64_t mono_ns) {
  if (rows_ && !AddTo(*rows_, record)) StopWatching();
  const bool is_gap = record.has_gap();
  next_->Add(std::move(record), mono_ns);
  if (is_gap) on_signal_();
}

void ObservingWriter::EndEpoch(uint32_t vm, uint32_t epoch) {
  next_->EndEpoch(vm, epoch);
  previous_.erase({vm, epoch});
  if (rows_) rows_->EndEpoch(vm, epoch);
}

void ObservingWriter::StopWatching() {
  rows_.reset();
  previous_.clear();
}

}  // namespace vcpulse::library
