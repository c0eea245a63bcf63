// The C API where something is wrong: what each call says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "monitor/library/error.h"
#include "monitor/library/include/vcpulse.h"
#include "tests/fakes/temporary_folder.h"

namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;

// The error of one call.
class CallError {
 public:
  CallError() = default;
  CallError(const CallError&) = delete;
  CallError& operator=(const CallError&) = delete;
  ~CallError() { vcpulse_error_free(error_); }

  operator vcpulse_error**() { return &error_; }  // NOLINT: stands for the last argument
  vcpulse_status code() const { return vcpulse_error_code(error_); }
  std::string message() const { return vcpulse_error_message(error_); }

 private:
  vcpulse_error* error_ = nullptr;
};

struct FreeOptions {
  void operator()(vcpulse_options* options) const { vcpulse_options_free(options); }
};

class LibraryErrors : public ::testing::Test {
 protected:
  vcpulse_options* options() { return options_.get(); }

  CallError error_;

 private:
  std::unique_ptr<vcpulse_options, FreeOptions> options_{vcpulse_options_new()};
};

int Ignore(const vcpulse_record*, void*) { return 0; }

TEST(LibraryNames, AreOfEachValueAndOfNoOther) {
  EXPECT_STREQ(vcpulse_status_name(VCPULSE_STATUS_OK), "ok");
  EXPECT_STREQ(vcpulse_status_name(VCPULSE_STATUS_ENDED), "ended");
  EXPECT_EQ(vcpulse_status_name(VCPULSE_STATUS_INTERNAL + 1), nullptr);
  EXPECT_STREQ(vcpulse_band_name(VCPULSE_BAND_UNKNOWN), "unknown");
  EXPECT_EQ(vcpulse_band_name(-1), nullptr);
  EXPECT_STREQ(vcpulse_kind_name(VCPULSE_KIND_LIFE_CYCLE), "life-cycle");
  EXPECT_EQ(vcpulse_kind_name(0), nullptr);
  EXPECT_STREQ(vcpulse_outcome_name(VCPULSE_OUTCOME_SKIP), "SKIP");
  EXPECT_EQ(vcpulse_outcome_name(4), nullptr);
}

TEST_F(LibraryErrors, NullHandlesAreInvalidArgumentsThatNameThem) {
  vcpulse_bounds bounds = VCPULSE_BOUNDS_INIT;
  vcpulse_outcome outcome = VCPULSE_OUTCOME_SKIP;
  EXPECT_EQ(vcpulse_recording_attach(nullptr, error_), nullptr);
  EXPECT_EQ(error_.message(), "options is NULL");
  EXPECT_EQ(vcpulse_recording_mark(nullptr, "a", nullptr), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_recording_pause(nullptr, nullptr), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_recording_resume(nullptr, nullptr), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_recording_stop(nullptr, nullptr), nullptr);
  EXPECT_EQ(vcpulse_timeline_open(nullptr, nullptr), nullptr);
  EXPECT_EQ(vcpulse_timeline_for_each_record(nullptr, Ignore, nullptr, nullptr),
            VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_timeline_query(nullptr, nullptr, 0, "halted", nullptr, &bounds, nullptr),
            VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_options_copy(nullptr), nullptr);
  EXPECT_EQ(
      vcpulse_timeline_check(nullptr, "gaps <= 1%", nullptr, nullptr, &outcome, nullptr, nullptr),
      VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_options_set_pid(nullptr, 1, nullptr), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_options_set_vm(nullptr, "a", nullptr), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vcpulse_options_on_record(nullptr, Ignore, nullptr, nullptr),
            VCPULSE_STATUS_INVALID_ARGUMENT);
}

TEST_F(LibraryErrors, FreeingNullDoesNothingAndGettersOfNullGiveNothing) {
  vcpulse_error_free(nullptr);
  vcpulse_options_free(nullptr);
  vcpulse_recording_free(nullptr);
  vcpulse_timeline_free(nullptr);
  vcpulse_text_free(nullptr);
  EXPECT_EQ(vcpulse_timeline_path(nullptr), nullptr);
  EXPECT_EQ(vcpulse_timeline_host(nullptr), nullptr);
  EXPECT_EQ(vcpulse_timeline_damage(nullptr), nullptr);
  EXPECT_EQ(vcpulse_timeline_no_counters_reason(nullptr), nullptr);
  EXPECT_EQ(vcpulse_timeline_duration_ns(nullptr), 0);
  EXPECT_EQ(vcpulse_timeline_vm_count(nullptr), 0U);
  EXPECT_EQ(vcpulse_timeline_vm_name(nullptr, 0), nullptr);
  EXPECT_EQ(vcpulse_timeline_vcpu_count(nullptr, 0), 0U);
  EXPECT_EQ(vcpulse_timeline_phase_count(nullptr), 0U);
  EXPECT_EQ(vcpulse_timeline_phase(nullptr, 0), nullptr);
}

