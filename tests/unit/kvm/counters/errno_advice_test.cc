#include "kvm/counters/errno_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "kvm/own_rights.h"
#include "tests/errors_doc.h"

namespace vcpulse::kvm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPerfmon = uint64_t{1} << 38;
constexpr uint64_t kSysAdmin = uint64_t{1} << 21;

// A message of docs/errors.md, and what gives it.
struct Row {
  std::string name;
  int error = 0;
  std::optional<int> paranoid = 2;
  OwnRights own = {.effective = 0, .seccomp = 0, .open_files = 4096, .effective_uid = 1000};
};

OwnRights With(uint64_t capabilities, int seccomp = 0) {
  return {.effective = capabilities, .seccomp = seccomp, .open_files = 4096, .effective_uid = 1000};
}

const Row kRows[] = {
    {"permission", EACCES},
    {"permission", EPERM},
    {"permission", EACCES, std::nullopt},
    {"permission", EACCES, 2, OwnRights{}},  // its own rights could not be read
    {"permission-above-2", EACCES, 3},
    {"permission-above-2", EACCES, 4},
    {"permission-above-2-with-perfmon", EACCES, 3, With(kPerfmon)},
    {"permission-other-user", EACCES, 1},
    {"permission-other-user", EACCES, -1},
    {"permission-with-perfmon", EACCES, 2, With(kPerfmon)},
    {"permission-with-perfmon", EACCES, 1, With(kSysAdmin)},
    {"permission-with-perfmon", EACCES, std::nullopt, With(kPerfmon)},
    {"permission-seccomp", EPERM, 2, With(0, 2)},
    {"permission-seccomp", EPERM, 3, With(kPerfmon, 2)},
    // The kernel itself says EACCES: the level is the cause, filter or not.
    {"permission", EACCES, 2, With(0, 2)},
    {"no-event", ENOENT},
    {"absent", ENODEV},
    {"absent", EOPNOTSUPP},
    {"does-not-fit", EINVAL},
    {"gone", ESRCH},
    {"descriptors", EMFILE},
    {"descriptors-of-the-host", ENFILE},
    {"busy", EBUSY},
    {"too-big", E2BIG},
    {"other", ENOSPC},
};

std::string Joined(const OpenAdvice& advice) {
  return advice.remedy.empty() ? advice.cause : advice.cause + ": " + advice.remedy;
}

std::string Advice(const Row& row) {
  return Joined(ExplainOpenFailure({.error = row.error,
                                    .event = "cycles",
                                    .tid = 4711,
                                    .paranoid = row.paranoid,
                                    .owner = "uid 64055"},
                                   row.own));
}

TEST(ErrnoAdvice, SaysWhatTheDocumentSays) {
  for (const Row& row : kRows) {
    const std::string level = row.paranoid ? std::to_string(*row.paranoid) : "unreadable";
    EXPECT_EQ(Advice(row), tests::Documented(VCPULSE_ERRORS_DOC, row.name,
                                             {{"THREAD", "4711"},
                                              {"OWNER", "uid 64055"},
                                              {"LEVEL", level},
                                              {"EVENT", "cycles"},
                                              {"LIMIT", "4096"},
                                              {"TEXT", "No space left on device"}}))
        << row.name << ", errno " << row.error;
  }
}

// A message that the page has and nothing gives any more is as wrong as the reverse.
TEST(ErrnoAdvice, TheDocumentHasNoOtherMessages) {
  std::set<std::string> given = {"qmp-silent"};  // of the QMP client: errno_test.cc
  for (const Row& row : kRows) given.insert(row.name);
  std::set<std::string> documented;
  for (const auto& [name, text] : tests::ReadErrorsDoc(VCPULSE_ERRORS_DOC)) documented.insert(name);
  EXPECT_EQ(documented, given);
}

TEST(ErrnoAdvice, AnUnknownOwnerOrLimitIsLeftOut) {
  const OpenAdvice advice = ExplainOpenFailure({.error = EACCES, .tid = 5, .paranoid = 2}, {});
  EXPECT_EQ(advice.cause, "no permission to count in thread 5 (kernel.perf_event_paranoid is 2)");
  EXPECT_THAT(ExplainOpenFailure({.error = EMFILE}, {}).cause, HasSubstr("which is unknown"));
}

TEST(ErrnoAdvice, IsOneLine) {
  for (int error = 1; error < 134; ++error) {
    EXPECT_THAT(Advice({.name = "", .error = error}), Not(HasSubstr("\n")));
  }
}

// The short form reads what this very process may do.
TEST(ErrnoAdvice, TheShortFormIsThatOfThisProcess) {
  const OpenFailure failure{.error = EMFILE, .event = "cycles"};
  EXPECT_EQ(AdviseOnOpenFailure(failure), Joined(ExplainOpenFailure(failure, ReadOwnRights(""))));
  EXPECT_THAT(AdviseOnOpenFailure(failure), Not(HasSubstr("unknown")));
}

TEST(OwnRights, AreParsedFromStatus) {
  const OwnRights rights = ParseOwnRights(
      "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nCapPrm:\t0000000000000000\n"
      "CapEff:\t0000004000080000\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");
  EXPECT_EQ(rights.effective, 0x4000080000u);
  EXPECT_EQ(rights.seccomp, 2);
  EXPECT_EQ(rights.effective_uid, 1001u);
  EXPECT_TRUE(rights.Has(Capability::kPerfmon));
  EXPECT_TRUE(rights.Has(Capability::kSysPtrace));
  EXPECT_FALSE(rights.Has(Capability::kSysNice));
  EXPECT_FALSE(rights.Has(Capability::kDacReadSearch));
  EXPECT_TRUE(rights.MayMonitor());
}

TEST(OwnRights, WhatIsNotThereIsAbsent) {
  const OwnRights rights = ParseOwnRights("CapEff:\tzz\nSeccomp:\nUid:\t0\n");
  EXPECT_EQ(rights.effective, std::nullopt);
  EXPECT_EQ(rights.seccomp, std::nullopt);
  EXPECT_EQ(rights.effective_uid, std::nullopt);
  EXPECT_FALSE(rights.MayMonitor());
}

}  // namespace
}  // namespace vcpulse::kvm
