#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/check/render.h"
#include "tests/unit/check_result.h"
#include "tests/unit/run_with_input.h"

namespace vcpulse::check {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace vcpulse::check
