#include "monitor/reading/labels.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace vcpulse::reading {
namespace {

// A kind that is added to the schema needs a name in the reports.
TEST(Labels, EveryLifeCycleKindHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int kind = 1; kind <= v1::LifeCycle::Kind_MAX; ++kind) {
    const std::string name(LifeCycleName(static_cast<v1::LifeCycle::Kind>(kind)));
    EXPECT_NE(name, "unspecified") << kind;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(LifeCycleName(v1::LifeCycle::KIND_VM_PAUSED), "vm-paused");
  EXPECT_EQ(LifeCycleName(v1::LifeCycle::KIND_VM_RESUMED), "vm-resumed");
  EXPECT_EQ(LifeCycleName(v1::LifeCycle::KIND_RECORDING_PAUSED), "recording-paused");
  EXPECT_EQ(LifeCycleName(v1::LifeCycle::KIND_RECORDING_RESUMED), "recording-resumed");
}

TEST(Labels, EveryResidencyMethodHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int method = 1; method < v1::ResidencyMethod_ARRAYSIZE; ++method) {
    const auto name = ResidencyMethodName(static_cast<v1::ResidencyMethod>(method));
    ASSERT_TRUE(name.has_value()) << method;
    EXPECT_TRUE(names.insert(*name).second) << *name;
  }
  EXPECT_EQ(ResidencyMethodName(v1::RESIDENCY_METHOD_HIGHEST_RATE), "highest-rate");
  EXPECT_FALSE(ResidencyMethodName(v1::RESIDENCY_METHOD_UNSPECIFIED).has_value());
}

TEST(Labels, EveryFeatureHasAKeyOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < core::kFeatures; ++i) {
    const std::string_view name = FeatureName(static_cast<core::Feature>(i));
    EXPECT_NE(name, "unspecified") << i;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_1"), std::string_view::npos);
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace vcpulse::reading
