#include "monitor/report/phase_totals.h"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/report/json_report.h"
#include "monitor/report/text_report.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::report {
namespace {

using check::DrawnRecording;
using check::kDrawnStart_ns;
using check::kDrawnTick_ns;
using ::testing::HasSubstr;
using ::testing::Not;

// Text and JSON of a drawn recording.
struct Rendered {
  std::string text;
  std::string json;
};

Rendered Render(DrawnRecording& recording, const TextOptions& options = {},
                const reading::Part& part = {}) {
  Summary summary;
  const auto report = ReadPart(recording.Finish(), part, summary);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  return {.text = RenderText(*report, options), .json = RenderJson(*report)};
}

double Number(const std::string& text, const char* path) {
  return boost::json::parse(text).at_pointer(path).to_number<double>();
}

TEST(PhaseTotals, EachPhaseHasItsOwnShares) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"[boot]PPPPP[spin]SSSSSSSSSS[idle]HHHHH[spin]SSSPP",
                                          "HHHHHHHHHHHHHHHHHHHHHHHHH"});
  const Rendered out = Render(recording);
  EXPECT_THAT(out.text, HasSubstr(R"(
phase spans   length vCPU HALTED SPINNING PRODUCTIVE UNKNOWN starved  IPC residency run-delay
 boot     1 500.0 ms    0   0.0%     0.0%     100.0%    0.0%    0.0% 2.00    100.0%      0.0%
 boot     1 500.0 ms    1 100.0%     0.0%       0.0%    0.0%    0.0%    -      0.0%      0.0%
 spin     2    1.5 s    0   0.0%    86.7%      13.3%    0.0%    0.0% 0.70    100.0%      0.0%
 spin     2    1.5 s    1 100.0%     0.0%       0.0%    0.0%    0.0%    -      0.0%      0.0%
 idle     1 500.0 ms    0 100.0%     0.0%       0.0%    0.0%    0.0%    -      0.0%      0.0%
)"));
  EXPECT_NEAR(Number(out.json, "/phases/1/vcpus/0/share/spinning"), 13.0 / 15, 1e-9);
  EXPECT_EQ(Number(out.json, "/phases/1/spans"), 2);
  EXPECT_NEAR(Number(out.json, "/phases/1/length_s"), 1.5, 1e-9);
}

TEST(PhaseTotals, WhatLiesBeforeTheFirstMarkerIsOfNone) {
  DrawnRecording recording;
  recording.Draw("PPPPP[spin]SSSSS");
  const Rendered out = Render(recording);
  EXPECT_EQ(Number(out.json, "/phases/0/vcpus/0/share/spinning"), 1);
  EXPECT_NEAR(Number(out.json, "/phases/0/vcpus/0/measured_s"), 0.5, 1e-9);
}

// A harness may stamp a marker after the ticks that it is about came.
TEST(PhaseTotals, AMarkerThatComesLateCountsFromItsStamp) {
  DrawnRecording recording;
  recording.Draw("[work]PPPPPSSSSS");
  recording.Mark("spin", kDrawnStart_ns + 5 * kDrawnTick_ns);
  recording.Draw("SSSSS");
  const Rendered out = Render(recording);
  EXPECT_EQ(Number(out.json, "/phases/0/vcpus/0/share/productive"), 1);
  EXPECT_EQ(Number(out.json, "/phases/1/vcpus/0/share/spinning"), 1);
  EXPECT_NEAR(Number(out.json, "/phases/1/vcpus/0/measured_s"), 1.0, 1e-9);
}

