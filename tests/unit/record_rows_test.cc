#include "monitor/library/record_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vcpulse::library {
namespace {

using ::testing::DoubleEq;
using ::testing::Pair;
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

}  // namespace
}  // namespace vcpulse::library
