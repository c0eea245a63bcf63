#include "kvm/events/event_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "tests/unit/kvm/events/perf_list_names.h"

namespace vcpulse::kvm {
namespace {

using ::testing::IsSupersetOf;
using ::testing::SizeIs;

struct NameRow {
  const char* name;
  uint32_t type;
  uint64_t config;
};

void ExpectAre(std::initializer_list<NameRow> rows, bool host_side) {
  for (const NameRow& row : rows) {
    const auto event = FindGenericEvent(row.name);
    ASSERT_TRUE(event) << row.name;
    EXPECT_EQ(event->type, row.type) << row.name;
    EXPECT_EQ(event->config, row.config) << row.name;
    EXPECT_EQ(event->host_side, host_side) << row.name;
  }
}

TEST(FindGenericEvent, HardwareEventsAreTheKernelsEnum) {
  constexpr uint32_t kType = PERF_TYPE_HARDWARE;
  ExpectAre({{"cycles", kType, PERF_COUNT_HW_CPU_CYCLES},
             {"cpu-cycles", kType, PERF_COUNT_HW_CPU_CYCLES},
             {"instructions", kType, PERF_COUNT_HW_INSTRUCTIONS},
             {"cache-references", kType, PERF_COUNT_HW_CACHE_REFERENCES},
             {"cache-misses", kType, PERF_COUNT_HW_CACHE_MISSES},
             {"branches", kType, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
             {"branch-instructions", kType, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
             {"branch-misses", kType, PERF_COUNT_HW_BRANCH_MISSES},
             {"bus-cycles", kType, PERF_COUNT_HW_BUS_CYCLES},
             {"stalled-cycles-frontend", kType, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
             {"idle-cycles-frontend", kType, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
             {"stalled-cycles-backend", kType, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
             {"idle-cycles-backend", kType, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
             {"ref-cycles", kType, PERF_COUNT_HW_REF_CPU_CYCLES}},
            /*host_side=*/false);
}

// They ignore exclude_host, so a reader has to be told.
TEST(FindGenericEvent, SoftwareEventsCountTheHostToo) {
  constexpr uint32_t kType = PERF_TYPE_SOFTWARE;
  ExpectAre({{"cpu-clock", kType, PERF_COUNT_SW_CPU_CLOCK},
             {"task-clock", kType, PERF_COUNT_SW_TASK_CLOCK},
             {"page-faults", kType, PERF_COUNT_SW_PAGE_FAULTS},
             {"faults", kType, PERF_COUNT_SW_PAGE_FAULTS},
             {"context-switches", kType, PERF_COUNT_SW_CONTEXT_SWITCHES},
             {"cs", kType, PERF_COUNT_SW_CONTEXT_SWITCHES},
             {"cpu-migrations", kType, PERF_COUNT_SW_CPU_MIGRATIONS},
             {"migrations", kType, PERF_COUNT_SW_CPU_MIGRATIONS},
             {"minor-faults", kType, PERF_COUNT_SW_PAGE_FAULTS_MIN},
             {"major-faults", kType, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
             {"alignment-faults", kType, PERF_COUNT_SW_ALIGNMENT_FAULTS},
             {"emulation-faults", kType, PERF_COUNT_SW_EMULATION_FAULTS},
             {"dummy", kType, PERF_COUNT_SW_DUMMY},
             {"bpf-output", kType, PERF_COUNT_SW_BPF_OUTPUT},
             {"cgroup-switches", kType, 11}},
            /*host_side=*/true);
}

constexpr uint64_t Cache(uint64_t cache, uint64_t operation, uint64_t result) {
  return cache | operation << 8 | result << 16;
}
constexpr uint64_t kRead = PERF_COUNT_HW_CACHE_OP_READ;
constexpr uint64_t kWrite = PERF_COUNT_HW_CACHE_OP_WRITE;
constexpr uint64_t kPrefetch = PERF_COUNT_HW_CACHE_OP_PREFETCH;
constexpr uint64_t kAccess = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
constexpr uint64_t kMiss = PERF_COUNT_HW_CACHE_RESULT_MISS;

TEST(FindGenericEvent, CacheEventsAreTheMatrixOfTheManual) {
  constexpr uint32_t kType = PERF_TYPE_HW_CACHE;
  ExpectAre({{"L1-dcache-loads", kType, Cache(PERF_COUNT_HW_CACHE_L1D, kRead, kAccess)},
             {"L1-dcache-load-misses", kType, Cache(PERF_COUNT_HW_CACHE_L1D, kRead, kMiss)},
             {"L1-dcache-store-misses", kType, Cache(PERF_COUNT_HW_CACHE_L1D, kWrite, kMiss)},
             {"L1-icache-prefetches", kType, Cache(PERF_COUNT_HW_CACHE_L1I, kPrefetch, kAccess)},
             {"LLC-prefetch-misses", kType, Cache(PERF_COUNT_HW_CACHE_LL, kPrefetch, kMiss)},
             {"LLC-stores", kType, Cache(PERF_COUNT_HW_CACHE_LL, kWrite, kAccess)},
             {"dTLB-stores", kType, Cache(PERF_COUNT_HW_CACHE_DTLB, kWrite, kAccess)},
             {"iTLB-load-misses", kType, Cache(PERF_COUNT_HW_CACHE_ITLB, kRead, kMiss)},
             {"branch-loads", kType, Cache(PERF_COUNT_HW_CACHE_BPU, kRead, kAccess)},
             {"branch-load-misses", kType, Cache(PERF_COUNT_HW_CACHE_BPU, kRead, kMiss)},
             {"node-prefetch-misses", kType, Cache(PERF_COUNT_HW_CACHE_NODE, kPrefetch, kMiss)}},
            /*host_side=*/false);
}

// perf's words for one and the same event, and what it takes for what is not said.
TEST(FindGenericEvent, CacheEventsHaveManySpellings) {
  for (const char* name :
       {"L1-dcache-loads", "L1-dcache-load", "L1-dcache", "l1-d", "l1d", "L1-data", "l1d-read",
        "L1-DCACHE-LOADS", "l1d-loads-refs", "l1d-read-access", "l1d-read-Reference", "l1d-ops",
        "l1-d-access-read", "L1-data-loads-ops"}) {
    ExpectAre({{name, PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_L1D, kRead, kAccess)}}, false);
  }
  for (const char* name : {"LLC-prefetch-misses", "L2-prefetches-miss", "llc-speculative-read-miss",
                           "L2-miss-speculative-load"}) {
    ExpectAre({{name, PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_LL, kPrefetch, kMiss)}}, false);
  }
  for (const char* name : {"d-tlb-write-miss", "Data-TLB-store-misses"}) {
    ExpectAre({{name, PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_DTLB, kWrite, kMiss)}}, false);
  }
  for (const char* name : {"bpu-read", "btb-loads", "bpc", "branch-load"}) {
    ExpectAre({{name, PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_BPU, kRead, kAccess)}}, false);
  }
}

// "branch" begins a cache's name too: the hardware event goes first, in any case.
TEST(FindGenericEvent, HardwareNamesGoBeforeCacheNames) {
  for (const char* name : {"branch-misses", "Branch-Misses"}) {
    ExpectAre({{name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}}, false);
  }
}

TEST(FindGenericEvent, RefusesAnythingElse) {
  for (const char* name :
       {"", "cycle", "cycles ", "L1", "L1-dcache-", "L1-dcachex", "L1-dcache-loads-", "L1-dcache--",
        "l1d-read-write", "l1d-miss-access", "l1d-read-miss-read", "L3-loads", "branches-loads",
        "node-loadsx", "loads", "-loads", "duration_time"}) {
    EXPECT_FALSE(FindGenericEvent(name)) << name;
  }
}

// The report and the bands look for these names.
TEST(FindGenericEvent, TheNameIsTheOneWrittenButForTwo) {
  EXPECT_EQ(FindGenericEvent("cpu-cycles")->name, "cycles");
  EXPECT_EQ(FindGenericEvent("branch-instructions")->name, "branches");
  EXPECT_EQ(FindGenericEvent("idle-cycles-frontend")->name, "idle-cycles-frontend");
  EXPECT_EQ(FindGenericEvent("cs")->name, "cs");
  EXPECT_EQ(FindGenericEvent("l1d-read")->name, "l1d-read");
  EXPECT_EQ(FindGenericEvent("Instructions")->name, "instructions");
}

TEST(GenericEvents, AreAllOfThemOnceAndFoundByTheirNames) {
  EXPECT_THAT(GenericEvents(), SizeIs(10 + 12 + 7 * 3 * 2));
  std::set<std::pair<uint32_t, uint64_t>> different;
  for (const GenericEvent& generic : GenericEvents()) {
    different.insert({generic.event.type, generic.event.config});
    EXPECT_EQ(FindGenericEvent(generic.event.name), generic.event) << generic.event.name;
  }
  EXPECT_THAT(different, SizeIs(GenericEvents().size()));
}

// Whatever perf lists, by perf's own name.
TEST(GenericEvents, HoldEveryNameThatPerfPrints) {
  std::ifstream in(VCPULSE_TEST_DATA "/perf-list-names.txt");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::vector<std::string> names = NamesInPerfList(text);
  EXPECT_THAT(names, SizeIs(14 + 15 + 32));
  std::vector<std::string> listed;
  for (const GenericEvent& generic : GenericEvents()) {
    listed.push_back(generic.event.name);
    listed.insert(listed.end(), generic.aliases.begin(), generic.aliases.end());
  }
  EXPECT_THAT(listed, IsSupersetOf(names));
  for (const std::string& name : names) EXPECT_TRUE(FindGenericEvent(name)) << name;
}

}  // namespace
}  // namespace vcpulse::kvm
