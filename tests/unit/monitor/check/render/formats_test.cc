#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "tests/unit/fixtures/run_with_input.h"
#include "tests/unit/monitor/check/check_result.h"

namespace vcpulse::check {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

tests::Judgement Validate(std::string_view xml) {
  return tests::RunWithInput(
      "xmllint --noout --nonet --schema " VCPULSE_TEST_DATA "/junit/jenkins-junit.xsd -", xml);
}

TEST(RenderJunit, ShowsEveryOutcome) {
  Result result = EveryOutcome();
  result.judged.erase(result.judged.begin() + 1, result.judged.end());
  EXPECT_EQ(RenderJunit(result, "run.vpt"), R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="vcpulse check" tests="4" failures="1" errors="1" time="18.000">
  <testsuite name="vcpulse check: phase spin" tests="4" failures="1" errors="1" skipped="1" time="18.000" timestamp="2026-01-02T03:04:05" hostname="host1">
    <properties>
      <property name="timeline" value="run.vpt"/>
      <property name="judged" value="phase spin, 2 spans, 18.0 s"/>
    </properties>
    <testcase name="vcpu=*: spinning &lt;= 5% [VM web vCPU 0]" classname="vcpulse.check.spin" time="18.000">
      <system-out>spinning 0.0 % to 1.2 %</system-out>
    </testcase>
    <testcase name="vcpu=*: spinning &lt;= 5% [VM web vCPU 1]" classname="vcpulse.check.spin" time="18.000">
      <skipped>it needs hardware counters, and none was read</skipped>
    </testcase>
    <testcase name="vcpu=*: spinning &lt;= 5% [VM web vCPU 2]" classname="vcpulse.check.spin" time="18.000">
      <failure message="spinning 12.0 % to 14.0 %, wanted &lt;= 5 %; worst 100.0 % from 12.3 s to 13.4 s" type="FAIL">VM web vCPU 2: spinning 12.0 % to 14.0 %, wanted &lt;= 5 %; worst 100.0 % from 12.3 s to 13.4 s</failure>
    </testcase>
    <testcase name="vcpu=*: spinning &lt;= 5% [VM web vCPU 3]" classname="vcpulse.check.spin" time="18.000">
      <error message="spinning 3.0 % to 8.0 %, wanted &lt;= 5 %: 5.0 % of 18.0 s is not known" type="INCONCLUSIVE">VM web vCPU 3: spinning 3.0 % to 8.0 %, wanted &lt;= 5 %: 5.0 % of 18.0 s is not known</error>
    </testcase>
    <system-out>2 chunks were damaged
FAIL: 1 of 1 expectation failed</system-out>
  </testsuite>
</testsuites>
)");
}

TEST(RenderJunit, IsValidForJenkins) {
  for (const Result& result : {EveryOutcome(), Hostile(), BarelyKnown()}) {
    const std::string xml = RenderJunit(result, "run.vpt");
    const tests::Judgement judgement = Validate(xml);
    EXPECT_EQ(judgement.exit_code, 0) << judgement.said << xml;
  }
}

TEST(RenderJunit, AnErrorIsValidAndSaysWhy) {
  const std::string xml = RenderJunitError("run.vpt: <gone>");
  EXPECT_EQ(Validate(xml).exit_code, 0) << xml;
  EXPECT_THAT(xml, HasSubstr("<error message=\"run.vpt: &lt;gone&gt;\" type=\"INCONCLUSIVE\">"));
}

// That the validation refuses something at all.
TEST(RenderJunit, TheSchemaRefusesWhatItDoesNotKnow) {
  std::string xml = RenderJunit(EveryOutcome(), "run.vpt");
  xml.replace(xml.find("<skipped>"), 9, "<skipped why=\"\">");
  EXPECT_NE(Validate(xml).exit_code, 0);
}

// An expectation of phase "load" beside those of the result's own.
Result OfTwoPhases() {
  Result result = EveryOutcome();
  Judged judged = result.judged.at(2);
  judged.expectation.text = "phase=load: longest(spinning) <= baseline + 50ms";
  judged.expectation.limit = 50e6;
  judged.expectation.baseline_factor = 1;
  judged.findings.at(0).limit = Bounds{1.5e8, 1.7e8};
  judged.findings.at(0).subject = "any vcpu=*";
  judged.findings.at(0).of = "VM web vCPU 0";
  judged.time = JudgedTime{.phase = "load", .spans = 1, .judged_ns = 4'000'000'000};
  result.judged.push_back(judged);
  result.baseline = "good.vpt";
  return result;
}

TEST(RenderJunit, HasASuitePerPhase) {
  const std::string xml = RenderJunit(OfTwoPhases(), "run.vpt");
  EXPECT_EQ(Validate(xml).exit_code, 0) << xml;
  EXPECT_THAT(xml, HasSubstr("<testsuites name=\"vcpulse check\" tests=\"8\" failures=\"1\" "
                             "errors=\"2\" time=\"22.000\">"));
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"vcpulse check: phase spin\" tests=\"7\""));
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"vcpulse check: phase load\" tests=\"1\" "
                             "failures=\"0\" errors=\"0\" skipped=\"0\" time=\"4.000\""));
  EXPECT_THAT(xml, HasSubstr("classname=\"vcpulse.check.load\""));
  EXPECT_THAT(xml, HasSubstr("<property name=\"baseline\" value=\"good.vpt\"/>"));
  // What is of all stands once.
  EXPECT_EQ(xml.find("2 chunks were damaged"), xml.rfind("2 chunks were damaged"));
}

