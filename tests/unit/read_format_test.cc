#include "kvm/counters/read_format.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace vcpulse::kvm {
namespace {

using Words = std::vector<uint64_t>;

// nr, enabled, running, then value and id of each.
const Words kThree = {3, 1000, 900, 11, 501, 22, 502, 33, 503};

TEST(ParseGroupRead, FindsMembersByIdNotByPosition) {
  const std::array<uint64_t, 3> ids = {503, 501, 502};
  const auto values = ParseGroupRead(kThree, ids);
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(values->time_enabled_ns, 1000u);
  EXPECT_EQ(values->time_running_ns, 900u);
  EXPECT_EQ(values->counts, (std::array<uint64_t, 8>{33, 11, 22}));
}

TEST(ParseGroupRead, AMemberThatIsNotThereIsAnError) {
  const std::array<uint64_t, 2> ids = {501, 999};
  EXPECT_EQ(ParseGroupRead(kThree, ids), std::nullopt);
}

// A value that happens to equal an id must not be taken for one.
TEST(ParseGroupRead, ValuesAreNotTakenForIds) {
  const Words words = {2, 1, 1, 502, 501, 7, 502};
  const std::array<uint64_t, 1> ids = {502};
  EXPECT_EQ(ParseGroupRead(words, ids)->counts[0], 7u);
}

TEST(ParseGroupRead, EveryShorterReadIsRefused) {
  const std::array<uint64_t, 3> ids = {501, 502, 503};
  for (size_t size = 0; size < kThree.size(); ++size) {
    EXPECT_EQ(ParseGroupRead(std::span(kThree).first(size), ids), std::nullopt) << size;
  }
  EXPECT_TRUE(ParseGroupRead(kThree, ids).has_value());
}

TEST(ParseGroupRead, AnAbsurdCountIsRefused) {
  Words words = kThree;
  words[0] = ~uint64_t{0};
  const std::array<uint64_t, 1> ids = {501};
  EXPECT_EQ(ParseGroupRead(words, ids), std::nullopt);
  words[0] = uint64_t{1} << 63;  // twice that wraps to 0
  EXPECT_EQ(ParseGroupRead(words, ids), std::nullopt);
}

TEST(ParseGroupRead, MoreIdsThanSlotsAreRefused) {
  const std::array<uint64_t, 9> ids = {501, 501, 501, 501, 501, 501, 501, 501, 501};
  EXPECT_EQ(ParseGroupRead(kThree, ids), std::nullopt);
}

}  // namespace
}  // namespace vcpulse::kvm
