// Profiles of ROOT/etc/vcpulse/profiles.
#include "monitor/profile/installed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/fakes/proc_dir.h"

namespace vcpulse::profile {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class InstalledProfiles : public ::testing::Test {
 protected:
  InstalledProfiles() {
    host_.Write("proc/cpuinfo",
                "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\nstepping: 1\n");
  }

  // For one model of AMD's family 25.
  void Add(const std::string& name, int model) {
    host_.Write("etc/vcpulse/profiles/" + name + ".json",
                R"({"name": ")" + name + R"(", "base": "amd-zen4", "cpu": {"vendor":
                "AuthenticAMD", "family": 25, "models": [)" +
                    std::to_string(model) + "]}}");
  }

  std::string Chosen() const {
    const auto chosen = ChooseForHost(host_.root());
    return chosen.ok() ? chosen->name : std::string(chosen.status().message());
  }

  fakes::ProcDir host_;
};

TEST_F(InstalledProfiles, GoBeforeThoseBuiltInOnTheirCpuAlone) {
  const std::string built_in = Chosen();
  EXPECT_EQ(built_in, ChooseFor(kvm::ReadCpuIdentity(host_.root())).name);
  Add("mine", 18);
  EXPECT_EQ(Chosen(), built_in);
  Add("yours", 17);
  EXPECT_EQ(Chosen(), "yours");
  Add("zeroth", 17);
  EXPECT_EQ(Chosen(), "zeroth") << "the last by its file's name";
  const auto all = Installed(host_.root());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].source, InstalledFolder(host_.root()) + "/mine.json");
}

TEST_F(InstalledProfiles, OtherFilesAreNone) {
  host_.Write("etc/vcpulse/profiles/mine.json.old", "{");
  host_.Write("etc/vcpulse/profiles/README", "{");
  const auto all = Installed(host_.root());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->empty());
}

// Rather than be left out: the host was given other numbers.
TEST_F(InstalledProfiles, OneThatIsWrongIsSaid) {
  host_.Write("etc/vcpulse/profiles/mine.json", R"({"name": "mine", "thresholds": {"zebra": 1}})");
  EXPECT_THAT(Chosen(), AllOf(HasSubstr("etc/vcpulse/profiles/mine.json: thresholds.zebra"),
                              HasSubstr("no such field")));
}

TEST_F(InstalledProfiles, AreWhatWasInstalled) {
  Profile mine = ChooseFor(kvm::ReadCpuIdentity(host_.root()));
  mine.name = "mine";
  mine.values.evidence.weak_below = 0.125;
  mine.origins["weak_below"] = "tried";
  for (const char* description : {"first", "second"}) {
    mine.description = description;
    const auto path = Install(mine, host_.root());
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(*path, InstalledFolder(host_.root()) + "/mine.json");
  }
  const auto chosen = ChooseForHost(host_.root());
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->name, "mine");
  EXPECT_EQ(chosen->description, "second");
  EXPECT_EQ(chosen->values, mine.values);
  EXPECT_EQ(chosen->origins.at("weak_below"), "tried");
}

TEST_F(InstalledProfiles, AFolderThatCannotBeMadeIsSaid) {
  host_.Write("etc/vcpulse", "a file");
  const auto path = Install(ChooseFor({}), host_.root());
  EXPECT_FALSE(path.ok());
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("etc/vcpulse/profiles'"));
}

}  // namespace
}  // namespace vcpulse::profile
