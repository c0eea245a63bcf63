// Profiles from text and from files: what is taken, and what is said of what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/profile.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::profile {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& json) {
  const auto profile = Parse(json, "my.json");
  if (profile.ok()) return "no error";
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(profile.status().message());
}

// A profile with one more field.
std::string With(const std::string& field) { return R"({"name": "a", )" + field + "}"; }
std::string WithThreshold(const std::string& name, const std::string& value) {
  return With(absl::StrCat(R"("thresholds": {")", name, R"(": {"value": )", value,
                           R"(, "origin": "me"}})"));
}

TEST(ParseProfile, WhatIsLeftOutIsTheBases) {
  const auto profile = Parse(R"({
    "name": "mine",
    "base": "intel-skylake-sp",
    "thresholds": {"loop_ipc_from": {"value": 0.25, "origin": "measured on my host"},
                   "memory_bound_cache_misses_from": {"value": null, "origin": "off here"}}
  })",
                             "my.json");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->name, "mine");
  EXPECT_EQ(profile->source, "my.json");
  EXPECT_EQ(profile->description, "");
  EXPECT_FALSE(profile->cpu);
  EXPECT_EQ(profile->values.evidence.loop_ipc_from, 0.25);
  EXPECT_EQ(profile->values.evidence.memory_bound_cache_misses_from, std::nullopt);
  EXPECT_EQ(profile->values.evidence.pause_cycles_each, 140);
  EXPECT_EQ(profile->values.evidence.spin_ipcs, 1u);
  ASSERT_TRUE(profile->pause);
  EXPECT_EQ(profile->pause->config, 0x40ccu);
  EXPECT_EQ(profile->origins.at("loop_ipc_from"), "measured on my host");
  EXPECT_EQ(profile->origins.at("memory_bound_cache_misses_from"), "off here");
}

TEST(ParseProfile, ListsReplaceThoseOfTheBase) {
  const auto profile = Parse(
      R"({"name": "mine", "base": "intel-skylake-sp", "pause": null,
          "spin_ipc": [{"from": 0.1, "to": 0.1, "origin": "a"}, {"from": 2, "to": 3, "origin": "b"}]})",
      "my.json");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_FALSE(profile->pause);
  EXPECT_FALSE(profile->origins.contains("pause"));
  EXPECT_EQ(profile->values.evidence.spin_ipcs, 2u);
  EXPECT_EQ(profile->values.evidence.spin_ipc[1], (core::IpcRange{2, 3}));
  EXPECT_EQ(profile->origins.at("spin_ipc[1]"), "b");
  const auto none = Parse(R"({"name": "mine", "base": "intel-skylake-sp", "spin_ipc": []})", "");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->values.evidence, [] {
    core::EvidenceThresholds evidence;
    evidence.pause_cycles_each = 140;
    return evidence;
  }());
  EXPECT_FALSE(none->origins.contains("spin_ipc[0]"));
}

TEST(ParseProfile, WithoutABaseTheGenericOneIs) {
  const auto profile = Parse(R"({"name": "mine"})", "my.json");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->values, core::Profile());
  EXPECT_EQ(profile->origins, BuiltIn().front().origins);
}

TEST(ParseProfile, TextThatIsNoJsonIsSaidWithItsPlace) {
  EXPECT_EQ(ErrorOf("{\n  \"name\": nul\n}"), "my.json: line 2, column 11: no JSON: syntax error");
  EXPECT_THAT(ErrorOf(""), StartsWith("my.json: line 1, column 1: no JSON: "));
  EXPECT_THAT(ErrorOf("{\"name\": \"a\""), StartsWith("my.json: line 1, column 13: no JSON: "));
  EXPECT_EQ(ErrorOf("{\"name\": \"a\"}\n }"),
            "my.json: line 2, column 2: no JSON: more text after its end");
  EXPECT_THAT(ErrorOf("{\"name\": \"a\",\n\"name\": \"b\"}"),
              StartsWith("my.json: line 2, column 6: the field 'name' comes twice"));
  EXPECT_THAT(ErrorOf("{\"name\": \"\xff\"}"), HasSubstr("no JSON: "));
  EXPECT_THAT(ErrorOf(std::string(100, '[')), HasSubstr("no JSON: "));
  EXPECT_EQ(ErrorOf(std::string(kMostBytes + 1, ' ')),
            "my.json: is more than 1 MiB, and no profile");
}

