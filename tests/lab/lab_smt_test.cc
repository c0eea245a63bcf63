// Who runs on the other thread of a core (tools/lab.d/scenarios/smt): CPUs 0 and 1 of the emulated
// host are one core by its device tree.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "boost/json.hpp"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

// By the VM's name and the index of the vCPU.
std::map<std::pair<std::string, int64_t>, boost::json::value> Vcpus() {
  std::map<std::pair<std::string, int64_t>, boost::json::value> vcpus;
  const boost::json::value report =
      boost::json::parse(ReadText(OutputPath("smt-none", "json.out")));
  for (const auto& vm : report.at("vms").as_array()) {
    for (const auto& vcpu : vm.at("vcpus").as_array()) {
      vcpus[{vm.at("name").as_string().c_str(), vcpu.at("index").as_int64()}] = vcpu;
    }
  }
  return vcpus;
}

TEST(LabSmt, TwoThatWorkOnOneCoreNameEachOther) {
  const auto vcpus = Vcpus();
  ASSERT_EQ(vcpus.size(), 3u);
  for (const auto& [name, other] :
       std::map<std::string, std::string>{{"zero", "one"}, {"one", "zero"}}) {
    const auto& vcpu = vcpus.at({name, 0});
    // The first readings have none before them.
    EXPECT_GE(vcpu.at("smt_shared").to_number<double>(), 75) << name;
    ASSERT_EQ(vcpu.at("smt_neighbours").as_array().size(), 1u) << name;
    EXPECT_EQ(vcpu.at("smt_neighbours").at(0).at("vm").as_string(), other);
    EXPECT_EQ(vcpu.at("smt_neighbours").at(0).at("vcpu"), 0);
  }
  EXPECT_THAT(ReadText(OutputPath("smt-none", "report.out")),
              testing::ContainsRegex("another thread of its core, vCPU 0: vCPU 0 of VM [0-9] "
                                     "\"one\" [0-9.]+ % of [0-9]+ readings"));
}

TEST(LabSmt, OneThatIsHaltedIsNoNeighbourAndHasNone) {
  EXPECT_TRUE(Vcpus().at({"one", 1}).at("smt_neighbours").is_null());
}

}  // namespace
}  // namespace vcpulse::lab
