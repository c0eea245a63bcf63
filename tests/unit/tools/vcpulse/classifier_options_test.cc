#include "tools/vcpulse/classifier_options.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::tools {
namespace {

// A host with a Cascade Lake.
class Host {
 public:
  Host() {
    tree_.Write("proc/cpuinfo",
                "processor: 0\nvendor_id: GenuineIntel\ncpu family: 6\nmodel: 85\nstepping: 7\n");
  }
  std::string root() const { return tree_.root(); }

 private:
  fakes::ProcDir tree_;
};

std::string ErrorOf(const ClassifierOptions& options) {
  return std::string(Resolve(options, Host().root()).status().message());
}

TEST(ClassifierOptions, TheProfileIsTheOneForTheCpu) {
  const auto resolved = Resolve({}, Host().root());
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(resolved->choice, core::ClassifierChoice::kAuto);
  EXPECT_EQ(resolved->profile.name, "intel-cascade-lake-sp");
  EXPECT_EQ(Resolve({}, std::nullopt)->profile.name, "generic");
  EXPECT_EQ(Resolve({.profile = "amd-zen4"}, Host().root())->profile.name, "amd-zen4");
}

TEST(ClassifierOptions, NumbersOfTheCommandLineComeFirst) {
  CLI::App app;
  ClassifierOptions options;
  AddClassifierOptions(app, options, "[generic]");
  EXPECT_NE(app.help().find("a file [generic]"), std::string::npos) << app.help();
  app.parse(
      "--classifier ipc-bands --profile generic --halted-enter 0.03 --halted-leave 0.06 "
      "--spinning-below 0.5 --productive-from 0.9");
  const auto resolved = Resolve(options, Host().root());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->choice, core::ClassifierChoice::kIpcBands);
  const profile::Profile& profile = resolved->profile;
  core::Profile wanted;
  wanted.presence.halted_enter = 0.03;
  wanted.presence.halted_leave = 0.06;
  wanted.ipc_bands.spinning_below = 0.5;
  wanted.ipc_bands.productive_from = 0.9;
  EXPECT_EQ(profile.values, wanted);
  for (const char* field : {"halted_enter", "halted_leave", "spinning_below", "productive_from"}) {
    EXPECT_EQ(profile.origins.at(field), "command line");
  }
  EXPECT_NE(profile.origins.at("starved_above"), "command line");
  // What a timeline keeps of it can be read again.
  EXPECT_EQ(profile::Parse(profile::ToJson(profile), "")->values, wanted);
}

TEST(ClassifierOptions, ErrorsNameTheOption) {
  EXPECT_EQ(ErrorOf({.choice = "ipc"}), "--classifier: 'ipc' is none of auto, evidence, ipc-bands");
  EXPECT_EQ(
      ErrorOf({.profile = "generc"}),
      "--profile: 'generc' is neither a built-in profile nor a file; did you mean 'generic'?");
  EXPECT_EQ(ErrorOf({.halted_enter = 0.05}),
            "--halted-enter and --halted-leave are shares: 0 <= enter <= leave < 1");
  EXPECT_EQ(ErrorOf({.halted_leave = 1}),
            "--halted-enter and --halted-leave are shares: 0 <= enter <= leave < 1");
  EXPECT_EQ(ErrorOf({.productive_from = 0.5}),
            "--spinning-below and --productive-from are IPCs: 0 <= spinning-below <= "
            "productive-from <= 100");
  EXPECT_EQ(ErrorOf({.productive_from = 1e9}),
            "--spinning-below and --productive-from are IPCs: 0 <= spinning-below <= "
            "productive-from <= 100");
}

}  // namespace
}  // namespace vcpulse::tools
