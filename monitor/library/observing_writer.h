#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "monitor/library/record_rows.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::library {

// Hands every record on to the writer of the file, and to those who watch the recording. One
// thread, that of the writer.
class ObservingWriter final : public timeline::RecordWriter {
 public:
  // `on_signal` is called with each sample and each gap: the tick thread has been there. `rows` may
  // be empty: nobody wants records.
  ObservingWriter(std::unique_ptr<timeline::RecordWriter> next, std::function<void()> on_signal,
                  RecordRows::Sink rows);

  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override;
  void Add(v1::TimelineRecord record, int64_t mono_ns) override;
  void EndEpoch(uint32_t vm, uint32_t epoch) override;
  absl::Status Flush(const v1::ClockSnapshot& clock) override { return next_->Flush(clock); }

 private:
  // Nobody wants records any more.
  void StopWatching();

  std::unique_ptr<timeline::RecordWriter> next_;
  std::function<void()> on_signal_;
  std::optional<RecordRows> rows_;
  std::map<std::pair<uint32_t, uint32_t>, core::Sample> previous_;  // by (vm, epoch)
};

}  // namespace vcpulse::library
