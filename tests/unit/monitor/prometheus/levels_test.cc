// The sums of VMs and of the host: what each level has, and that none of them ever goes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/fixtures/made_statistics.h"
#include "tests/unit/monitor/prometheus/metrics_fixture.h"

namespace vcpulse::prometheus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSixMinutes_ns = 360'000'000'000;
constexpr const char* kHostCycles = "vcpulse_host_guest_cycles_total ";

std::string BandOfHost(const std::string& band) {
  return "vcpulse_host_band_seconds_total{band=\"" + band + "\"}";
}

// Two VMs of two vCPUs each, three ticks: 2 intervals of 0.1 s and 1,000 cycles per vCPU.
void RecordTwoVms(CountedRecording& recording) {
  recording.AddSet(1, 1, "one", {"cycles", "instructions"}, 2);
  recording.AddSet(2, 1, "two", {"cycles", "instructions"}, 2);
  for (int i = 0; i < 3; ++i) {
    recording.AddTick(1, 1, {});
    recording.AddTick(2, 1, {});
  }
}

TEST(MetricsLevels, AreKnownByTheirNames) {
  EXPECT_EQ(FindMetricsLevel("host"), MetricsLevel::kHost);
  EXPECT_EQ(FindMetricsLevel("vm"), MetricsLevel::kVm);
  EXPECT_EQ(FindMetricsLevel("vcpu"), MetricsLevel::kVcpu);
  EXPECT_EQ(FindMetricsLevel("VM"), std::nullopt);
  EXPECT_EQ(FindMetricsLevel(""), std::nullopt);
}

TEST(MetricsLevels, EachBringsThoseBeforeIt) {
  for (const MetricsLevel level : {MetricsLevel::kHost, MetricsLevel::kVm, MetricsLevel::kVcpu}) {
    CountedRecording recording(level);
    RecordTwoVms(recording);
    const bool has_vms = level >= MetricsLevel::kVm;
    const bool has_vcpus = level == MetricsLevel::kVcpu;
    EXPECT_EQ(recording.ValueOf(BandOfHost("productive")), "0.8");
    EXPECT_EQ(recording.ValueOf(kHostCycles), "8000");
    EXPECT_EQ(recording.ValueOf("vcpulse_vm_band_seconds_total{vm=\"one\",pid=\"1001\","
                                "band=\"productive\"}"),
              has_vms ? "0.4" : "");
    EXPECT_EQ(recording.ValueOf("vcpulse_vm_guest_cycles_total{vm=\"two\",pid=\"1002\"}"),
              has_vms ? "4000" : "");
    EXPECT_EQ(
        recording.ValueOf("vcpulse_vcpu_guest_cycles_total{vm=\"two\",vcpu=\"1\",pid=\"1002\"}"),
        has_vcpus ? "2000" : "");
    EXPECT_EQ(recording.Text().find("vcpu=\"") != std::string::npos, has_vcpus);
    EXPECT_EQ(recording.Text().find("vm=\"") != std::string::npos, has_vms);
    EXPECT_EQ(recording.ValueOf("vcpulse_vms"), "2");
    EXPECT_EQ(recording.ValueOf("vcpulse_ticks_total"), "3");
  }
}

TEST(MetricsLevels, TheHostKeepsWhatVmsDidThatAreForgotten) {
  CountedRecording recording;
  RecordTwoVms(recording);
  recording.EndVm(1, 0);
  recording.FlushAt(kSixMinutes_ns);
  EXPECT_THAT(recording.Text(), Not(HasSubstr("vm=\"one\"")));
  EXPECT_EQ(recording.ValueOf(BandOfHost("productive")), "0.8");
  EXPECT_EQ(recording.ValueOf(kHostCycles), "8000");
  recording.AddTick(2, 1, {});
  EXPECT_EQ(recording.ValueOf(kHostCycles), "10000");
}

TEST(MetricsLevels, TheHostKeepsWhatAVmDidWhosePidIsUsedAgain) {
  CountedRecording recording;
  RecordTwoVms(recording);
  recording.EndVm(1, 0);
  recording.AddSet(3, 1, "three", {"cycles"}, 1, 1001);
  EXPECT_THAT(recording.Text(), Not(HasSubstr("vm=\"one\"")));
  EXPECT_EQ(recording.ValueOf(kHostCycles), "8000");
  // A tick of the VM before it that comes late counts for the host alone.
  recording.AddTick(1, 1, {});
  EXPECT_EQ(recording.ValueOf(kHostCycles), "10000");
  EXPECT_THAT(recording.Text(), Not(HasSubstr("pid=\"0\"")));
}

TEST(MetricsLevels, VmsWithoutAPidAreKnownByTheirNames) {
  CountedRecording recording;
  v1::TimelineRecord record;
  for (const auto& [vm, name] : std::map<uint32_t, std::string>{{1, "a"}, {2, "b"}, {3, "b"}}) {
    record.mutable_vcpu_set()->set_vm(vm);
    record.mutable_vcpu_set()->set_epoch(1);
    record.mutable_vcpu_set()->mutable_instance()->set_name(name);
    recording.writer->Add(record, 0);
  }
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_info{vm=\"a\"}"), "1");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_info{vm=\"b\"}"), "1");
  EXPECT_EQ(recording.ValueOf("vcpulse_vms"), "2");
}

