#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "monitor/library/include/vcpulse.h"
#include "monitor/metric/interval.h"
#include "monitor/timeline/writer.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::library {

// Makes the flat records of the C API of a stream's records, which come in order. Memory grows with
// the number of epochs alone. One thread.
class RecordRows {
 public:
  // Takes a record, which lives during the call; false: no more of them.
  using Sink = std::function<bool(const vcpulse_record&)>;

  explicit RecordRows(Sink sink) : sink_(std::move(sink)) {}

  // Each is false once the sink wants no more. Context that comes again is passed over.
  bool Add(const v1::Session& session);
  bool Add(const v1::VcpuSet& set);
  bool Add(const v1::Marker& marker);
  bool Add(const v1::Gap& gap);
  bool Add(const v1::Statistics& statistics);
  bool Add(const v1::LifeCycle& life_cycle);
  // All vCPUs of one sample; `previous` is the one before it in its epoch, or null. What does not
  // fit its vCPU set is passed over.
  bool AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               const core::Sample* previous, std::span<const core::Verdict> verdicts);
  // No tick of this epoch comes any more.
  void EndEpoch(uint32_t vm, uint32_t epoch);

 private:
  struct Vm {
    std::string name;
    uint32_t pid = 0;
  };
  bool AddRow(const metric::Interval& interval);
  // Fills counts_ and shares_.
  void Count(const metric::Interval& interval);
  // The VM's name and PID into `record`.
  void Name(uint32_t vm, vcpulse_record& record) const;
  void Learn(uint32_t vm, const v1::VmInstance& instance);

  Sink sink_;
  metric::IntervalReader intervals_;
  std::map<uint32_t, Vm> vms_;
  // By (vm, epoch), of its events.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const char*>> event_names_;
  std::vector<uint64_t> counts_;
  std::vector<double> shares_;
};

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
