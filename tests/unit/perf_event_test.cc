#include <gtest/gtest.h>

#include "monitor/import/perf_json.h"

namespace vcpulse::importing {
namespace {

struct Case {
  const char* written;
  const char* name;
  bool counts_host;
};

TEST(PerfEvent, NamesAndSides) {
  for (const Case& c : {
           Case{"cycles:G", "cycles", false},
           Case{"cycles:GD", "cycles", false},
           Case{"cycles:ukG", "cycles", false},
           Case{"cpu-cycles:G", "cycles", false},
           Case{"cpu/cycles/G", "cycles", false},
           Case{"cpu_core/cycles/G", "cpu_core/cycles/", false},
           Case{"L1-dcache-loads:G", "L1-dcache-loads", false},
           Case{"armv8_pmuv3/inst_retired/G", "armv8_pmuv3/inst_retired/", false},
           Case{"r01a8:G", "r01a8", false},
           Case{"misc_retired.pause_inst:G", "misc_retired.pause_inst", false},
           // One privilege level of the guest is no cycles of the guest.
           Case{"cycles:uG", "cycles:uG", false},
           Case{"cycles", "cycles:H", true},
           Case{"cycles:u", "cycles:u", true},
           Case{"cycles:GH", "cycles:GH", true},
           Case{"cpu/cycles/", "cycles:H", true},
           Case{"r01a8", "r01a8:H", true},
           Case{"task-clock", "task-clock", true},
           Case{"task-clock:G", "task-clock:G", true},
           Case{"kvm:kvm_exit", "kvm:kvm_exit", true},
           Case{"i1", "i1", false},
           Case{"no such (thing)", "no such (thing)", false},
       }) {
    const PerfEvent event = ReadPerfEvent(c.written);
    EXPECT_EQ(event.name, c.name) << c.written;
    EXPECT_EQ(event.counts_host, c.counts_host) << c.written;
  }
  EXPECT_TRUE(ReadPerfEvent("task-clock").by_nature);
  EXPECT_FALSE(ReadPerfEvent("cycles").by_nature);
}

}  // namespace
}  // namespace vcpulse::importing