TEST_F(LibraryErrors, OptionsRefuseWhatMakesNoSense) {
  const auto refused = [&](vcpulse_status status, const std::string& words) {
    EXPECT_EQ(status, VCPULSE_STATUS_INVALID_ARGUMENT) << words;
    EXPECT_THAT(error_.message(), HasSubstr(words));
    vcpulse_error_free(*error_);
    *error_ = nullptr;
  };
  const std::array<int64_t, 2> tids = {7, 0};
  refused(vcpulse_options_set_vm(options(), "", error_), "name is empty");
  refused(vcpulse_options_set_vm(options(), nullptr, error_), "name is NULL");
  refused(vcpulse_options_set_pid(options(), 0, error_), "PID 0 is outside 1 to");
  refused(vcpulse_options_set_pid(options(), int64_t{1} << 32, error_), "is outside 1 to");
  refused(vcpulse_options_set_tids(options(), tids.data(), 2, error_), "TID 0 is outside 1 to");
  refused(vcpulse_options_set_tids(options(), tids.data(), 0, error_), "count is 0");
  refused(vcpulse_options_set_wait(options(), -1, error_), "wait_ns is negative");
  refused(vcpulse_options_set_interval(options(), 999'999, error_), "outside 1ms to 1h");
  refused(vcpulse_options_set_interval(options(), 3'600'000'000'001, error_), "outside 1ms to 1h");
  refused(vcpulse_options_set_event_set(options(), "most", error_), "'most' is none of full");
  refused(vcpulse_options_set_classifier(options(), "best", error_), "'best' is none of auto");
  refused(vcpulse_options_set_reader(options(), "ebpf", error_), "'ebpf' is none of auto, bpf");
  refused(vcpulse_options_set_output(options(), "-", error_), "a regular file");
  refused(vcpulse_options_set_output(options(), "/dev/null", error_), "a regular file");
}

TEST_F(LibraryErrors, OptionsTakeWhatIsAtTheirLimits) {
  EXPECT_EQ(vcpulse_options_set_pid(options(), 4194304, error_), VCPULSE_STATUS_OK)
      << error_.message();
  EXPECT_EQ(vcpulse_options_set_interval(options(), 1'000'000, error_), VCPULSE_STATUS_OK);
  EXPECT_EQ(vcpulse_options_set_interval(options(), 3'600'000'000'000, error_), VCPULSE_STATUS_OK);
  EXPECT_EQ(vcpulse_options_set_wait(options(), 0, error_), VCPULSE_STATUS_OK);
  EXPECT_EQ(vcpulse_options_set_profile(options(), "generic", error_), VCPULSE_STATUS_OK);
  EXPECT_EQ(error_.code(), VCPULSE_STATUS_OK);
}

TEST_F(LibraryErrors, AnUnknownProfileIsNotFound) {
  EXPECT_EQ(vcpulse_options_set_profile(options(), "no-such-profile", error_),
            VCPULSE_STATUS_NOT_FOUND);
  EXPECT_THAT(error_.message(), HasSubstr("no-such-profile"));
}

TEST_F(LibraryErrors, AProcessThatIsNoVmCannotBeAttachedTo) {
  ASSERT_EQ(vcpulse_options_set_pid(options(), getpid(), error_), VCPULSE_STATUS_OK);
  EXPECT_EQ(vcpulse_recording_attach(options(), error_), nullptr);
  EXPECT_EQ(error_.code(), VCPULSE_STATUS_NOT_POSSIBLE) << error_.message();
}

TEST_F(LibraryErrors, AVmThatDoesNotComeIsNotFoundAndLeavesNoFileBehind) {
  const std::filesystem::path folder = vcpulse::fakes::MakeTemporaryFolder();
  const std::string output = folder / "a.vpt";
  ASSERT_EQ(vcpulse_options_set_vm(options(), "no-such-vm", error_), VCPULSE_STATUS_OK);
  ASSERT_EQ(vcpulse_options_set_output(options(), output.c_str(), error_), VCPULSE_STATUS_OK);
  EXPECT_EQ(vcpulse_recording_attach(options(), error_), nullptr);
  EXPECT_EQ(error_.code(), VCPULSE_STATUS_NOT_FOUND);
  EXPECT_THAT(error_.message(), HasSubstr("no-such-vm"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST_F(LibraryErrors, WhatIsNoTimelineCannotBeOpened) {
  const std::filesystem::path folder = vcpulse::fakes::MakeTemporaryFolder();
  const std::string path = folder / "text.vpt";
  std::ofstream(path) << "not a timeline\n";
  EXPECT_EQ(vcpulse_timeline_open(path.c_str(), error_), nullptr);
  EXPECT_EQ(error_.code(), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message(), HasSubstr(path));
  std::filesystem::remove_all(folder);
}

TEST_F(LibraryErrors, StandardInputCannotBeOpenedAsItIsReadMoreThanOnce) {
  EXPECT_EQ(vcpulse_timeline_open("-", error_), nullptr);
  EXPECT_EQ(error_.message(), "path must name a file");
}

TEST_F(LibraryErrors, AMissingFileIsNotFoundByName) {
  EXPECT_EQ(vcpulse_timeline_open("/no/such/file.vpt", error_), nullptr);
  EXPECT_EQ(error_.code(), VCPULSE_STATUS_NOT_FOUND);
  EXPECT_THAT(error_.message(), HasSubstr("/no/such/file.vpt"));
}

TEST(LibraryGuard, NoExceptionLeavesAnEntry) {
  CallError error;
  EXPECT_EQ(
      vcpulse::library::Guard(error, []() -> absl::Status { throw std::runtime_error("oops"); }),
      VCPULSE_STATUS_INTERNAL);
  EXPECT_EQ(error.message(), "oops");
}

TEST(LibraryGuard, AnExceptionThatSaysNothingIsToldAsSuch) {
  CallError error;
  EXPECT_EQ(vcpulse::library::Guard(error, []() -> absl::Status { throw 7; }),
            VCPULSE_STATUS_INTERNAL);
  EXPECT_THAT(error.message(), HasSubstr("unknown type"));
}

TEST(LibraryGuard, MissingMemoryIsToldWithoutTakingAny) {
  CallError error;
  EXPECT_EQ(vcpulse::library::Guard(error, []() -> absl::Status { throw std::bad_alloc(); }),
            VCPULSE_STATUS_INTERNAL);
  EXPECT_EQ(error.message(), "out of memory");
}

TEST(LibraryGuard, AnErrorOfBeforeIsClearedBySuccess) {
  vcpulse_error before{VCPULSE_STATUS_IO, "old"};
  vcpulse_error* error = &before;
  EXPECT_EQ(vcpulse::library::Guard(&error, [] { return absl::OkStatus(); }), VCPULSE_STATUS_OK);
  EXPECT_EQ(error, nullptr);
}

TEST(LibraryGuard, EachKindOfFailureHasItsCode) {
  using vcpulse::library::CodeOf;
  EXPECT_EQ(CodeOf(absl::OkStatus()), VCPULSE_STATUS_OK);
  EXPECT_EQ(CodeOf(absl::InvalidArgumentError("")), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(absl::NotFoundError("")), VCPULSE_STATUS_NOT_FOUND);
  EXPECT_EQ(CodeOf(absl::PermissionDeniedError("")), VCPULSE_STATUS_NOT_PERMITTED);
  EXPECT_EQ(CodeOf(absl::FailedPreconditionError("")), VCPULSE_STATUS_NOT_POSSIBLE);
  EXPECT_EQ(CodeOf(absl::UnavailableError("")), VCPULSE_STATUS_UNAVAILABLE);
  EXPECT_EQ(CodeOf(absl::ResourceExhaustedError("")), VCPULSE_STATUS_NO_RESOURCES);
  EXPECT_EQ(CodeOf(absl::UnknownError("")), VCPULSE_STATUS_IO);
  EXPECT_EQ(CodeOf(absl::DataLossError("")), VCPULSE_STATUS_IO);
  EXPECT_EQ(CodeOf(absl::UnimplementedError("")), VCPULSE_STATUS_UNSUPPORTED);
  EXPECT_EQ(CodeOf(absl::InternalError("")), VCPULSE_STATUS_INTERNAL);
  EXPECT_EQ(CodeOf(vcpulse::library::EndedError("")), VCPULSE_STATUS_ENDED);
}

TEST(LibraryVersion, IsThatOfTheProject) { EXPECT_THAT(vcpulse_version(), StrEq(VCPULSE_VERSION)); }

}  // namespace
