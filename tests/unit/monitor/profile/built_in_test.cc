// What is built in, and which of it a CPU gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/core/event_slots.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Profile& Named(const std::string& name) {
  return *std::ranges::find(BuiltIn(), name, &Profile::name);
}

std::string ChosenFor(const std::string& vendor, uint32_t family, uint32_t model,
                      uint32_t stepping = 0) {
  return ChooseFor({.vendor = vendor, .family = family, .model = model, .stepping = stepping}).name;
}

// Every number of every profile, and nothing else, says where it comes from.
TEST(BuiltInProfiles, EachNumberHasAnOrigin) {
  for (const Profile& profile : BuiltIn()) {
    std::vector<std::string> wanted;
    for (const Field& field : Fields()) wanted.emplace_back(field.name);
    for (size_t i = 0; i < profile.values.evidence.spin_ipcs; ++i) {
      wanted.push_back(absl::StrCat("spin_ipc[", i, "]"));
    }
    if (profile.pause) wanted.emplace_back("pause");
    std::ranges::sort(wanted);
    std::vector<std::string> had;
    for (const auto& [field, origin] : profile.origins) {
      had.push_back(field);
      EXPECT_THAT(origin, Not(IsEmpty())) << profile.name << " " << field;
    }
    EXPECT_EQ(had, wanted) << profile.name;
    EXPECT_EQ(profile.source, "built-in");
    EXPECT_THAT(profile.description, Not(IsEmpty()));
    EXPECT_TRUE(Check(profile.values).ok());
  }
}

TEST(BuiltInProfiles, TheGenericOnesAreFirst) {
  std::vector<std::string> names;
  for (const Profile& profile : BuiltIn().first(4)) names.push_back(profile.name);
  EXPECT_THAT(names, ElementsAre("generic", "generic-intel", "generic-amd", "generic-arm"));
}

// The numbers of code and file are the same ones.
TEST(BuiltInProfiles, GenericHasTheDefaultsOfTheCore) {
  EXPECT_EQ(Named("generic").values, core::Profile());
  EXPECT_EQ(Named("generic-intel").values, core::Profile());
  core::Profile without_misses;
  without_misses.evidence.memory_bound_cache_misses_from.reset();
  EXPECT_EQ(Named("generic-amd").values, without_misses);
  EXPECT_EQ(Named("generic-arm").values, without_misses);
}

struct ModelNumbers {
  std::string name;
  std::string base;
  std::optional<core::IpcRange> spin_ipc;  // as measured or published, before the 25 %
  bool is_range_already = false;
  std::string pause_event;
  uint64_t pause_config = 0;
  std::optional<double> pause_cycles_each;
};

// As docs/bands.md has them. 0xCC/0x40 counts instructions, 0xEC/0x40 cycles.
const std::vector<ModelNumbers>& Models() {
  static const std::string rob = "rob_misc_events.pause_inst";
  static const std::string misc = "misc_retired.pause_inst";
  static const std::string clk = "cpu_clk_unhalted.pause";
  static const std::string intel = "generic-intel";
  static const std::vector<ModelNumbers> models = {
      {"intel-haswell-broadwell", intel, {{0.24, 0.5}}, true, "", 0, {}},
      {"intel-skylake-client", intel, {{0.0225, 0.043}}, true, "", 0, {}},  // up to 6 per PAUSE
      {"intel-skylake-sp", intel, {{0.03, 0.03}}, false, rob, 0x40cc, 140},
      {"intel-cascade-lake-sp", intel, {{0.09, 0.13}}, false, rob, 0x40cc, 40},
      {"intel-ice-lake-client", intel, {{0.03, 0.03}}, false, misc, 0x40cc, 140},
      {"intel-ice-lake-sp", intel, {{0.09, 0.13}}, false, misc, 0x40cc, 37},
      {"intel-tiger-rocket-lake", intel, {{0.03, 0.03}}, false, misc, 0x40cc, 140},
      {"intel-alder-raptor-lake-p", intel, {{0.02, 0.02}}, false, clk, 0x40ec, {}},
      {"intel-sapphire-emerald-rapids", intel, {}, false, clk, 0x40ec, {}},
      {"intel-granite-rapids", intel, {{0.09, 0.13}}, false, clk, 0x40ec, {}},
      {"amd-zen4", "generic-amd", {{0.045, 0.094}}, true, "", 0, {}},
      {"arm-neoverse-n1", "generic-arm", {{0.11, 0.11}}, false, "", 0, {}},
  };
  return models;
}

