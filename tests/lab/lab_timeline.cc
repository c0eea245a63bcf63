#include "tests/lab/lab_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <variant>

#include "absl/status/status.h"

namespace vcpulse::lab {
namespace {

// Takes the records of one timeline in order.
class Collector {
 public:
  explicit Collector(RecordedTimeline& into) : into_(into) {}

  absl::Status Take(const timeline::Entry& entry) {
    std::visit([this](const auto& record) { Add(record); }, entry.record);
    return absl::OkStatus();
  }

 private:
  void Add(const v1::Session& session) { into_.session = session; }
  void Add(const v1::Gap& gap) { into_.gaps.push_back(gap); }
  void Add(const v1::LifeCycle& change) { into_.life_cycle.push_back(change); }
  void Add(const v1::Summary& summary) { into_.summary = summary; }
  void Add(const v1::Marker&) {}
  void Add(const v1::ClockSnapshot&) {}
  void Add(const v1::Profile&) {}
  void Add(const v1::Statistics&) {}
  void Add(const v1::Competitors& window) { into_.competitors.push_back(window); }
  void Add(const v1::HotAddresses& hot) { into_.hot_addresses.push_back(hot); }

  void Add(const v1::VcpuSet& set) {
    RecordedVm& vm = into_.vms[set.vm()];
    vm.instance = set.instance();
    vm.sets.push_back(set);
  }

  void Add(const timeline::TickEntry& entry) {
    RecordedVm& vm = into_.vms[entry.vm];
    ASSERT_FALSE(vm.sets.empty()) << "a tick before its vCPU set";
    // The last tick of an epoch may come after the set of the next one.
    const auto of_epoch = std::ranges::find(vm.sets, entry.epoch, &v1::VcpuSet::epoch);
    ASSERT_NE(of_epoch, vm.sets.end());
    const v1::VcpuSet& set = *of_epoch;
    ASSERT_EQ(entry.sample.vcpus.size(), static_cast<size_t>(set.vcpus_size()));
    ASSERT_FALSE(entry.sample.vcpus.empty());

    if (vm.first_sample_ns == 0) {
      vm.first_tick = entry.sample.tick;
      vm.first_sample_ns = entry.sample.vcpus.front().read_begin_ns;
    }
    vm.last_tick = entry.sample.tick;
    vm.last_sample_ns = entry.sample.vcpus.back().read_end_ns;
    if (entry.previous == nullptr) return;

    const core::EventSlots slots = core::FindSlots(set.events());
    for (size_t i = 0; i < entry.sample.vcpus.size(); ++i) {
      vm.intervals[set.vcpus(static_cast<int>(i)).index()].push_back(
          {.tick = entry.sample.tick,
           .delta = core::Subtract(entry.previous->vcpus[i], entry.sample.vcpus[i]),
           .verdict = entry.verdicts[i],
           .slots = slots});
    }
  }

  RecordedTimeline& into_;
};

}  // namespace

uint32_t RecordedTimeline::NumberOf(const std::string& name) const {
  std::vector<uint32_t> numbers;
  for (const auto& [number, vm] : vms) {
    if (vm.instance.name() == name) numbers.push_back(number);
  }
  EXPECT_EQ(numbers.size(), 1u) << "VMs called " << name;
  return numbers.size() == 1 ? numbers.front() : 0;
}

std::string OutputPath(const std::string& run, const std::string& file) {
  return std::string(VCPULSE_LAB_OUT) + "/" + run + "/" + file;
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

RecordedTimeline Load(const std::string& path) {
  RecordedTimeline recorded;
  Collector collector(recorded);
  const auto read = timeline::ReadTimeline(
      path, [&collector](const timeline::Entry& entry) { return collector.Take(entry); });
  EXPECT_TRUE(read.ok()) << path << ": " << read.status().ToString();
  if (!read.ok()) return recorded;
  recorded.read = *read;
  EXPECT_TRUE(read->damages.empty());
  EXPECT_EQ(read->lost_records, 0u);
  EXPECT_TRUE(read->ended_in_order);
  EXPECT_TRUE(recorded.summary.has_value());
  return recorded;
}

}  // namespace vcpulse::lab
