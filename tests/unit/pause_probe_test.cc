// A virtual PMU may open any raw event and count nothing: its zero is no sign of a thread that does
// not pause.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>

#include "kvm/host.h"
#include "tests/fakes/fake_perf_events.h"

namespace vcpulse::kvm {
namespace {

const Event kProbedPause = {
    .name = "misc_retired.pause_inst", .type = PERF_TYPE_RAW, .config = 0x40cc};

TEST(PauseProbe, BelievesAnEventThatCounts) {
  fakes::FakePerfEvents perf;
  perf.groups[0].time_running_ns = 5'000'000;
  perf.groups[0].counts[kProbedPause.config] = 40'000;
  EXPECT_EQ(WhyPauseIsNotBelieved(perf, kProbedPause), "");
  EXPECT_EQ(perf.opened.size(), 1u);
  EXPECT_TRUE(perf.groups[0].enabled);
}

TEST(PauseProbe, DistrustsOneThatStaysZero) {
  fakes::FakePerfEvents perf;
  perf.groups[0].time_running_ns = 5'000'000;
  EXPECT_NE(WhyPauseIsNotBelieved(perf, kProbedPause), "");
}

// Opening says more of these: the errno of the event, or another set.
TEST(PauseProbe, SaysNothingOfWhatDoesNotOpenOrRun) {
  fakes::FakePerfEvents perf;
  EXPECT_EQ(WhyPauseIsNotBelieved(perf, kProbedPause), "");  // was never on the PMU
  perf.refused[{PERF_TYPE_RAW, kProbedPause.config}] = ENOENT;
  EXPECT_EQ(WhyPauseIsNotBelieved(perf, kProbedPause), "");
}

}  // namespace
}  // namespace vcpulse::kvm