// Dots in the class name are packages to Jenkins; without a phase and a clock there is no more to
// say.
TEST(RenderJunit, NamesTheClassByThePhase) {
  Result result = EveryOutcome();
  result.phase = "load.5 <min>";
  EXPECT_THAT(RenderJunit(result, "x"),
              HasSubstr("classname=\"vcpulse.check.load_5 &lt;min&gt;\""));
  result.phase.reset();
  result.start_realtime_ns.reset();
  result.host_name.clear();
  const std::string xml = RenderJunit(result, "x");
  EXPECT_THAT(xml, HasSubstr("classname=\"vcpulse.check\""));
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"vcpulse check\""));
  EXPECT_THAT(xml, Not(HasSubstr("timestamp")));
  EXPECT_THAT(xml, Not(HasSubstr("hostname")));
}

TEST(XmlText, EscapesWhatMeansSomething) {
  EXPECT_EQ(XmlText("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&apos;");
}

// XML 1.0 forbids these even as references.
TEST(XmlText, ReplacesWhatXmlCannotHold) {
  EXPECT_EQ(XmlText(std::string_view("\0\x01\x1b\x1f\x7f", 5)), "????\x7f");
  EXPECT_EQ(XmlText("\t\n\r"), "   ");
  EXPECT_EQ(XmlText("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"), "??\xef\xbf\xbd");
  EXPECT_EQ(XmlText("\xff\xed\xa0\x80\xc3\xa9"), "????\xc3\xa9");
}

tests::Judgement Parse(std::string_view ktap) {
  return tests::RunWithInput("python3 " VCPULSE_KTAP_PARSER, ktap);
}

TEST(RenderKtap, ShowsEveryOutcome) {
  EXPECT_EQ(RenderKtap(EveryOutcome(), "run.vpt"), R"(KTAP version 1
1..4
# run.vpt: host1, recorded 2026-01-02 03:04:05 UTC, 60.0 s
# judged: phase spin, 2 spans, 18.0 s
  KTAP version 1
  1..4
  ok 1 - VM web vCPU 0 # spinning 0.0 % to 1.2 %
  ok 2 - VM web vCPU 1 # SKIP it needs hardware counters, and none was read
  not ok 3 - VM web vCPU 2 # spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s
  not ok 4 - VM web vCPU 3 # ERROR inconclusive: spinning 3.0 % to 8.0 %, wanted <= 5 %: 5.0 % of 18.0 s is not known
not ok 1 - vcpu=*: spinning <= 5%
  KTAP version 1
  1..1
  not ok 1 - VM web vCPU 1 # ERROR inconclusive: 4 ticks measured in 400.0 ms, at least 10 are needed
not ok 2 - vcpu=1: ipc.p50 >= 0.9 # ERROR inconclusive
  KTAP version 1
  1..1
  ok 1 - VM web vCPU 0 # longest(spinning) 120.0 ms
ok 3 - longest(spinning) <= 200ms
  KTAP version 1
  1..1
  ok 1 - VM web vCPU 0 # SKIP it needs hardware counters, and none was read
ok 4 - productive >= 80% # SKIP it needs hardware counters, and none was read
# note: 2 chunks were damaged
# FAIL: 1 of 4 expectations failed, 1 inconclusive, 1 skipped
)");
}

TEST(RenderKtap, AParserReadsTheSameOutcomes) {
  const tests::Judgement judgement = Parse(RenderKtap(EveryOutcome(), "run.vpt"));
  EXPECT_EQ(judgement.exit_code, 0);
  EXPECT_EQ(judgement.said, R"(fail: vcpu=*: spinning <= 5%
  pass: VM web vCPU 0 | spinning 0.0 % to 1.2 %
  skip: VM web vCPU 1 | SKIP it needs hardware counters, and none was read
  fail: VM web vCPU 2 | spinning 12.0 % to 14.0 %, wanted <= 5 %; worst 100.0 % from 12.3 s to 13.4 s
  error: VM web vCPU 3 | ERROR inconclusive: spinning 3.0 % to 8.0 %, wanted <= 5 %: 5.0 % of 18.0 s is not known
error: vcpu=1: ipc.p50 >= 0.9 | ERROR inconclusive
  error: VM web vCPU 1 | ERROR inconclusive: 4 ticks measured in 400.0 ms, at least 10 are needed
pass: longest(spinning) <= 200ms
  pass: VM web vCPU 0 | longest(spinning) 120.0 ms
skip: productive >= 80% | SKIP it needs hardware counters, and none was read
  skip: VM web vCPU 0 | SKIP it needs hardware counters, and none was read
)");
}

// A '#' in a name would end it, a line end would begin another line.
TEST(RenderKtap, NamesCannotForgeAnOutcome) {
  Result result = BarelyKnown();
  result.judged[0].expectation.text = "a\nok 2 - b # SKIP";
  result.judged[0].findings[0].subject = "VM x # SKIP";
  result.notes = {"n\nok 3"};
  const std::string ktap = RenderKtap(result, "f\n1..9");
  const tests::Judgement judgement = Parse(ktap);
  EXPECT_EQ(judgement.exit_code, 0) << judgement.said << ktap;
  EXPECT_THAT(judgement.said, HasSubstr("error: a?ok 2 - b ? SKIP | ERROR inconclusive\n"));
  EXPECT_THAT(judgement.said, HasSubstr("\n  error: VM x ? SKIP | ERROR"));
  const tests::Judgement hostile = Parse(RenderKtap(Hostile(), "x"));
  EXPECT_EQ(hostile.exit_code, 0) << hostile.said;
  EXPECT_THAT(hostile.said, Not(HasSubstr("\x1b")));
}

// That the parser refuses something at all.
TEST(RenderKtap, TheParserIsStrict) {
  for (const char* ktap :
       {"", "1..1\nok 1 a\n", "KTAP version 1\nok 1 a\n", "KTAP version 1\n1..2\nok 1 a\n",
        "KTAP version 1\n1..1\nok 2 a\n", "KTAP version 1\n1..1\nok 1 a # b # c\nhello\n",
        "KTAP version 1\n1..1\nok 1 a # ERROR b\n",
        "KTAP version 1\n1..1\n  KTAP version 1\n  1..1\n  not ok 1 a\nok 1 b\n",
        "KTAP version 1\n1..0\n  KTAP version 1\n  1..1\n  ok 1 a\n",
        "KTAP version 1\n1..1\nok 1"}) {
    const tests::Judgement judgement = Parse(ktap);
    EXPECT_EQ(judgement.exit_code, 1) << ktap;
    EXPECT_THAT(judgement.said, HasSubstr("ktap_parser: ")) << ktap;
  }
}

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

TEST(RenderCheck, SaysAllPhasesAndTheBaseline) {
  const Result result = OfTwoPhases();
  EXPECT_THAT(RenderKtap(result, "run.vpt"),
              HasSubstr("# judged: phase spin, 2 spans, 18.0 s\n# judged: phase load, 1 span, "
                        "4.0 s\n# baseline: good.vpt\n"));
  const std::string markdown = RenderMarkdown(result, "run.vpt");
  EXPECT_THAT(markdown, HasSubstr("judged: phase load, 1 span, 4.0 s  \nbaseline: good.vpt\n"));
  EXPECT_THAT(markdown, HasSubstr("| any vcpu=\\* (VM web vCPU 0) | 120.0 ms | \\<= 150.0 ms to "
                                  "170.0 ms (baseline + 50ms) |"));
  EXPECT_THAT(RenderText(result, "run.vpt"),
              AllOf(HasSubstr("judged: phase load, 1 span, 4.0 s\nbaseline: good.vpt\n"),
                    HasSubstr("any vcpu=*  VM web vCPU 0: longest(spinning) 120.0 ms\n")));
  const json::value out = json::parse(RenderJson(result, "run.vpt"));
  EXPECT_EQ(out.at_pointer("/phase"), "spin");
  EXPECT_EQ(out.at_pointer("/expectations/0/phase"), "spin");
  EXPECT_EQ(out.at_pointer("/expectations/4/phase"), "load");
  EXPECT_EQ(Number(out, "/expectations/4/judged_s"), 4);
  EXPECT_EQ(Number(out, "/expectations/4/baseline_factor"), 1);
  EXPECT_TRUE(out.at_pointer("/expectations/0/baseline_factor").is_null());
  EXPECT_EQ(Number(out, "/expectations/4/findings/0/limit/high"), 1.7e8);
  EXPECT_EQ(out.at_pointer("/expectations/4/findings/0/of"), "VM web vCPU 0");
  EXPECT_TRUE(out.at_pointer("/expectations/0/findings/0/of").is_null());
}

// What no counter was read of stands before all that may be judged without.
TEST(RenderCheck, DegradedIsSaidFirst) {
  Result result = EveryOutcome();
  result.degraded = "no hardware counter was read: no PMU";
  const std::string line = "DEGRADED: no hardware counter was read: no PMU\n";
  EXPECT_THAT(RenderText(result, "run.vpt"), StartsWith(line + "run.vpt: "));
  EXPECT_THAT(RenderKtap(result, "run.vpt"), HasSubstr("\n# " + line + "# run.vpt: "));
  EXPECT_THAT(RenderMarkdown(result, "run.vpt"),
              HasSubstr("\n\n**DEGRADED**: no hardware counter was read: no PMU  \nrecording: "));
  EXPECT_THAT(
      RenderJunit(result, "run.vpt"),
      HasSubstr("<property name=\"degraded\" value=\"no hardware counter was read: no PMU"));
  EXPECT_EQ(json::parse(RenderJson(result, "run.vpt")).at_pointer("/degraded"),
            "no hardware counter was read: no PMU");
  const std::string counted = RenderJson(EveryOutcome(), "run.vpt");
  EXPECT_TRUE(json::parse(counted).at_pointer("/degraded").is_null());
}

}  // namespace

}  // namespace vcpulse::check
