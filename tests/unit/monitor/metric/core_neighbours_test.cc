#include "monitor/metric/core_neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

namespace vcpulse::metric {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr int64_t kOneSecond = 1'000'000'000;
constexpr VcpuId kA{.vm = 1, .index = 0};
constexpr VcpuId kB{.vm = 2, .index = 3};

// CPUs 0 and 2 are one core, 1 and 3 another; of CPU 4 nothing is known.
class CoreNeighboursTest : public ::testing::Test {
 protected:
  CoreNeighboursTest() { neighbours_.SetCores({1, 2, 1, 2, 0}); }

  // A reading at that second, by when it ran for so much of the last one.
  auto Read(VcpuId vcpu, uint32_t cpu, int64_t second, double share = 1) {
    run_ns_[vcpu] += static_cast<uint64_t>(share * 1e9);
    return neighbours_.Add(vcpu, cpu, second * kOneSecond, run_ns_[vcpu]);
  }

  CoreNeighbours neighbours_;
  std::map<VcpuId, uint64_t> run_ns_;
};

TEST_F(CoreNeighboursTest, AreThoseThatRanOnTheOtherThread) {
  Read(kA, 0, 1);
  Read(kB, 2, 1);
  EXPECT_THAT(Read(kA, 0, 2), Optional(IsEmpty()));  // B's reading of that second comes yet
  EXPECT_THAT(Read(kB, 2, 2), Optional(ElementsAre(kA)));
  EXPECT_THAT(Read(kA, 0, 3), Optional(ElementsAre(kB)));
}

TEST_F(CoreNeighboursTest, AHaltedOneIsNone) {
  Read(kA, 0, 1);
  Read(kB, 2, 1);
  EXPECT_EQ(Read(kB, 2, 2, 0.09), std::nullopt);
  EXPECT_THAT(Read(kA, 0, 2), Optional(IsEmpty()));
  EXPECT_THAT(Read(kB, 2, 3, 0.1), Optional(ElementsAre(kA)));
}

TEST_F(CoreNeighboursTest, OneOnTheSameCpuTakesTurnsAndIsNone) {
  Read(kA, 0, 1);
  Read(kB, 0, 1);
  EXPECT_THAT(Read(kB, 0, 2, 0.5), Optional(IsEmpty()));
  EXPECT_THAT(Read(kA, 0, 2, 0.5), Optional(IsEmpty()));
}

TEST_F(CoreNeighboursTest, OneThatWentAwayIsNone) {
  Read(kA, 0, 1);
  Read(kB, 2, 1);
  Read(kB, 3, 2);
  EXPECT_THAT(Read(kA, 0, 2), Optional(IsEmpty()));
  EXPECT_THAT(Read(kA, 1, 3), Optional(ElementsAre(kB)));
}

TEST_F(CoreNeighboursTest, AnOldReadingTellsNothing) {
  Read(kB, 2, 1);
  Read(kB, 2, 2);
  Read(kA, 0, 3);
  EXPECT_THAT(Read(kA, 0, 4), Optional(IsEmpty()));
}

TEST_F(CoreNeighboursTest, WhereTheCoreIsNotKnownNothingIs) {
  Read(kA, 4, 1);
  EXPECT_EQ(Read(kA, 4, 2), std::nullopt);
  EXPECT_EQ(Read(kA, 9, 3), std::nullopt);
  CoreNeighbours without;
  without.Add(kA, 0, kOneSecond, 0);
  EXPECT_EQ(without.Add(kA, 0, 2 * kOneSecond, kOneSecond), std::nullopt);
}

// A reading a tick: both see the same.
TEST_F(CoreNeighboursTest, AtSlowTicksEachSeesTheOther) {
  for (int64_t second = 10; second <= 50; second += 20) {
    const auto a = Read(kA, 0, second, 20);
    const auto b = Read(kB, 2, second + 1, 20);
    if (second < 50) continue;
    EXPECT_THAT(a, Optional(ElementsAre(kB)));
    EXPECT_THAT(b, Optional(ElementsAre(kA)));
  }
}

TEST_F(CoreNeighboursTest, OneOnAnUnknownCoreIsNotWhereItWas) {
  Read(kB, 2, 1);
  Read(kB, 2, 2);
  Read(kA, 0, 2);
  EXPECT_EQ(Read(kB, 4, 3), std::nullopt);
  EXPECT_THAT(Read(kA, 0, 3), Optional(IsEmpty()));
  EXPECT_THAT(Read(kB, 2, 4, 0.5), Optional(ElementsAre(kA)));  // of the last second alone
}

TEST_F(CoreNeighboursTest, AForgottenVmIsNoNeighbour) {
  Read(kA, 0, 1);
  Read(kB, 2, 1);
  Read(kB, 2, 2);
  neighbours_.Forget(kB.vm);
  EXPECT_THAT(Read(kA, 0, 2), Optional(IsEmpty()));
  EXPECT_EQ(Read(kB, 2, 3), std::nullopt);  // as one that is new
}

// As of a damaged file, which has all CPUs on one core.
TEST(CoreNeighbours, AreBounded) {
  constexpr uint32_t kVcpus = 1000;
  CoreNeighbours neighbours;
  neighbours.SetCores(std::vector<uint32_t>(kVcpus, 1));
  for (const int64_t second : {1, 2}) {
    for (uint32_t i = 0; i < kVcpus; ++i) {
      const auto found = neighbours.Add({.vm = 1, .index = i}, i, second * kOneSecond,
                                        static_cast<uint64_t>(second * kOneSecond));
      EXPECT_EQ(found.has_value(), second == 2);
      EXPECT_LE(found.value_or(std::vector<VcpuId>()).size(), CoreNeighbours::kMostPerCore);
    }
  }
}

TEST_F(CoreNeighboursTest, NumbersOfADamagedFileAreNoHarm) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  neighbours_.Add(kA, 0, std::numeric_limits<int64_t>::min(), ~uint64_t{0});
  EXPECT_EQ(neighbours_.Add(kA, 0, kMost, 0), std::nullopt);
  neighbours_.Add(kB, 2, kMost, 0);
  EXPECT_EQ(neighbours_.Add(kB, 2, 0, ~uint64_t{0}), std::nullopt);
}

}  // namespace
}  // namespace vcpulse::metric
