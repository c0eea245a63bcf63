#include "kvm/errno_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Advice(int error, std::optional<int> paranoid = 2) {
  return AdviseOnOpenFailure(
      {.error = error, .event = "cycles", .tid = 4711, .paranoid = paranoid, .owner = "uid 64055"});
}

// Rule 7: the current level, CAP_PERFMON and the command that fixes it.
TEST(ErrnoAdvice, PermissionNamesLevelOwnerAndRemedy) {
  for (const int error : {EACCES, EPERM}) {
    EXPECT_THAT(Advice(error), AllOf(HasSubstr("perf_event_paranoid is 2"), HasSubstr("uid 64055"),
                                     HasSubstr("setcap cap_perfmon=ep"), Not(HasSubstr("sysctl"))));
  }
}

// Debian's level 3 refuses CAP_PERFMON too: setcap alone would not help.
TEST(ErrnoAdvice, LevelThreeHasToBeLoweredAsWell) {
  EXPECT_THAT(Advice(EACCES, 3),
              AllOf(HasSubstr("is 3"), HasSubstr("sysctl kernel.perf_event_paranoid=2"),
                    HasSubstr("setcap cap_perfmon=ep")));
}

TEST(ErrnoAdvice, AnUnreadableLevelIsSaidSo) {
  EXPECT_THAT(Advice(EACCES, std::nullopt), HasSubstr("is unreadable"));
}

TEST(ErrnoAdvice, EachErrnoHasItsOwnRemedy) {
  EXPECT_THAT(Advice(ENOENT), HasSubstr("/sys/bus/event_source/devices"));
  EXPECT_THAT(Advice(ENODEV), HasSubstr("absent"));
  EXPECT_THAT(Advice(EOPNOTSUPP), HasSubstr("mediated vPMU"));
  EXPECT_THAT(Advice(EINVAL), HasSubstr("does not fit"));
  EXPECT_THAT(Advice(ESRCH), HasSubstr("4711 is gone"));
  EXPECT_THAT(Advice(EMFILE), HasSubstr("ulimit -Hn"));
  EXPECT_THAT(Advice(EBUSY), HasSubstr("NMI watchdog"));
  EXPECT_THAT(Advice(E2BIG), HasSubstr("bug of vcpulse"));
  EXPECT_THAT(Advice(ENOSPC), HasSubstr("No space left"));
}

TEST(ErrnoAdvice, IsOneLine) {
  for (int error = 1; error < 134; ++error) EXPECT_THAT(Advice(error), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace vcpulse::kvm