TEST(PhaseTotals, WhereRowsOfVcpusAreTooManyARowIsAVm) {
  DrawnRecording recording;
  const std::vector<uint32_t> nine = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (uint32_t vm = 1; vm <= 3; ++vm) recording.Begin(vm, {.vcpus = nine});
  const auto all = [](const std::string& letters) { return std::vector<std::string>(9, letters); };
  std::vector<std::string> first = all("SSSSS");
  first[0] = "[spin]PPPPP";
  recording.Draw({{1, first}, {2, all("SSSSS")}, {3, all("HHHHH")}});
  const std::string path = recording.Finish();
  Summary summary;
  const auto report = ReadPart(path, {}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(RenderText(*report), HasSubstr(R"(
phase spans   length         VM HALTED SPINNING PRODUCTIVE UNKNOWN starved  IPC residency run-delay
 spin     1 500.0 ms 1 "guest1"   0.0%    88.9%      11.1%    0.0%    0.0% 0.67    100.0%      0.0%
 spin     1 500.0 ms 2 "guest2"   0.0%   100.0%       0.0%    0.0%    0.0% 0.50    100.0%      0.0%
 spin     1 500.0 ms 3 "guest3" 100.0%     0.0%       0.0%    0.0%    0.0%    -      0.0%      0.0%
)"));
  // Of one vCPU index each row says which.
  EXPECT_THAT(RenderText(*report, {.vcpu = 0}),
              HasSubstr("\n spin     1 500.0 ms 1 \"guest1\"    0   0.0%     0.0%     100.0% "));
  EXPECT_THAT(RenderText(*report, {.top = 0}),
              HasSubstr("\n spin     1 500.0 ms 1 \"guest1\"    8 "));
}

TEST(PhaseTotals, WhereRowsOfVmsAreTooManyARowIsAPhase) {
  DrawnRecording recording;
  std::map<uint32_t, std::vector<std::string>> drawing;
  for (uint32_t vm = 1; vm <= 9; ++vm) {
    recording.Begin(vm, {.vcpus = {0, 1}});
    drawing[vm] = {"SSSSSPPPPP", "HHHHHHHHHH"};
  }
  drawing[1][0] = "[spin]SSSSS[work]PPPPP";
  recording.Draw(drawing);
  const std::string path = recording.Finish();
  Summary summary;
  const auto report = ReadPart(path, {}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(RenderText(*report), HasSubstr(R"(
phase spans   length    VM HALTED SPINNING PRODUCTIVE UNKNOWN starved  IPC residency run-delay
 spin     1 500.0 ms all 9  50.0%    50.0%       0.0%    0.0%    0.0% 0.50     50.0%      0.0%
 work     1 500.0 ms all 9  50.0%     0.0%      50.0%    0.0%    0.0% 2.00     50.0%      0.0%
(--vm VM shows the phases of one VM, --top 0 of each vCPU)
)"));
  EXPECT_THAT(RenderText(*report, {.brief = true}),
              HasSubstr("\n work     1 500.0 ms 9 \"guest9\" "));
  EXPECT_THAT(RenderText(*report, {.vm = 9}), HasSubstr("\n work     1 500.0 ms    1 100.0% "));
}

TEST(PhaseTotals, ManyPhasesAreCut) {
  DrawnRecording recording;
  std::string letters;
  for (int i = 0; i < 130; ++i) letters += "[p" + std::to_string(i) + "]PP";
  recording.Draw(letters);
  const Rendered out = Render(recording);
  EXPECT_THAT(out.text, HasSubstr("\n  p23 "));
  EXPECT_THAT(out.text, Not(HasSubstr("\n  p24 ")));
  EXPECT_THAT(out.text,
              HasSubstr("\n76 more rows (--phase NAME reports one phase, --top 0 shows all)\n"
                        "30 spans of further phases left out\n"));
  EXPECT_EQ(Number(out.json, "/phase_spans_omitted"), 30);
  EXPECT_NEAR(Number(out.json, "/phases/99/length_s"), 0.2, 1e-9);
  EXPECT_NEAR(Number(out.json, "/phases/99/vcpus/0/measured_s"), 0.2, 1e-9);
}

// What a pipe gave is gone: the ticks stay where they were counted, and that is said.
TEST(PhaseTotals, AMarkerThatComesLateInAPipeIsSaid) {
  DrawnRecording recording;
  recording.Draw("[work]PPPPPSSSSS");
  recording.Mark("spin", kDrawnStart_ns + 5 * kDrawnTick_ns);
  recording.Draw("SSSSS");
  const std::string path = recording.Finish();
  FILE* const pipe = popen(("cat " + path).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  Summary summary;
  const auto report = ReadPart("/proc/self/fd/" + std::to_string(fileno(pipe)), {}, summary);
  pclose(pipe);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(RenderText(*report), HasSubstr("\na marker came later than its ticks: "));
}

TEST(PhaseTotals, OfOnePhaseAloneTheLengthIsThatOfItsSpans) {
  DrawnRecording recording;
  recording.Draw("[boot]PPPPP[spin]SSSSS[boot]PPP");
  EXPECT_NEAR(Number(Render(recording, {}, {.phase = "boot"}).json, "/phases/0/length_s"), 0.8,
              1e-3);
}

TEST(PhaseTotals, OfAPartItIsSaidThatItsBeginningIsOfNoPhase) {
  DrawnRecording recording;
  recording.Draw("[boot]PPPPP[spin]SSSSS");
  EXPECT_THAT(Render(recording, {}, {.from_ns = 2 * kDrawnTick_ns}).text,
              HasSubstr("\nwhat lies before the first marker of this part is in no row\n"));
}

TEST(PhaseTotals, OnePhaseAloneNeedsNoTableOfPhases) {
  DrawnRecording recording;
  recording.Draw("[boot]PPPPP[spin]SSSSS");
  EXPECT_THAT(Render(recording, {}, {.phase = "spin"}).text, Not(HasSubstr("phase spans")));
}

TEST(PhaseTotals, OneVcpuAloneIsShownWhereAsked) {
  DrawnRecording recording;
  recording.Begin(1, {.vcpus = {0, 1}});
  recording.Draw(std::vector<std::string>{"[spin]SSSSS", "PPPPP"});
  const std::string text = Render(recording, {.vcpu = 1}).text;
  EXPECT_THAT(text, HasSubstr("\n spin     1 500.0 ms    1 "));
  EXPECT_THAT(text, Not(HasSubstr("\n spin     1 500.0 ms    0 ")));
}

}  // namespace
}  // namespace vcpulse::report
