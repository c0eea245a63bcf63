#include <map>
#include <memory>
#include <string>
#include <utility>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/delimited_message_util.h"
#include "monitor/core/check.h"
#include "monitor/core/delta.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/group_columns.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::timeline {
namespace {

// Bytes that are handed over without waiting for Flush.
constexpr size_t kHandedOverAt = 8u << 20;

// The public schema names what core holds: the values must agree.
static_assert(static_cast<int>(core::ThreadState::kIoWait) == v1::ThreadState_MAX);
static_assert(static_cast<int>(core::Band::kUnknown) == v1::Band_MAX);
static_assert(core::kRules == v1::Rule_ARRAYSIZE && core::kBands == v1::Band_ARRAYSIZE);

void FillDelta(const core::VcpuDelta& delta, size_t events, const core::Verdict& verdict,
               v1::VcpuTick* out) {
  out->set_interval_ns(static_cast<uint64_t>(delta.interval_ns));
  out->set_time_enabled_ns(delta.time_enabled_ns);
  out->set_time_running_ns(delta.time_running_ns);
  out->mutable_counts()->Add(delta.counts.begin(), delta.counts.begin() + events);
  if (delta.run_ns) out->set_run_ns(*delta.run_ns);
  if (delta.run_delay_ns) out->set_run_delay_ns(*delta.run_delay_ns);
  out->set_band(static_cast<v1::Band>(verdict.band));
  out->set_rule(static_cast<v1::Rule>(verdict.rule));
  out->set_starved(verdict.starved);
  if (verdict.band == core::Band::kNone) return;
  if (verdict.confidence_pct != 0) out->set_confidence_pct(verdict.confidence_pct);
  out->set_raw_band(static_cast<v1::Band>(verdict.raw_band));
  out->set_raw_rule(static_cast<v1::Rule>(verdict.raw_rule));
}

// The further groups of vCPU `v`, each with its own times and counts.
void FillGroups(const core::Sample& earlier, const core::Sample& later, size_t v,
                std::span<const size_t> events, v1::VcpuTick* out) {
  for (size_t g = 0; g < events.size(); ++g) {
    const size_t i = v * events.size() + g;
    const core::VcpuDelta delta =
        core::Subtract(core::WithGroup(earlier.vcpus[v], earlier.further[i]),
                       core::WithGroup(later.vcpus[v], later.further[i]));
    v1::GroupTick* group = out->add_further_groups();
    group->set_time_enabled_ns(delta.time_enabled_ns);
    group->set_time_running_ns(delta.time_running_ns);
    group->mutable_counts()->Add(delta.counts.begin(), delta.counts.begin() + events[g]);
  }
}

class DelimitedWriter final : public RecordWriter {
 public:
  explicit DelimitedWriter(ByteSink sink) : sink_(std::move(sink)) {}

  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override {
    const auto found = epochs_.find({vm, epoch});
    VCPULSE_CHECK(found != epochs_.end(), "a tick without its vCPU set");
    Epoch& state = found->second;
    VCPULSE_CHECK(sample.vcpus.size() == state.vcpus && verdicts.size() == state.vcpus,
                  "a tick that does not fit its vCPU set");
    VCPULSE_CHECK(sample.FurtherGroups() == state.further_events.size() || sample.vcpus.empty(),
                  "a tick of other groups than its vCPU set");
    tick_record_.Clear();
    v1::Tick* tick = tick_record_.mutable_tick();
    tick->set_vm(vm);
    tick->set_epoch(epoch);
    tick->set_tick(sample.tick);
    tick->set_deadline_mono_ns(sample.deadline_ns);
    tick->set_wake_mono_ns(sample.wake_ns);
    tick->set_first_of_epoch(!state.has_last);
    for (size_t v = 0; v < sample.vcpus.size(); ++v) {
      const core::VcpuSample& now = sample.vcpus[v];
      v1::VcpuTick* out = tick->add_vcpus();
      out->set_read_begin_mono_ns(now.read_begin_ns);
      out->set_read_end_mono_ns(now.read_end_ns);
      out->set_state(static_cast<v1::ThreadState>(now.state));
      if (!state.has_last) continue;
      FillDelta(core::Subtract(state.last.vcpus[v], now), state.events, verdicts[v], out);
      FillGroups(state.last, sample, v, state.further_events, out);
    }
    state.last = sample;
    state.has_last = true;
    Append(&tick_record_);
  }

  void Add(v1::TimelineRecord record, int64_t /*mono_ns*/) override {
    VCPULSE_CHECK(!record.has_tick(), "ticks go through AddTick");
    MakeTextsUtf8(&record);
    if (record.has_vcpu_set()) {
      const v1::VcpuSet& set = record.vcpu_set();
      const auto events = static_cast<size_t>(set.events_size());
      VCPULSE_CHECK(events <= core::kMaxEvents, "a vCPU set of too many events");
      epochs_[{set.vm(), set.epoch()}] = {.vcpus = static_cast<size_t>(set.vcpus_size()),
                                          .events = events,
                                          .further_events = FurtherEvents(set)};
    }
    Append(&record);
  }

  void EndEpoch(uint32_t vm, uint32_t epoch) override { epochs_.erase({vm, epoch}); }

  absl::Status Flush(const v1::ClockSnapshot& /*clock*/) override {
    HandOver();
    return std::exchange(error_, absl::OkStatus());
  }

 private:
  struct Epoch {
    size_t vcpus = 0;
    size_t events = 0;
    std::vector<size_t> further_events{};
    bool has_last = false;
    core::Sample last{};
  };

  void Append(v1::TimelineRecord* record) {
    record->set_sequence(next_sequence_++);
    google::protobuf::io::StringOutputStream out(&buffer_);
    VCPULSE_CHECK(google::protobuf::util::SerializeDelimitedToZeroCopyStream(*record, &out),
                  "a record that cannot be serialized");
    if (buffer_.size() >= kHandedOverAt) HandOver();
  }

  void HandOver() {
    if (buffer_.empty()) return;
    error_.Update(sink_({reinterpret_cast<const uint8_t*>(buffer_.data()), buffer_.size()}));
    buffer_.clear();
  }

  const ByteSink sink_;
  uint64_t next_sequence_ = 1;
  std::map<std::pair<uint32_t, uint32_t>, Epoch> epochs_;  // by (vm, epoch)
  v1::TimelineRecord tick_record_;                         // kept for its memory
  std::string buffer_;
  absl::Status error_;  // the first one since the last Flush
};

}  // namespace

std::unique_ptr<RecordWriter> NewDelimitedWriter(ByteSink sink) {
  return std::make_unique<DelimitedWriter>(std::move(sink));
}

}  // namespace vcpulse::timeline