struct Wrong {
  std::string json;
  std::string message;
};

TEST(ParseProfile, WrongTextsNameTheField) {
  const std::string long_name(65, 'a');
  const std::vector<Wrong> cases = {
      {"[]",
       "a list is not an object of name, description, base, cpu, thresholds, spin_ipc, pause"},
      {"{}", "name: is missing"},
      {R"({"name": 5})", "name: 5 is not one line of text of 1 to 64 bytes"},
      {R"({"name": ""})", "name: '' is not one line of text of 1 to 64 bytes"},
      {R"({"name": "a\nb"})", "name: 'a?b' is not one line of text of 1 to 64 bytes"},
      {R"({"name": ")" + long_name + R"("})",
       "name: '" + std::string(40, 'a') + "...' is not one line of text of 1 to 64 bytes"},
      {With(R"("description": [])"),
       "description: a list is not one line of text of 1 to 1000 bytes"},
      {With(R"("treshold": {})"), "treshold: no such field; did you mean 'thresholds'?"},
      {With(R"("x\ny": 1)"),
       "'x?y': no such field; there are name, description, base, cpu, thresholds, spin_ipc, pause"},
      {With(R"("base": "generic-inte")"),
       "base: 'generic-inte' is not a built-in profile; did you mean 'generic-intel'?"},
      {With(R"("base": "mine")"),
       "base: 'mine' is not a built-in profile; `vcpulse list profiles` shows them"},
      {With(R"("base": true)"), "base: true is not one line of text of 1 to 64 bytes"},
      {With(R"("thresholds": 5)"), "thresholds: 5 is not an object"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_EQ(ErrorOf(wrong.json), "my.json: " + wrong.message) << wrong.json;
  }
}

TEST(ParseProfile, WrongThresholdsNameTheField) {
  const std::vector<Wrong> cases = {
      {WithThreshold("loop_ipc_from", R"("abc")"),
       "thresholds.loop_ipc_from.value: 'abc' is not a number"},
      {WithThreshold("loop_ipc_form", "1"),
       "thresholds.loop_ipc_form: no such field; did you mean 'loop_ipc_from'?"},
      {WithThreshold("zebra", "1"),
       "thresholds.zebra: no such field; `vcpulse list profiles generic` shows all"},
      {WithThreshold("loop_ipc_from", "null"),
       "thresholds.loop_ipc_from.value: null is not a number, and this one cannot be off"},
      {WithThreshold("loop_ipc_from", "0"),
       "thresholds.loop_ipc_from.value: 0 is not an IPC above 0, up to 100"},
      {WithThreshold("loop_ipc_from", "1e999"),
       "thresholds.loop_ipc_from.value: inf is not an IPC above 0, up to 100"},
      {WithThreshold("starved_above", "1.5"),
       "thresholds.starved_above.value: 1.5 is not a share, 0 to 1"},
      {WithThreshold("fewest_cycles", "-1"),
       "thresholds.fewest_cycles.value: -1 is not a number of cycles above 0, up to 1e12"},
      {WithThreshold("pause_cycles_each", "0"),
       "thresholds.pause_cycles_each.value: 0 is not a number above 0, up to 1000"},
      {With(R"("thresholds": {"loop_ipc_from": 0.5})"),
       "thresholds.loop_ipc_from: 0.5 is not an object of value, origin"},
      {With(R"("thresholds": {"loop_ipc_from": {"origin": "me"}})"),
       "thresholds.loop_ipc_from.value: is missing"},
      {With(R"("thresholds": {"loop_ipc_from": {"value": 0.5}})"),
       "thresholds.loop_ipc_from.origin: is missing"},
      {With(R"("thresholds": {"loop_ipc_from": {"value": 0.5, "orign": "me"}})"),
       "thresholds.loop_ipc_from.orign: no such field; did you mean 'origin'?"},
      {With(R"("thresholds": {"loop_ipc_from": {"value": 0.5, "by": "me"}})"),
       "thresholds.loop_ipc_from.by: no such field; there are value, origin"},
      {WithThreshold("halted_enter", "0.05"),
       "thresholds.halted_enter.value: 0.05 is above halted_leave, 0.04"},
      {WithThreshold("halted_leave", "1"),
       "thresholds.halted_leave.value: 1 is not below 1: every vCPU would stay HALTED"},
      {WithThreshold("spinning_below", "1.25"),
       "thresholds.spinning_below.value: 1.25 is above productive_from, 1"},
      {WithThreshold("pause_mixed_from", "0.31"),
       "thresholds.pause_mixed_from.value: 0.31 is above pause_spin_from, 0.3"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_EQ(ErrorOf(wrong.json), "my.json: " + wrong.message) << wrong.json;
  }
}

TEST(ParseProfile, WrongSpinIpcsAndPauseEventsNameTheField) {
  const std::string range = R"({"from": 0.1, "to": 0.2, "origin": "me"})";
  const std::string five = absl::StrCat(range, ",", range, ",", range, ",", range, ",", range);
  const std::vector<Wrong> cases = {
      {With(R"("spin_ipc": {})"), "spin_ipc: must be a list of 0 to 4 ranges"},
      {With(R"("spin_ipc": [)" + five + "]"), "spin_ipc: must be a list of 0 to 4 ranges"},
      {With(R"("spin_ipc": [0.1])"), "spin_ipc[0]: 0.1 is not an object of from, to, origin"},
      {With(R"("spin_ipc": [{"to": 1, "origin": "me"}])"), "spin_ipc[0].from: is missing"},
      {With(R"("spin_ipc": [)" + range + R"(, {"from": 0.1, "to": "x", "origin": "me"}])"),
       "spin_ipc[1].to: 'x' is not a number"},
      {With(R"("spin_ipc": [{"from": 0, "to": 1, "origin": "me"}])"),
       "spin_ipc[0].from: 0 is not an IPC above 0, up to 100"},
      {With(R"("spin_ipc": [{"from": 0.3, "to": 0.2, "origin": "me"}])"),
       "spin_ipc[0].from: 0.3 is above to, 0.2"},
      {With(R"("spin_ipc": [{"from": 0.1, "to": 0.2}])"), "spin_ipc[0].origin: is missing"},
      {With(R"("pause": "cpu_clk_unhalted.pause")"),
       "pause: 'cpu_clk_unhalted.pause' is not an object of event, config, origin"},
      {With(R"("pause": {"event": "pause", "config": "0x40ec", "origin": "me"})"),
       "pause.event: 'pause' is none of cpu_clk_unhalted.pause, misc_retired.pause_inst, "
       "rob_misc_events.pause_inst"},
      {With(R"("pause": {"event": "cpu_clk_unhalted.pause", "origin": "me"})"),
       "pause.config: is missing"},
      {With(R"("pause": {"event": "cpu_clk_unhalted.pause", "config": "40ec", "origin": "me"})"),
       "pause.config: '40ec' is not a code: a whole number, or a text such as \"0x40ec\""},
      {With(R"("pause": {"event": "cpu_clk_unhalted.pause", "config": 1.5, "origin": "me"})"),
       "pause.config: 1.5 is not a code: a whole number, or a text such as \"0x40ec\""},
      {With(R"("pause": {"event": "cpu_clk_unhalted.pause", "config": "0x40ec"})"),
       "pause.origin: is missing"},
      {With(R"("pause": {"event": "misc_retired.pause_inst", "config": "0x40cc", "origin": "me"})"),
       "pause.event: 'misc_retired.pause_inst' counts instructions: thresholds.pause_cycles_each "
       "must say how many cycles one takes"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_EQ(ErrorOf(wrong.json), "my.json: " + wrong.message) << wrong.json;
  }
}

TEST(ParseProfile, WrongCpusNameTheField) {
  const std::vector<Wrong> cases = {
      {With(R"("cpu": "GenuineIntel")"),
       "cpu: 'GenuineIntel' is not an object of vendor, family, models, steppings, parts"},
      {With(R"("cpu": {})"), "cpu.vendor: is missing"},
      {With(R"("cpu": {"vendor": []})"), "cpu.vendor: must be a list of 1 to 8 names"},
      {With(R"("cpu": {"vendor": [5]})"),
       "cpu.vendor[0]: 5 is not one line of text of 1 to 64 bytes"},
      {With(R"("cpu": {"vendor": "A", "models": [1]})"), "cpu.family: and models go together"},
      {With(R"("cpu": {"vendor": "A", "family": 6})"), "cpu.family: and models go together"},
      {With(R"("cpu": {"vendor": "A", "family": 6, "models": []})"),
       "cpu.models: must be a list of 1 to 32 codes"},
      {With(R"("cpu": {"vendor": "A", "family": 6, "models": [[1, 2, 3]]})"),
       "cpu.models[0]: must be a list of 2 ends"},
      {With(R"("cpu": {"vendor": "A", "family": 6, "models": [1, [3, 2]]})"),
       "cpu.models[1]: begins above its end"},
      {With(R"("cpu": {"vendor": "A", "steppings": [1]})"),
       "cpu.steppings: are there, but no models"},
      {With(R"("cpu": {"vendor": "A", "parts": [1]})"),
       "cpu.parts: is not what CPUs of 'A' are identified by"},
      {With(R"("cpu": {"vendor": "0x41", "family": 6})"),
       "cpu.family: is not what CPUs of '0x41' are identified by"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_EQ(ErrorOf(wrong.json), "my.json: " + wrong.message) << wrong.json;
  }
}

TEST(ProfileJson, GivesTheSameProfileAgain) {
  std::vector<Profile> profiles(BuiltIn().begin(), BuiltIn().end());
  Profile odd = profiles.front();
  odd.name = "\"quoted\" \\ \xc3\xa4";
  // Numbers that a parser with less care reads one bit off.
  odd.values.evidence.loop_ipc_from = 0.1 + 0.2;
  odd.values.evidence.weak_below = 1.0 / 3;
  odd.values.evidence.fewest_cycles = 123456789.123456789;
  odd.values.evidence.loop_branch_share_from = std::nextafter(0.3, 1);
  odd.values.evidence.steady_ipc_spread_below = 5e-324;
  odd.values.evidence.full_confidence_cycles = 1e12;
  profiles.push_back(odd);
  for (const Profile& profile : profiles) {
    const auto again = Parse(ToJson(profile), profile.source);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->name, profile.name);
    EXPECT_EQ(again->description, profile.description);
    EXPECT_EQ(again->values, profile.values);
    EXPECT_EQ(again->pause, profile.pause);
    EXPECT_EQ(again->cpu, profile.cpu);
    EXPECT_EQ(again->origins, profile.origins);
    EXPECT_EQ(ToJson(*again), ToJson(profile));
  }
}

// No field can be forgotten: each one of the table is written and read on its own.
TEST(ProfileJson, EachFieldIsKept) {
  for (const Field& field : Fields()) {
    Profile profile = BuiltIn().front();
    const double value = field.Get(profile.values).value_or(2) * 1.0625;
    field.Set(profile.values, value);
    profile.origins[std::string(field.name)] = "me";
    const auto again = Parse(ToJson(profile), "");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(field.Get(again->values), value) << field.name;
    EXPECT_NE(again->values, core::Profile()) << field.name;
    EXPECT_EQ(again->origins.at(std::string(field.name)), "me");
  }
}

TEST(NumberText, IsWhatPeopleWrite) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.02), "0.02");
  EXPECT_EQ(NumberText(2e6), "2000000");
  EXPECT_EQ(NumberText(1e300), "1e+300");
}

