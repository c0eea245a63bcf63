#include <gtest/gtest.h>

#include "monitor/core/delta.h"

namespace vcpulse::core {
namespace {

constexpr int64_t kMs = 1'000'000;

VcpuSample At(int64_t ns) {
  VcpuSample sample{.read_begin_ns = ns, .read_end_ns = ns};
  sample.counts[0] = static_cast<uint64_t>(ns);
  return sample;
}

std::optional<VcpuDelta> Push(VerdictWindow& window, const VcpuSample& sample) {
  VcpuDelta delta;
  if (!window.Push(sample, delta)) return std::nullopt;
  return delta;
}

TEST(VerdictWindow, LongTicksAreJudgedOneByOne) {
  VerdictWindow window(100 * kMs);
  EXPECT_EQ(Push(window, At(0)), std::nullopt);
  EXPECT_EQ(Push(window, At(100 * kMs))->interval_ns, 100 * kMs);
  EXPECT_EQ(Push(window, At(201 * kMs))->interval_ns, 101 * kMs);
}

// At 1 ms half of the ticks of a shared vCPU see nothing run: ten of them make a verdict.
TEST(VerdictWindow, ShortTicksAreJudgedOverTenMilliseconds) {
  VerdictWindow window(1 * kMs);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(Push(window, At(i * kMs)), std::nullopt) << i;
  for (int64_t i = 10; i < 100; ++i) {
    const auto delta = Push(window, At(i * kMs));
    ASSERT_TRUE(delta.has_value()) << i;
    EXPECT_EQ(delta->interval_ns, 10 * kMs);
    EXPECT_EQ(delta->counts[0], static_cast<uint64_t>(10 * kMs));
  }
}

// A tick that comes a little early must not stretch the window to one tick more.
TEST(VerdictWindow, ToleratesATickThatIsALittleEarly) {
  VerdictWindow window(10 * kMs);
  Push(window, At(0));
  EXPECT_EQ(Push(window, At(9'600'000))->interval_ns, 9'600'000);
  EXPECT_EQ(Push(window, At(9'600'000 + 9'000'000))->interval_ns, 18'600'000);
}

// After a stall one tick may cover the window alone.
TEST(VerdictWindow, TakesTheShortestSpanThatIsEnough) {
  VerdictWindow window(1 * kMs);
  Push(window, At(0));
  Push(window, At(1 * kMs));
  EXPECT_EQ(Push(window, At(30 * kMs))->interval_ns, 29 * kMs);
}

}  // namespace
}  // namespace vcpulse::core
