#include "kvm/base/closest_name.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace vcpulse {
namespace {

const std::vector<std::string> kNames = {"record", "report", "replay", "export", "import"};

TEST(ClosestName, IsTheOneWithTheFewestWrongLetters) {
  EXPECT_EQ(ClosestName("recrd", kNames), "record") << "a letter is missing";
  EXPECT_EQ(ClosestName("reccord", kNames), "record") << "a letter too many";
  EXPECT_EQ(ClosestName("rekord", kNames), "record") << "another letter";
  EXPECT_EQ(ClosestName("REPORT", kNames), "report");
  EXPECT_EQ(ClosestName("xport", kNames), "export");
}

TEST(ClosestName, TwoLettersThatAreSwappedAreOneMistake) {
  const std::vector<std::string> names = {"abd", "web"};
  EXPECT_EQ(ClosestName("wbe", names), "web");
  EXPECT_EQ(ClosestName("bew", names), "") << "two apart are not swapped";
}

TEST(ClosestName, IsTheOnlyOneThatIsBegun) {
  EXPECT_EQ(ClosestName("rec", kNames), "record");
  EXPECT_EQ(ClosestName("rep", kNames), "") << "two begin so";
  EXPECT_EQ(ClosestName("im", kNames), "") << "too short";
  EXPECT_EQ(ClosestName("", kNames), "");
}

TEST(ClosestName, IsNoneWhereNoneIsClose) {
  EXPECT_EQ(ClosestName("classify", kNames), "");
  EXPECT_EQ(ClosestName(std::string(65, 'a'), std::vector<std::string>{std::string(65, 'a')}), "");
}

TEST(DidYouMean, EndsAnError) {
  EXPECT_EQ(DidYouMean("recrd", kNames), "; did you mean 'record'?");
  EXPECT_EQ(DidYouMean("x", kNames), "");
}

}  // namespace
}  // namespace vcpulse
