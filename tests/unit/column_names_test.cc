#include "monitor/import/column_names.h"

#include <gtest/gtest.h>

namespace vcpulse::importing {
namespace {

// The rule that README and --help tell: what perf knows, and what is written as only events are.
TEST(ColumnNames, EventsInAnyFile) {
  for (const char* name : {"cycles", "L1-dcache-load-misses", "task-clock", "r01a8", "r0x1a8",
                           "kvm:kvm_exit", "armv8_pmuv3/inst_retired/", "cpu/event=0x3c,umask=0x1/",
                           "misc_retired.pause_inst", "cycles:u"}) {
    EXPECT_TRUE(IsEventName(name, false)) << name;
  }
}

TEST(ColumnNames, OtherWordsAreEventsInAnExportAlone) {
  for (const char* name : {"foo", "i1", "label", "Cycles", "read"}) {
    EXPECT_FALSE(IsEventName(name, false)) << name;
    EXPECT_TRUE(IsEventName(name, true)) << name;
  }
}

TEST(ColumnNames, NeverAnEvent) {
  const std::string longest(256, 'x');
  EXPECT_TRUE(IsEventName(longest, true));
  for (const std::string& name : {std::string(), std::string("two words"), std::string("a,b"),
                                  std::string("{a}"), std::string("a\x1b"), longest + "x"}) {
    EXPECT_FALSE(IsEventName(name, true)) << name;
  }
}

TEST(ColumnNames, FieldsOfBothFormats) {
  EXPECT_EQ(FieldOfColumn("t_ns"), Field::kT);
  EXPECT_EQ(FieldOfKey("t_mono_ns"), Field::kT);
  EXPECT_EQ(FieldOfKey("interval_s"), Field::kDt);
  EXPECT_EQ(FieldOfColumn("run_delay_ns"), Field::kRunDelay);
  EXPECT_EQ(FieldOfKey("t_ns"), std::nullopt);
  EXPECT_TRUE(IsDerived("raw_band"));
  EXPECT_FALSE(IsDerived("cycles"));
}

}  // namespace
}  // namespace vcpulse::importing