TEST(LoadProfile, TakesNamesAndFiles) {
  fakes::ProcDir folder;
  folder.Write("mine.json", R"({"name": "mine"})");
  folder.Write("wrong.json", R"({"nam": "mine"})");
  folder.Write("large.json", std::string(kMostBytes + 1, ' '));
  EXPECT_EQ(Load("amd-zen4")->source, "built-in");
  const std::string file = folder.root() + "/mine.json";
  ASSERT_TRUE(Load(file).ok());
  EXPECT_EQ(Load(file)->source, file);
  EXPECT_EQ(std::string(Load(folder.root() + "/wrong.json").status().message()),
            folder.root() + "/wrong.json: nam: no such field; did you mean 'name'?");
  EXPECT_THAT(std::string(Load(folder.root() + "/large.json").status().message()),
              HasSubstr("is more than 1 MiB"));
  EXPECT_THAT(std::string(Load(folder.root()).status().message()), HasSubstr("is a folder"));
}

TEST(LoadProfile, NamesTheNearest) {
  const auto loaded = Load("amd-zen5");
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(loaded.status().message()),
            "'amd-zen5' is neither a built-in profile nor a file; did you mean 'amd-zen4'?");
  EXPECT_EQ(std::string(Load("").status().message()),
            "'' is neither a built-in profile nor a file; `vcpulse list profiles` shows those "
            "built in");
}

}  // namespace
}  // namespace vcpulse::profile
