#include "boost/json.hpp"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "tests/unit/check_result.h"

namespace vcpulse::check {
namespace {

namespace json = boost::json;

double Number(const json::value& value, const char* pointer) {
  return value.at_pointer(pointer).to_number<double>();
}

TEST(RenderCheckJson, HasTheDocumentedFields) {
  const json::value out = json::parse(RenderJson(EveryOutcome(), "run.vpt"));
  EXPECT_EQ(out.at_pointer("/outcome"), "FAIL");
  EXPECT_EQ(Number(out, "/counts/expectations"), 4);
  EXPECT_EQ(Number(out, "/counts/failed"), 1);
  EXPECT_EQ(Number(out, "/counts/inconclusive"), 1);
  EXPECT_EQ(Number(out, "/counts/passed"), 1);
  EXPECT_EQ(Number(out, "/counts/skipped"), 1);
  EXPECT_EQ(out.at_pointer("/file"), "run.vpt");
  EXPECT_EQ(out.at_pointer("/host_name"), "host1");
  EXPECT_EQ(out.at_pointer("/start"), "2026-01-02T03:04:05.250Z");
  EXPECT_EQ(Number(out, "/duration_s"), 60);
  EXPECT_EQ(out.at_pointer("/phase"), "spin");
  EXPECT_EQ(Number(out, "/spans"), 2);
  EXPECT_EQ(Number(out, "/judged_s"), 18);
  EXPECT_EQ(out.at_pointer("/phases"), (json::array{"boot", "spin"}));
  EXPECT_EQ(out.at_pointer("/notes"), (json::array{"2 chunks were damaged"}));

  const json::value& first = out.at_pointer("/expectations/0");
  EXPECT_EQ(first.at_pointer("/expectation"), "vcpu=*: spinning <= 5%");
  EXPECT_EQ(first.at_pointer("/outcome"), "FAIL");
  EXPECT_EQ(first.at_pointer("/quantity"), "spinning");
  EXPECT_EQ(first.at_pointer("/unit"), "share");
  EXPECT_EQ(first.at_pointer("/comparison"), "<=");
  EXPECT_EQ(Number(first, "/limit"), 0.05);
  const json::value& failed = first.at_pointer("/findings/2");
  EXPECT_EQ(failed.at_pointer("/subject"), "VM web vCPU 2");
  EXPECT_EQ(failed.at_pointer("/vm"), "web");
  EXPECT_EQ(Number(failed, "/vcpu"), 2);
  EXPECT_EQ(failed.at_pointer("/outcome"), "FAIL");
  EXPECT_EQ(Number(failed, "/observed/low"), 0.12);
  EXPECT_EQ(Number(failed, "/observed/high"), 0.14);
  EXPECT_FALSE(failed.at_pointer("/observed/open").as_bool());
  EXPECT_EQ(Number(failed, "/ticks"), 180);
  EXPECT_EQ(Number(failed, "/judged_s"), 18);
  EXPECT_EQ(Number(failed, "/unknown_s"), 0.36);
  EXPECT_EQ(Number(failed, "/worst/from_s"), 12.3);
  EXPECT_EQ(Number(failed, "/worst/to_s"), 13.4);
  EXPECT_EQ(Number(failed, "/worst/observed"), 1);
  EXPECT_EQ(failed.at_pointer("/reason"),
            "spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s");
  EXPECT_EQ(out.at_pointer("/expectations/1/unit"), "ipc");
  EXPECT_EQ(out.at_pointer("/expectations/2/unit"), "ns");
  EXPECT_EQ(out.at_pointer("/expectations/2/quantity"), "longest(spinning)");
  EXPECT_EQ(Number(out, "/expectations/2/limit"), 200e6);
}

// JSON knows no infinity, and 1e308 would be a number that nobody measured.
TEST(RenderCheckJson, AnOpenEndIsNull) {
  const json::value out = json::parse(RenderJson(EveryOutcome(), "run.vpt"));
  const json::value& observed = out.at_pointer("/expectations/1/findings/0/observed");
  EXPECT_EQ(Number(observed, "/low"), 0.5);
  EXPECT_TRUE(observed.at_pointer("/high").is_null());
  EXPECT_TRUE(observed.at_pointer("/open").as_bool());
}

TEST(RenderCheckJson, HasNullForWhatIsNotThere) {
  const json::value out = json::parse(RenderJson(BarelyKnown(), "x"));
  for (const char* pointer : {"/host_name", "/start", "/expectations/0/findings/0/observed",
                              "/expectations/0/findings/0/vm", "/expectations/0/findings/0/vcpu",
                              "/expectations/0/findings/0/worst"}) {
    EXPECT_TRUE(out.at_pointer(pointer).is_null()) << pointer;
  }
  EXPECT_TRUE(out.at_pointer("/phases").as_array().empty());
  Result whole = BarelyKnown();
  whole.phase.reset();
  const json::value out_of_whole = json::parse(RenderJson(whole, "x"));
  EXPECT_TRUE(out_of_whole.at_pointer("/phase").is_null());
  const json::value every = json::parse(RenderJson(EveryOutcome(), "x"));
  EXPECT_TRUE(every.at_pointer("/expectations/0/findings/0/reason").is_null());
}

// The parser refuses what is no UTF-8 or has a bare control character.
TEST(RenderCheckJson, HoldsTextOfOutsideOriginAsItIs) {
  const json::value out = json::parse(RenderJson(Hostile(), "x\xff"));
  EXPECT_EQ(out.at_pointer("/file"), "x?");
  EXPECT_EQ(out.at_pointer("/host_name"), "a\x1b[2J|`<b>&\"'#\n\x01?]]>\xef\xbf\xbf");
}

}  // namespace
}  // namespace vcpulse::check
