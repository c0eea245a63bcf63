#include "monitor/recorder/notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Notices, WhatIsSaidOfSeveralVmsIsOneLine) {
  Notices notices;
  notices.Add("a (PID 1)", "no PMU");
  notices.Add("b (PID 2)", "set reduced");
  notices.Add("output is slow");
  notices.Add("c (PID 3)", "no PMU");
  EXPECT_THAT(notices.Take(), ElementsAre("VMs a (PID 1), c (PID 3): no PMU",
                                          "VM b (PID 2): set reduced", "output is slow"));
  EXPECT_THAT(notices.Take(), IsEmpty());
}

TEST(Notices, OfManyVmsThreeAreNamed) {
  Notices notices;
  for (const char* vm : {"a", "b", "c", "d", "e"}) notices.Add(vm, "no PMU");
  EXPECT_THAT(notices.Take(), ElementsAre("VMs a, b, c and 2 more: no PMU"));
}

TEST(Notices, WhatIsOfNoVmIsNotMixedWithWhatIs) {
  Notices notices;
  notices.Add("no PMU");
  notices.Add("a", "no PMU");
  notices.Add("no PMU");
  EXPECT_THAT(notices.Take(), ElementsAre("no PMU", "VM a: no PMU"));
}

}  // namespace
}  // namespace vcpulse::recorder
