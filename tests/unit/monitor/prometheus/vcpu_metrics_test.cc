#include "monitor/prometheus/vcpu_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/unit/monitor/prometheus/metrics_fixture.h"

namespace vcpulse::prometheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kOne = "{vm=\"one\",vcpu=\"0\",pid=\"1001\"}";

std::string Band(const std::string& band, const std::string& vcpu = "0") {
  return "vcpulse_vcpu_band_seconds_total{vm=\"one\",vcpu=\"" + vcpu + "\",pid=\"1001\",band=\"" +
         band + "\"}";
}

DidInTick InBand(core::Band band) { return {.verdict = {.band = band}}; }

TEST(VcpuMetrics, HandsEveryRecordOn) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddTick(1, 1, {});
  recording.AddGap(v1::Gap::REASON_TICK_MISSED, 1, 1);
  recording.writer->EndEpoch(1, 1);
  EXPECT_THAT(recording.kept->records, SizeIs(3));
  EXPECT_THAT(recording.kept->ticks, SizeIs(1));
  EXPECT_THAT(recording.kept->ended, ElementsAre(std::pair(1U, 1U)));
}

TEST(VcpuMetrics, AnIntervalIsOfTheBandOfItsVerdict) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one", {"cycles", "instructions"}, 2);
  recording.AddTick(1, 1, InBand(core::Band::kHalted));  // the first: no interval
  EXPECT_EQ(recording.ValueOf(Band("halted")), "0");
  recording.AddTick(1, 1, InBand(core::Band::kNone));  // no verdict: nowhere
  recording.AddTick(1, 1, InBand(core::Band::kHalted));
  recording.AddTick(1, 1, InBand(core::Band::kSpinning));
  recording.AddTick(1, 1, InBand(core::Band::kSpinning));
  recording.AddTick(1, 1, InBand(core::Band::kUnknown));
  recording.AddTick(1, 1, InBand(static_cast<core::Band>(core::kBands)));  // not known here
  EXPECT_EQ(recording.ValueOf(Band("halted")), "0.1");
  EXPECT_EQ(recording.ValueOf(Band("spinning")), "0.2");
  EXPECT_EQ(recording.ValueOf(Band("productive", "1")), "0");
  EXPECT_EQ(recording.ValueOf(Band("unknown", "1")), "0.1");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_starved_seconds_total" + kOne), "0");
}

TEST(VcpuMetrics, CountsAddUpOverEpochs) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddTick(1, 1, {});
  recording.AddTick(1, 1, {.cycles = 300, .instructions = 500, .run_delay_ns = 4'000'000});
  recording.writer->EndEpoch(1, 1);
  // Another epoch: counters begin anew, and instructions are counted no more.
  recording.AddSet(1, 2, "one", {"cycles"});
  recording.AddTick(1, 2, {}, 20);
  recording.AddTick(1, 2,
                    {.cycles = 7,
                     .run_delay_ns = 500'000,
                     .verdict = {.band = core::Band::kProductive, .starved = true}});
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_cycles_total" + kOne), "307");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_instructions_total" + kOne), "500");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_run_delay_seconds_total" + kOne), "0.0045");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_starved_seconds_total" + kOne), "0.1");
}

TEST(VcpuMetrics, WhatIsNotCountedIsAbsent) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one", {"task-clock"});
  for (int i = 0; i < 3; ++i) recording.AddTick(1, 1, {.run_delay_ns = std::nullopt});
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_cycles_total{"), "");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_instructions_total{"), "");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_run_delay_seconds_total{"), "");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_starved_seconds_total{"), "");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_starved_seconds_total{"), "");
  EXPECT_EQ(recording.ValueOf(Band("productive")), "0.2");
}

TEST(VcpuMetrics, CountsAreScaledToAllOfTheTime) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddTick(1, 1, {});
  // Never on the PMU: not known, rather than 0.
  recording.AddTick(1, 1, {.running_ns = 0, .cycles = 0, .instructions = 0});
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_cycles_total{"), "");
  recording.AddTick(1, 1, {.running_ns = kTick_ns / 4, .cycles = 50, .instructions = 30});
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_cycles_total{"), "200");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_instructions_total{"), "120");
}

TEST(VcpuMetrics, AThreadThatDidNotRunHasCountedNothing) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddTick(1, 1, {});
  recording.AddTick(1, 1, {.enabled_ns = 0, .running_ns = 0, .cycles = 0, .instructions = 0});
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_cycles_total{"), "0");
}

