#include "kvm/events/event_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>

#include "kvm/base/text.h"
#include "kvm/events/event_names.h"
#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> Names(const std::vector<ListedEvent>& events) {
  std::vector<std::string> names;
  for (const ListedEvent& listed : events) names.push_back(listed.name);
  return names;
}

EventCatalog Host(const std::string& name) { return EventCatalog(fakes::HostTree(name)); }

std::vector<std::string> Listed(const std::string& host, const std::string& pattern) {
  return Names(ListEvents(Host(host), pattern));
}

TEST(ListEvents, AreTheGenericOnesAndThoseOfTheCorePmus) {
  EXPECT_THAT(Listed("no-pmu", ""), SizeIs(GenericEvents().size()));
  EXPECT_THAT(Listed("hybrid", ""), IsSupersetOf({"cycles", "task-clock", "node-prefetch-misses",
                                                  "cpu_core/slots/", "cpu_atom/cpu-cycles/"}));
  // A msr counts the CPU, whoever runs on it, and an uncore PMU no thread.
  EXPECT_THAT(Listed("intel", ""), Not(Contains("msr/tsc/")));
  EXPECT_THAT(Listed("intel", ""), Not(Contains("uncore_imc_0/clockticks/")));
}

TEST(ListEvents, APatternIsAPartOrHasWildcardsOrIsAKind) {
  EXPECT_THAT(Listed("arm64", "FAULTS"), ElementsAre("page-faults", "minor-faults", "major-faults",
                                                     "alignment-faults", "emulation-faults"));
  EXPECT_THAT(Listed("no-pmu", "*-clock"), ElementsAre("cpu-clock", "task-clock"));
  EXPECT_THAT(Listed("no-pmu", "cpu-cycles"), ElementsAre("cycles")) << "an alias";
  EXPECT_THAT(Listed("no-pmu", "hardware"), SizeIs(10));
  EXPECT_THAT(Listed("no-pmu", "no such"), IsEmpty());
  EXPECT_THAT(Listed("no-pmu", "\\"), IsEmpty());
}

TEST(ListEvents, EachIsAnEventOfTheHost) {
  for (const ListedEvent& listed : ListEvents(Host("arm64"), "armv8_pmuv3_0/cpu_cycles/")) {
    EXPECT_EQ(listed.kind, "pmu");
    EXPECT_EQ(listed.obstacle, "");
    EXPECT_EQ(listed.event.type, 8u);
    EXPECT_EQ(listed.event.config, 0x11u);
  }
}

// There are thousands, so they want a pattern.
TEST(ListEvents, TracepointsOnlyByPattern) {
  fakes::ProcDir root;
  root.Write("sys/kernel/tracing/events/kvm/kvm_exit/id", "1812\n");
  root.Write("sys/kernel/tracing/events/kvm/kvm_hidden/format", "x\n");
  const EventCatalog catalog(root.root());
  EXPECT_THAT(Names(ListEvents(catalog, "")), Not(Contains("kvm:kvm_exit")));
  const auto listed = ListEvents(catalog, "kvm:*");
  ASSERT_THAT(Names(listed), ElementsAre("kvm:kvm_exit", "kvm:kvm_hidden"));
  EXPECT_EQ(listed[0].event.config, 1812u);
  EXPECT_TRUE(listed[0].event.host_side);
  EXPECT_NE(listed[1].obstacle, "") << "it has no id that could be opened";
  EXPECT_THAT(ListEvents(catalog, "tracepoint"), SizeIs(2));
  EXPECT_THAT(Names(ListEvents(catalog, "cpu-clock")), ElementsAre("cpu-clock"));
}

// What `record` would be told: guest only, on a thread.
TEST(TryToOpen, UsesTheAttributesOfARecording) {
  fakes::FakePerfEvents perf;
  EXPECT_EQ(TryToOpen(perf, *FindGenericEvent("cycles")), 0);
  ASSERT_THAT(perf.opened, SizeIs(1));
  EXPECT_EQ(perf.opened[0].exclude_host, 1u);
  EXPECT_EQ(perf.opened[0].disabled, 1u);
  perf.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES}] = ENOENT;
  EXPECT_EQ(TryToOpen(perf, *FindGenericEvent("ref-cycles")), ENOENT);
}

// An event that may not be opened is no event that is missing.
TEST(OpenAnswer, TellsPermissionFromAbsence) {
  EXPECT_EQ(OpenAnswer(0), "opens");
  EXPECT_EQ(OpenAnswer(EACCES), "no permission");
  EXPECT_EQ(OpenAnswer(EPERM), "no permission");
  EXPECT_EQ(OpenAnswer(ENOENT), "no such event on this host");
  EXPECT_EQ(OpenAnswer(ENOSPC), "No space left on device");
}

}  // namespace
}  // namespace vcpulse::kvm
