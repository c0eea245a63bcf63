// Which vCPUs a filter lets through.
#include "monitor/top/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/top/board_loader.h"
#include "tests/unit/monitor/top/top_fixture.h"

namespace vcpulse::top {
namespace {

using ::testing::HasSubstr;

class FilterTest : public testing::Test {
 protected:
  FilterTest() {
    AddAll(store_, ChunksOf({.vms = 1, .vcpus = 1}));
    loader_.Want(Window::EndingAt(store_.Span()->end_ns, 10, kSecond_ns));
    EXPECT_TRUE(loader_.Step(NeverStop));
    totals_ = loader_.board().vms().begin()->second.vcpus.at(0).Sum();
  }

  bool Lets(std::string_view text, core::Verdict verdict = {.band = core::Band::kProductive}) {
    const auto filter = Filter::Parse(text);
    EXPECT_TRUE(filter.ok()) << text << ": " << filter.status();
    return filter.ok() && filter->Matches({.host = "rack7",
                                           .vm = "web1",
                                           .uuid = "c0ffee",
                                           .vm_number = 3,
                                           .pid = 4711,
                                           .vcpu = 2,
                                           .verdict = verdict,
                                           .totals = totals_});
  }

  ChunkStore store_{ChunkStore::Limits()};
  BoardLoader loader_{store_};
  metric::Totals totals_;
};

TEST_F(FilterTest, Bands) {
  EXPECT_TRUE(Lets("productive"));
  EXPECT_TRUE(Lets("Prod"));
  EXPECT_FALSE(Lets("spinning"));
  EXPECT_TRUE(Lets("spin", {.band = core::Band::kSpinning}));
  EXPECT_FALSE(Lets("starved"));
  EXPECT_TRUE(Lets("starved", {.band = core::Band::kUnknown, .starved = true}));
}

TEST_F(FilterTest, NamesInPart) {
  EXPECT_TRUE(Lets(""));
  EXPECT_TRUE(Lets("eb"));
  EXPECT_TRUE(Lets("WEB1"));
  EXPECT_TRUE(Lets("rack"));
  EXPECT_TRUE(Lets("vcpu 2"));
  EXPECT_FALSE(Lets("vcpu 3"));
  EXPECT_FALSE(Lets("db"));
}

TEST_F(FilterTest, ExpressionsOfCheck) {
  EXPECT_TRUE(Lets("ipc > 1.2"));  // a synthetic vCPU has 1.3
  EXPECT_FALSE(Lets("ipc < 1.2"));
  EXPECT_TRUE(Lets("ipc.p50 >= 1.2"));
  EXPECT_TRUE(Lets("productive >= 99%"));
  EXPECT_FALSE(Lets("halted > 1%"));
  EXPECT_TRUE(Lets("PROD >= 99%"));  // as its column is headed
  EXPECT_FALSE(Lets("exits > 0"));   // not measured is not 0, and fits nothing
  EXPECT_FALSE(Lets("exits <= 0"));
}

TEST_F(FilterTest, Selectors) {
  EXPECT_TRUE(Lets("vm=web1"));
  EXPECT_TRUE(Lets("vm=4711"));
  EXPECT_TRUE(Lets("vm=c0ffee"));
  EXPECT_FALSE(Lets("vm=web"));
  EXPECT_TRUE(Lets("vcpu=0-2"));
  EXPECT_FALSE(Lets("vm=web1 vcpu=3"));
  EXPECT_TRUE(Lets("vm=web1 vcpu=2: ipc > 1"));
  EXPECT_FALSE(Lets("vm=web1 vcpu=3: ipc > 1"));
}

TEST_F(FilterTest, RefusesWhatAMomentDoesNotHave) {
  const auto error = [](std::string_view text) {
    return std::string(Filter::Parse(text).status().message());
  };
  EXPECT_THAT(error("longest(spinning) > 1s"), HasSubstr("stretch of time"));
  EXPECT_THAT(error("gaps > 1%"), HasSubstr("stretch of time"));
  EXPECT_THAT(error("ipc < baseline"), HasSubstr("baseline"));
  EXPECT_THAT(error("any vcpu=*: ipc.p50 < 1"), HasSubstr("each vCPU"));
  EXPECT_THAT(error("vm=a phase=b"), HasSubstr("phase"));
  EXPECT_FALSE(Filter::Parse("ipc <").ok());
  EXPECT_FALSE(Filter::Parse("nonsense > 1").ok());
}

}  // namespace
}  // namespace vcpulse::top
