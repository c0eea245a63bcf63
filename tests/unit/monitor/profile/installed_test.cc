// Profiles of ROOT/etc/vcpulse/profiles.
#include "monitor/profile/installed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kvm/host.h"
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
    return chosen.ok() ? chosen->profile.name : std::string(chosen.status().message());
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

// A profile of all of a vendor's CPUs takes nothing from one of this model, whatever its name.
TEST_F(InstalledProfiles, TheOneThatFitsMostExactlyIsChosen) {
  const std::string built_in = Chosen();
  host_.Write("etc/vcpulse/profiles/zsite.json",
              R"({"name": "zsite", "cpu": {"vendor": "AuthenticAMD"}})");
  EXPECT_EQ(Chosen(), built_in);
  Add("mine", 17);
  EXPECT_EQ(Chosen(), "mine");
  host_.Write("etc/vcpulse/profiles/exact.json", R"({"name": "exact", "cpu": {"vendor":
              "AuthenticAMD", "family": 25, "models": [17], "steppings": [1]}})");
  EXPECT_EQ(Chosen(), "exact");
}

TEST_F(InstalledProfiles, AreKnownByTheirNames) {
  Add("mine", 18);
  const auto mine = LoadOnHost("mine", host_.root());
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(mine->source, InstalledFolder(host_.root()) + "/mine.json");
  EXPECT_EQ(LoadOnHost("amd-zen4", host_.root())->source, "built-in");
  EXPECT_EQ(LoadOnHost("yours", host_.root()).status().code(), absl::StatusCode::kNotFound);
  // One that is wrong is in the way of no other.
  host_.Write("etc/vcpulse/profiles/wrong.json", "{");
  EXPECT_EQ(LoadOnHost("amd-zen4", host_.root())->source, "built-in");
  EXPECT_THAT(std::string(LoadOnHost("mine", host_.root()).status().message()),
              HasSubstr("wrong.json: line 1"));
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
  EXPECT_EQ(chosen->profile.name, "mine");
  EXPECT_EQ(chosen->profile.description, "second");
  EXPECT_EQ(chosen->profile.values, mine.values);
  EXPECT_EQ(chosen->profile.origins.at("weak_below"), "tried");
  EXPECT_EQ(chosen->note, "");
}

// Recordings of other users look there.
TEST_F(InstalledProfiles, CanBeReadByAllWhateverTheUmask) {
  Profile mine = ChooseFor(kvm::ReadCpuIdentity(host_.root()));
  mine.name = "mine";
  const mode_t before = umask(077);
  const auto path = Install(mine, host_.root());
  umask(before);
  ASSERT_TRUE(path.ok()) << path.status();
  using std::filesystem::perms;
  const auto mode = [](const std::string& name) {
    return std::filesystem::status(name).permissions();
  };
  EXPECT_EQ(mode(*path) & perms::others_all, perms::others_read);
  EXPECT_EQ(mode(InstalledFolder(host_.root())) & perms::others_all,
            perms::others_read | perms::others_exec);
}

// One that does not take effect is not said to be installed.
TEST_F(InstalledProfiles, OneThatIsNotChosenIsSaid) {
  host_.Write("etc/vcpulse/profiles/exact.json", R"({"name": "exact", "cpu": {"vendor":
              "AuthenticAMD", "family": 25, "models": [17], "steppings": [1]}})");
  Profile mine = ChooseFor(kvm::ReadCpuIdentity(host_.root()));
  mine.name = "mine";
  const auto path = Install(mine, host_.root());
  EXPECT_EQ(path.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("exact.json' is used on this host"));
}

TEST_F(InstalledProfiles, AFolderThatCannotBeMadeIsSaid) {
  host_.Write("etc/vcpulse", "a file");
  const auto path = Install(ChooseFor({}), host_.root());
  EXPECT_FALSE(path.ok());
  EXPECT_FALSE(CanInstall(host_.root()).ok());
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("etc/vcpulse/profiles'"));
}

}  // namespace
}  // namespace vcpulse::profile
