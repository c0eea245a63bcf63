#include "monitor/report/labels.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace vcpulse::report {
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
}

}  // namespace
}  // namespace vcpulse::report
