#pragma once

// A RecordWriter that keeps what it is given.

#include <cstdint>
#include <utility>
#include <vector>

#include "monitor/timeline/writer.h"

namespace vcpulse::fakes {

class CollectingWriter final : public timeline::RecordWriter {
 public:
  struct Tick {
    uint32_t vm = 0;
    uint32_t epoch = 0;
    core::Sample sample;
    std::vector<core::Verdict> verdicts;
  };

  std::vector<Tick> ticks;
  std::vector<v1::TimelineRecord> records;
  std::vector<std::pair<uint32_t, uint32_t>> ended;  // (vm, epoch)

  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override {
    ticks.push_back({vm, epoch, sample, {verdicts.begin(), verdicts.end()}});
  }
  void Add(v1::TimelineRecord record, int64_t) override { records.push_back(std::move(record)); }
  void EndEpoch(uint32_t vm, uint32_t epoch) override { ended.emplace_back(vm, epoch); }
  absl::Status Flush(const v1::ClockSnapshot&) override { return absl::OkStatus(); }

  std::vector<v1::VcpuSet> VcpuSets() const {
    std::vector<v1::VcpuSet> sets;
    for (const auto& record : records) {
      if (record.has_vcpu_set()) sets.push_back(record.vcpu_set());
    }
    return sets;
  }

  std::vector<v1::Gap> Gaps() const {
    std::vector<v1::Gap> gaps;
    for (const auto& record : records) {
      if (record.has_gap()) gaps.push_back(record.gap());
    }
    return gaps;
  }

  std::vector<v1::LifeCycle::Kind> LifeCycleKinds() const {
    std::vector<v1::LifeCycle::Kind> kinds;
    for (const auto& record : records) {
      if (record.has_life_cycle()) kinds.push_back(record.life_cycle().kind());
    }
    return kinds;
  }
};

}  // namespace vcpulse::fakes