TEST(VcpuMetrics, IntervalsAcrossAGapCountNowhere) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddTick(1, 1, {}, 1);
  recording.AddTick(1, 1, {}, 2);
  recording.AddGap(v1::Gap::REASON_TICK_MISSED, 3, 5);
  recording.AddTick(1, 1, {}, 6);
  EXPECT_EQ(recording.ValueOf(Band("productive")), "0.1");
  EXPECT_EQ(recording.ValueOf("vcpulse_vcpu_guest_cycles_total{"), "1000");
  recording.AddTick(1, 1, {}, 7);
  EXPECT_EQ(recording.ValueOf(Band("productive")), "0.2");
  EXPECT_EQ(recording.ValueOf("vcpulse_gaps_total{reason=\"tick-missed\"}"), "1");
  EXPECT_EQ(recording.ValueOf("vcpulse_gap_ticks_total{reason=\"tick-missed\"}"), "3");
  EXPECT_EQ(recording.ValueOf("vcpulse_gaps_total{reason=\"read-failed\"}"), "0");
  EXPECT_EQ(recording.ValueOf("vcpulse_gaps_total{reason=\"queue-full\"}"), "0");
}

TEST(VcpuMetrics, ATickOfTwoVmsIsOne) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddSet(2, 1, "two");
  for (int i = 0; i < 3; ++i) {
    recording.AddTick(1, 1, {});
    recording.AddTick(2, 1, {});
  }
  EXPECT_EQ(recording.ValueOf("vcpulse_ticks_total"), "3");
  EXPECT_EQ(recording.ValueOf("vcpulse_tick_lateness_seconds_count"), "3");
  EXPECT_EQ(recording.ValueOf("vcpulse_vms"), "2");
}

TEST(VcpuMetrics, LatenessIsAHistogram) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  for (const int64_t late_ns : {int64_t{-5}, int64_t{50'000}, int64_t{50'001}, int64_t{3'000'000},
                                int64_t{2'000'000'000}}) {
    recording.AddTick(1, 1, {}, std::nullopt, late_ns);
  }
  const auto bucket = [&](const std::string& bound) {
    return recording.ValueOf("vcpulse_tick_lateness_seconds_bucket{le=\"" + bound + "\"}");
  };
  EXPECT_EQ(bucket("0.00005"), "2");
  EXPECT_EQ(bucket("0.0001"), "3");
  EXPECT_EQ(bucket("0.0025"), "3");
  EXPECT_EQ(bucket("0.005"), "4");
  EXPECT_EQ(bucket("1"), "4");
  EXPECT_EQ(bucket("+Inf"), "5");
  EXPECT_EQ(recording.ValueOf("vcpulse_tick_lateness_seconds_sum"), "2.003100001");
}

TEST(VcpuMetrics, TwoVmsOfOneNameAreToldApart) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddSet(2, 1, "one");
  recording.AddSet(3, 1, "");
  EXPECT_NE(recording.ValueOf("vcpulse_vm_info{vm=\"one\",pid=\"1001\"}"), "");
  EXPECT_NE(recording.ValueOf("vcpulse_vm_info{vm=\"one\",pid=\"1002\"}"), "");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_info{vm=\"1003\",pid=\"1003\"}"), "1");
}

TEST(VcpuMetrics, AVmThatEndedStaysForFiveMinutes) {
  constexpr int64_t kEnd_ns = 1'000'000'000;
  constexpr int64_t kFiveMinutes_ns = 300'000'000'000;
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  recording.AddSet(2, 1, "two");
  recording.EndVm(1, kEnd_ns);
  EXPECT_EQ(recording.ValueOf("vcpulse_vms"), "1");
  recording.FlushAt(kEnd_ns + kFiveMinutes_ns);
  EXPECT_EQ(recording.ValueOf(Band("halted")), "0");
  recording.FlushAt(kEnd_ns + kFiveMinutes_ns + 1);
  EXPECT_EQ(recording.ValueOf(Band("halted")), "");
  EXPECT_THAT(recording.Text(), HasSubstr("vm=\"two\""));
}

TEST(VcpuMetrics, APidThatIsUsedAgainIsOfTheNewVmAlone) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one", {"cycles"}, 1, 77);
  recording.EndVm(1, 0);
  recording.AddSet(2, 1, "one", {"cycles"}, 1, 77);
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_info{vm=\"one\",pid=\"77\"}"), "1");
  EXPECT_EQ(recording.ValueOf("vcpulse_vms"), "1");
}

TEST(VcpuMetrics, TicksThatFitNoSetAreHandedOnAndCountNowhere) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one");
  core::Sample sample;
  sample.vcpus.resize(2);
  for (sample.tick = 1; sample.tick < 4; ++sample.tick) {
    recording.writer->AddTick(1, 1, sample, {});
    recording.writer->AddTick(9, 1, sample, {});
  }
  EXPECT_THAT(recording.kept->ticks, SizeIs(6));
  EXPECT_EQ(recording.ValueOf(Band("productive")), "0");
}

TEST(VcpuMetrics, SaysWhatRuns) {
  EXPECT_EQ(CountedRecording().ValueOf("vcpulse_build_info{version=\"1.2.3\"}"), "1");
  EXPECT_EQ(CountedRecording().ValueOf("vcpulse_reader_info{reader=\"bpf\"}"), "1");
  EXPECT_EQ(
      CountedRecording().ValueOf(R"(vcpulse_agent_labels{agent="host-a",label_KEY="rack \"12\""})"),
      "1");
}

}  // namespace
}  // namespace vcpulse::prometheus