TEST(BuiltInProfiles, ModelsHaveTheNumbersOfTheTable) {
  EXPECT_EQ(Models().size() + 4, BuiltIn().size());
  for (const ModelNumbers& model : Models()) {
    SCOPED_TRACE(model.name);
    const Profile& profile = Named(model.name);
    const core::EvidenceThresholds& evidence = profile.values.evidence;
    ASSERT_EQ(evidence.spin_ipcs, model.spin_ipc ? 1u : 0u);
    if (model.spin_ipc) {
      const double tolerance = model.is_range_already ? 0 : 0.25;
      EXPECT_DOUBLE_EQ(evidence.spin_ipc[0].from, model.spin_ipc->from * (1 - tolerance));
      EXPECT_DOUBLE_EQ(evidence.spin_ipc[0].to, model.spin_ipc->to * (1 + tolerance));
    }
    ASSERT_EQ(profile.pause.has_value(), !model.pause_event.empty());
    if (profile.pause) {
      EXPECT_EQ(*profile.pause, (PauseEvent{model.pause_event, model.pause_config}));
      const core::EventSlots slots = core::FindSlots(std::vector<std::string>{model.pause_event});
      EXPECT_EQ(slots.pause, 0u);
      EXPECT_EQ(slots.pause_in_cycles, model.pause_config == 0x40ec);
    }
    EXPECT_EQ(evidence.pause_cycles_each, model.pause_cycles_each);
    // All else is the vendor's.
    core::Profile rest = profile.values;
    rest.evidence.spin_ipc = {};
    rest.evidence.spin_ipcs = 0;
    rest.evidence.pause_cycles_each.reset();
    EXPECT_EQ(rest, Named(model.base).values);
  }
}

TEST(ChooseFor, SteppingsTellSkylakeFromCascadeLake) {
  EXPECT_EQ(ChosenFor("GenuineIntel", 6, 0x55, 0), "intel-skylake-sp");
  EXPECT_EQ(ChosenFor("GenuineIntel", 6, 0x55, 4), "intel-skylake-sp");
  EXPECT_EQ(ChosenFor("GenuineIntel", 6, 0x55, 5), "intel-cascade-lake-sp");
  EXPECT_EQ(ChosenFor("GenuineIntel", 6, 0x55, 7), "intel-cascade-lake-sp");
  EXPECT_EQ(ChosenFor("GenuineIntel", 6, 0x55, 8), "generic-intel");
}

TEST(ChooseFor, IntelModels) {
  const std::vector<std::pair<std::string, std::vector<uint32_t>>> models = {
      {"intel-haswell-broadwell", {0x3c, 0x3f, 0x45, 0x46, 0x3d, 0x47, 0x4f, 0x56}},
      {"intel-skylake-client", {0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6}},
      {"intel-ice-lake-client", {0x7d, 0x7e}},
      {"intel-ice-lake-sp", {0x6a, 0x6c}},
      {"intel-tiger-rocket-lake", {0x8c, 0x8d, 0xa7}},
      {"intel-alder-raptor-lake-p", {0x97, 0x9a, 0xb7, 0xba, 0xbf}},
      {"intel-sapphire-emerald-rapids", {0x8f, 0xcf}},
      {"intel-granite-rapids", {0xad, 0xae}},
      {"generic-intel", {0x3e, 0x5c, 0x86, 0xaf, 0x00}},
  };
  for (const auto& [name, codes] : models) {
    for (const uint32_t code : codes) {
      EXPECT_EQ(ChosenFor("GenuineIntel", 6, code), name) << absl::StrCat("0x", absl::Hex(code));
      EXPECT_EQ(ChosenFor("GenuineIntel", 15, code), "generic-intel");
    }
  }
}