TEST(MetricsLevels, ASumIsAbsentWhereNothingOfItIsCounted) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one", {"task-clock"});
  EXPECT_EQ(recording.ValueOf("vcpulse_host_run_delay_seconds_total"), "");
  recording.AddTick(1, 1, {});
  recording.AddTick(1, 1, {.run_delay_ns = std::nullopt});
  EXPECT_EQ(recording.ValueOf(kHostCycles), "");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_guest_cycles_total{"), "");
  EXPECT_EQ(recording.ValueOf(BandOfHost("halted")), "0");
  EXPECT_EQ(recording.ValueOf("vcpulse_host_starved_seconds_total"), "");
  // Of two VMs one is counted: that is the sum.
  recording.AddSet(2, 1, "two");
  for (int i = 0; i < 2; ++i) recording.AddTick(2, 1, {});
  EXPECT_EQ(recording.ValueOf(kHostCycles), "1000");
}

TEST(MetricsLevels, VcpusAreCountedByWhatIsReadOfThem) {
  CountedRecording recording;
  recording.AddSet(1, 1, "one", {"cycles"}, 3);
  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set = recording.kept->VcpuSets().front();
  set.set_vm(2);
  set.mutable_instance()->set_pid(2);
  set.set_event_set("degraded");
  for (int i = 0; i < 4; ++i) set.add_unopened_vcpus();
  recording.writer->Add(record, 0);
  const auto of_host = [&](const std::string& state) {
    return recording.ValueOf("vcpulse_host_vcpus{state=\"" + state + "\"}");
  };
  EXPECT_EQ(of_host("counters"), "3");
  EXPECT_EQ(of_host("no-counters"), "3");
  EXPECT_EQ(of_host("not-opened"), "4");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_vcpus{vm=\"one\",pid=\"1001\",state=\"counters\"}"), "3");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_vcpus{vm=\"one\",pid=\"1001\",state=\"no-counters\"}"),
            "0");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_vcpus{vm=\"one\",pid=\"2\",state=\"not-opened\"}"), "4");
  recording.EndVm(2, 0);
  EXPECT_EQ(of_host("not-opened"), "0");
  EXPECT_EQ(recording.ValueOf("vcpulse_vm_vcpus{vm=\"one\",pid=\"2\""), "");
}

uint64_t SeriesIn(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  uint64_t series = 0;
  while (std::getline(lines, line)) series += line.starts_with('#') ? 0 : 1;
  return series;
}

// What an agent on x86 serves that has counters and KVM's statistics of so many VMs, and streams.
uint64_t SeriesOf(MetricsLevel level, uint32_t vms, uint32_t vcpus) {
  CountedRecording recording(level);
  for (uint32_t vm = 1; vm <= vms; ++vm) {
    recording.AddSet(vm, 1, "vm" + std::to_string(vm),
                     {"cycles", "instructions", "branches", "branch-misses"}, vcpus);
    for (int i = 0; i < 3; ++i) {
      v1::TimelineRecord record;
      *record.mutable_statistics() = fixtures::StatisticsOf(
          vm, 1, i + 1,
          {"migrations", "involuntary_switches", "exits", "halt_exits", "io_exits", "signal_exits",
           "hypercalls", "halt_poll_fail_ns"},
          std::vector<std::vector<uint64_t>>(vcpus, std::vector<uint64_t>(8)));
      recording.writer->Add(record, 0);
      recording.AddTick(vm, 1, {});
    }
  }
  return SeriesIn(recording.Text()) + SeriesIn(TextOf(FullUplinkStats()));
}

// The rows of docs/prometheus.md: VMs, vCPUs of each, and the series at each level.
TEST(MetricsLevels, TheDocsHaveTheNumberOfSeries) {
  std::ifstream docs(VCPULSE_PROMETHEUS_DOC);
  std::string line;
  int rows = 0;
  while (std::getline(docs, line)) {
    std::erase(line, ',');
    std::istringstream words(line);
    std::array<uint64_t, 5> cells{};
    bool is_row = true;
    for (uint64_t& cell : cells) {
      char bar = ' ';
      is_row = is_row && words >> bar >> cell && bar == '|';
    }
    if (!is_row) continue;
    ++rows;
    const auto vms = static_cast<uint32_t>(cells[0]);
    const auto vcpus = static_cast<uint32_t>(cells[1]);
    EXPECT_EQ(cells[2], SeriesOf(MetricsLevel::kHost, vms, vcpus)) << line;
    EXPECT_EQ(cells[3], SeriesOf(MetricsLevel::kVm, vms, vcpus)) << line;
    EXPECT_EQ(cells[4], SeriesOf(MetricsLevel::kVcpu, vms, vcpus)) << line;
  }
  EXPECT_EQ(rows, 7);
}

}  // namespace
}  // namespace vcpulse::prometheus
