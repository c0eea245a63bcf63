// `--config FILE`: options from a file. Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fakes/temporary_folder.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kTimeline = std::string(VCPULSE_TEST_DATA) + "/timeline-v2.vpt";

class ConfigFile : public ::testing::Test {
 protected:
  ConfigFile() { EXPECT_FALSE(folder_.empty()); }
  ~ConfigFile() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& text) const {
    const std::filesystem::path path = folder_ / "vcpulse.toml";
    std::ofstream(path) << text;
    return path.string();
  }

  const std::filesystem::path folder_ = fakes::MakeTemporaryFolder();
};

TEST_F(ConfigFile, GivesOptionsOfItsCommand) {
  const std::string file = Write("[report]\njson = true\n\n[record]\ninterval = \"5ms\"\n");
  const Finished after = RunProgram(Vcpulse({"report", kTimeline, "--config", file}));
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_THAT(after.out, StartsWith("{"));
  const Finished before = RunProgram(Vcpulse({"--config", file, "report", kTimeline}));
  EXPECT_EQ(before.out, after.out);
}

TEST_F(ConfigFile, WhatIsGivenOnTheCommandLineCountsMore) {
  const std::string file = Write("[report]\nfrom = \"1s\"\nuntil = \"2s\"\n");
  const Finished from_file = RunProgram(Vcpulse({"report", kTimeline, "--config", file}));
  EXPECT_THAT(from_file.out, HasSubstr("(after 1.0 s, up to 2.0 s)"));
  const Finished given =
      RunProgram(Vcpulse({"report", kTimeline, "--config", file, "--from", "500ms"}));
  EXPECT_THAT(given.out, HasSubstr("(after 500.0 ms, up to 2.0 s)"));
}

TEST_F(ConfigFile, GivesListsAndNestedCommands) {
  const std::string file = Write(
      "[check]\nexpect = [\"vm=turns: gaps <= 60%\", \"vm=turns vcpu=0: productive >= 80%\"]\n"
      "[list.profiles]\njson = true\n");
  const Finished checked = RunProgram(Vcpulse({"check", kTimeline, "--config", file}));
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("PASS: 2 of 2 expectations passed"));
  const Finished listed = RunProgram(Vcpulse({"list", "profiles", "--config", file}));
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
}

TEST_F(ConfigFile, WhatItCannotTakeIsOneLine) {
  const auto error_of = [&](const std::string& file) {
    const Finished finished = RunProgram(Vcpulse({"report", kTimeline, "--config", file}));
    EXPECT_EQ(finished.exit_code, 2) << file;
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_THAT(error_of(folder_ / "none"), HasSubstr("--config: cannot read "));
  EXPECT_THAT(error_of(Write("[report]\njosn = true\n")),
              HasSubstr(":2: 'josn' is not an option of report; did you mean 'json'?"));
  EXPECT_THAT(error_of(Write("[reprot]\njson = true\n")), HasSubstr("reprot"));
  EXPECT_THAT(error_of(Write("[report]\nfrom = \"banana\"\n")), HasSubstr("--from: 'banana'"));
  EXPECT_THAT(error_of(Write("\x1b[31m\x01 = 5\n")), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace vcpulse::kvm_tests