TEST(ChooseFor, ModelRangesOfZen4HaveBothEnds) {
  for (const uint32_t model : {0x10, 0x1f, 0x60, 0x7f, 0xa0, 0xaf}) {
    EXPECT_EQ(ChosenFor("AuthenticAMD", 0x19, model), "amd-zen4") << model;
    EXPECT_EQ(ChosenFor("AuthenticAMD", 0x1a, model), "generic-amd") << model;
  }
  for (const uint32_t model : {0x0f, 0x20, 0x5f, 0x80, 0x9f, 0xb0}) {
    EXPECT_EQ(ChosenFor("AuthenticAMD", 0x19, model), "generic-amd") << model;
  }
}

TEST(ChooseFor, OtherVendors) {
  EXPECT_EQ(ChosenFor("HygonGenuine", 0x18, 1), "generic-amd");
  EXPECT_EQ(ChosenFor("0x41", 0, 0xd0c, 0x31), "arm-neoverse-n1");
  EXPECT_EQ(ChosenFor("0x41", 0, 0xd40), "generic-arm");
  EXPECT_EQ(ChosenFor("0xc0", 0, 0xd0c), "generic-arm");
  EXPECT_EQ(ChosenFor("CentaurHauls", 6, 0x55), "generic");
  EXPECT_EQ(ChosenFor("", 0, 0), "generic");
}

// A raw event is another one on another CPU, and a PAUSE takes another time.
TEST(WhatIsOfOtherCpus, PauseAndSpinIpcs) {
  const kvm::CpuIdentity cascade_lake{
      .vendor = "GenuineIntel", .family = 6, .model = 0x55, .stepping = 7};
  const kvm::CpuIdentity zen4{.vendor = "AuthenticAMD", .family = 0x19, .model = 0x11};
  const auto in = [](const std::string& text) {
    const auto profile = Parse(text, "mine.json");
    EXPECT_TRUE(profile.ok()) << profile.status();
    return *profile;
  };
  const Profile& own = Named("intel-cascade-lake-sp");
  EXPECT_EQ(WhatIsOfOtherCpus(own, cascade_lake), "");
  EXPECT_THAT(WhatIsOfOtherCpus(own, zen4),
              AllOf(HasSubstr("PAUSE event"), HasSubstr("this CPU is AuthenticAMD family 25")));
  EXPECT_THAT(WhatIsOfOtherCpus(own, {}), HasSubstr("not known"));
  EXPECT_THAT(WhatIsOfOtherCpus(Named("intel-skylake-client"), cascade_lake),
              AllOf(HasSubstr("its IPCs of spins are of"), Not(HasSubstr("PAUSE"))));
  EXPECT_EQ(WhatIsOfOtherCpus(Named("generic-amd"), cascade_lake), "");
  // What a file takes from its base stays of the base's CPU; what it gives itself is meant.
  EXPECT_NE(WhatIsOfOtherCpus(in(R"({"name": "mine", "base": "amd-zen4"})"), cascade_lake), "");
  EXPECT_EQ(WhatIsOfOtherCpus(in(R"({"name": "mine", "base": "amd-zen4"})"), zen4), "");
  EXPECT_EQ(WhatIsOfOtherCpus(in(R"({"name": "mine", "base": "amd-zen4",
                                     "spin_ipc": [{"from": 0.1, "to": 0.2, "origin": "seen"}]})"),
                              cascade_lake),
            "");
}

}  // namespace
}  // namespace vcpulse::profile
