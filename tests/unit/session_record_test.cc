#include "monitor/recorder/session_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::recorder {
namespace {

using ::testing::HasSubstr;

std::string BlindSpot(v1::ResidencyMethod method) {
  return MakeSession({}, {.residency = {.method = method}}).residency_blind_spot();
}

// People read beside a residency what its method cannot see.
TEST(SessionRecord, EachMethodOfResidencyHasItsBlindSpot) {
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_REF_CYCLES), HasSubstr("only"));
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_MAX_FREQUENCY), HasSubstr("lower bound"));
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_TIME_ENABLED), HasSubstr("upper bound"));
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_HIGHEST_RATE), HasSubstr("too high"));
}

TEST(SessionRecord, NamesTheClassifierAndItsNumbers) {
  core::Profile profile;
  profile.presence.halted_enter = 0.03;
  const v1::Session session = MakeSession({}, {.classifier = core::ClassifierChoice::kEvidence,
                                               .profile = profile,
                                               .profile_name = "amd-zen4"});
  EXPECT_EQ(session.classifier().name(), "evidence");
  EXPECT_EQ(session.classifier().profile(), "amd-zen4");
  EXPECT_EQ(session.classifier().halted_enter(), 0.03);
  EXPECT_EQ(session.classifier().productive_from(), 1.0);
}

}  // namespace
}  // namespace vcpulse::recorder
