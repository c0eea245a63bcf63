#include "monitor/export/clocks.h"

#include "gtest/gtest.h"

namespace vcpulse::exporting {
namespace {

v1::ClockSnapshot At(int64_t mono_ns, int64_t boottime_ahead_ns) {
  v1::ClockSnapshot snapshot;
  snapshot.set_mono_ns(mono_ns);
  snapshot.set_boottime_ns(mono_ns + boottime_ahead_ns);
  return snapshot;
}

// Two readings of a snapshot lie some ns apart: what follows must not seem to come earlier.
TEST(Clocks, JitterBetweenSnapshotsMovesNoInstant) {
  Clocks clocks;
  EXPECT_EQ(clocks.Boottime(5), std::nullopt);
  clocks.Take(At(1'000, 70'000));
  clocks.Take(At(2'000, 69'900));
  EXPECT_EQ(clocks.Boottime(2'000), 72'000);
}

TEST(Clocks, ASuspendedHostDoes) {
  Clocks clocks;
  clocks.Take(At(1'000, 70'000));
  clocks.Take(At(2'000, 70'000 + 3'000'000'000));
  EXPECT_EQ(clocks.Boottime(2'000), 3'000'072'000);
}

}  // namespace
}  // namespace vcpulse::exporting
