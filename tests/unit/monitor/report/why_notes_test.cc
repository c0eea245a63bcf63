#include "monitor/report/why_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "monitor/report/json_report.h"
#include "monitor/report/vcpu_table.h"
#include "monitor/report/why_json.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/made_interval.h"

namespace vcpulse::report {
namespace {

using metric::Metric;
using metric::Statistic;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A vCPU with so many of one statistic in a second.
VcpuSummary With(Statistic statistic, uint64_t count) {
  metric::StatisticsDelta read;
  read.progress[static_cast<size_t>(statistic)] = {.count = count, .time_ns = 1'000'000'000};
  VcpuSummary vcpu;
  metric::IntervalMaker().With({}, [&](metric::Interval interval) {
    interval.statistics = &read;
    vcpu.totals.Add(interval);
  });
  return vcpu;
}

std::vector<std::string_view> NamesOf(const VcpuSummary& vcpu) {
  std::vector<std::string_view> names;
  for (const Cause* const cause : CausesOf(vcpu)) names.push_back(cause->name);
  return names;
}

TEST(Causes, BeginAtTheirThreshold) {
  EXPECT_THAT(NamesOf(With(Statistic::kHaltExits, 10'000)), ElementsAre("wake-up-storm"));
  EXPECT_THAT(NamesOf(With(Statistic::kHaltExits, 9'999)), IsEmpty());
  EXPECT_THAT(NamesOf(With(Statistic::kIoExits, 5'000)), ElementsAre("device-exits"));
  EXPECT_THAT(NamesOf(With(Statistic::kIoExits, 4'999)), IsEmpty());
  EXPECT_THAT(NamesOf(With(Statistic::kHaltPollNs, 100'000'000)), ElementsAre("halt-polling"));
  EXPECT_THAT(NamesOf(With(Statistic::kHaltPollNs, 99'999'999)), IsEmpty());
  EXPECT_THAT(NamesOf(With(Statistic::kMigrations, 100)), ElementsAre("moving"));
  EXPECT_THAT(NamesOf(With(Statistic::kMigrations, 99)), IsEmpty());
  EXPECT_THAT(NamesOf(VcpuSummary()), IsEmpty());  // not read: nothing is known
}

TEST(WhyNotes, AreALinePerVcpu) {
  VmSummary vm;
  vm.vcpus[0] = With(Statistic::kHaltExits, 41'000);
  vm.vcpus[1] = With(Statistic::kHaltExits, 10);
  vm.vcpus[2] = With(Statistic::kHaltPollNs, 610'000'000);
  EXPECT_EQ(
      WhyNotes(vm, std::nullopt),
      "  why, vCPU 0: wake-up-storm: 41000.0 halt-exits/s, it is woken and halts again all the "
      "time\n"
      "  why, vCPU 2: halt-polling: 610.0 halt-poll-ms/s, busy for the host that long, idle in the "
      "guest\n");
  EXPECT_EQ(WhyNotes(vm, 1), "");
  EXPECT_THAT(WhyNotes(vm, 2), HasSubstr("vCPU 2"));
}

TEST(WhyNotes, OfManyVcpusTheFirstAreTold) {
  VmSummary vm;
  for (uint32_t i = 0; i < 9; ++i) vm.vcpus[i] = With(Statistic::kIoExits, 5'000);
  const std::string notes = WhyNotes(vm, std::nullopt);
  EXPECT_THAT(notes, HasSubstr("why, vCPU 7: device-exits"));
  EXPECT_THAT(notes, testing::Not(HasSubstr("vCPU 8")));
  EXPECT_THAT(notes, HasSubstr("of more vCPUs in --json"));
}

// A VM with vCPUs 0 and 1 of which 1 was sampled.
class HotNotesTest : public ::testing::Test {
 protected:
  void Add(const std::string& refused) {
    v1::VcpuSet set;
    set.set_vm(1);
    set.set_epoch(1);
    set.mutable_instance()->set_name("web");
    for (uint32_t index : {0U, 1U}) set.add_vcpus()->set_index(index);
    EXPECT_TRUE(summary_.Add({.sequence = 1, .record = set}).ok());
    v1::HotAddresses hot;
    hot.set_vm(1);
    hot.set_epoch(1);
    hot.set_vcpu_index(1);
    hot.set_trigger(v1::HotAddresses::TRIGGER_SPINNING);
    hot.set_refused(refused);
    if (refused.empty()) hot.set_source("cycles");
    for (const auto& [address, samples] : {std::pair(0x1000, 60), std::pair(0x2000, 40)}) {
      hot.add_addresses(static_cast<uint64_t>(address));
      hot.add_samples(static_cast<uint64_t>(samples));
      hot.add_modes(v1::GUEST_MODE_KERNEL);
    }
    EXPECT_TRUE(summary_.Add({.sequence = 2, .record = hot}).ok());
  }
  std::string Notes(std::optional<uint32_t> vcpu = std::nullopt) {
    return HotNotes(report_, *summary_.vms().begin(), vcpu);
  }

  Summary summary_;
  Report report_{.summary = summary_};
};

TEST_F(HotNotesTest, NameTheCode) {
  Add("");
  EXPECT_EQ(Notes(),
            "  hot, vCPU 1: 60.0 % 0x1000, 40.0 % 0x2000 of 100 samples by cycles, 1 window after "
            "spinning\n");
  report_.symbols.own["web"].symbols =
      *hotspots::Symbols::Parse("1000 T poll_idle\n2000 T x\n3000 T y\n");
  EXPECT_EQ(Notes(1),
            "  hot, vCPU 1: 60.0 % poll_idle, 40.0 % x of 100 samples by cycles, 1 window after "
            "spinning; idle\n"
            "               polling: 60.0 % after spinning in the guest's idle loop\n");
  EXPECT_EQ(Notes(0), "");
}

TEST(HostCpuNotes, TellWhereTheThreadWas) {
  VmSummary vm;
  for (int64_t second = 0; second < 8; ++second) {
    vm.vcpus[3].host_cpus.Add(second * 1'000'000'000, second == 5 ? 7 : 2);
  }
  vm.vcpus[4] = {};
  EXPECT_EQ(HostCpuNotes(vm, 3),
            "  host CPUs, vCPU 3: CPU 2 87.5 %, CPU 7 12.5 % of 8 readings, of which 2 found it on "
            "another CPU\n                     than the one before\n");
  vm.vcpus[5].host_cpus.Add(0, 1);
  EXPECT_EQ(HostCpuNotes(vm, 5), "  host CPUs, vCPU 5: CPU 1 100.0 % of 1 reading\n");
  EXPECT_EQ(HostCpuNotes(vm, 4), "");
  EXPECT_EQ(HostCpuNotes(vm, std::nullopt), "");
}

TEST(HostCpus, AreInTheJson) {
  check::DrawnRecording recording;
  recording.Draw("PP");
  for (const uint32_t cpu : {4, 4, 4, 6}) {
    recording.OnHostCpus(1, 1, {cpu});
    recording.Draw("PPPP");
  }
  Summary summary;
  ASSERT_TRUE(ReadPart(recording.Finish(), {}, summary).ok());
  const auto json = boost::json::parse(RenderJson({.summary = summary}));
  const auto& vcpu = json.at("vms").at(0).at("vcpus").at(0);
  EXPECT_EQ(vcpu.at("host_cpus"), (boost::json::array{4, 6}));
  EXPECT_EQ(vcpu.at("host_cpu_shares"), (boost::json::object{{"4", 0.75}, {"6", 0.25}}));
  ASSERT_EQ(vcpu.at("host_cpu_moves").as_array().size(), 2u);
  EXPECT_EQ(vcpu.at("host_cpu_moves").at(1).at("cpu"), 6);
  const double apart = vcpu.at("host_cpu_moves").at(1).at("t_s").to_number<double>() -
                       vcpu.at("host_cpu_moves").at(0).at("t_s").to_number<double>();
  EXPECT_NEAR(apart, 12 * 1e-9 * static_cast<double>(check::kDrawnTick_ns), 1e-6);
  EXPECT_EQ(vcpu.at("host_cpu_moves_omitted"), 0);
}

TEST(HostCpus, MovesAreBounded) {
  HostCpus cpus;
  EXPECT_EQ(cpus.AllReadings(), 0u);
  for (uint32_t i = 0; i < 20'000; ++i) cpus.Add(i, i % 10'000);
  EXPECT_EQ(cpus.AllReadings(), 20'000u);
  EXPECT_EQ(cpus.readings().size(), HostCpus::kMostCpus);
  EXPECT_EQ(cpus.readings().at(5), 2u);
  EXPECT_EQ(cpus.moves().size(), HostCpus::kMostMoves);
  EXPECT_EQ(cpus.moves_omitted(), 20'000 - HostCpus::kMostMoves);
  EXPECT_EQ(cpus.moves()[7].at_ns, 7);
}

// A window is of the phase that has its middle, wherever it was closed.
TEST(HotWindows, AreOfThePhaseOfTheirMiddle) {
  check::DrawnRecording recording;
  recording.Draw("PPPP");
  recording.Mark("load", recording.now_ns());
  recording.Draw("PPPPPPPPPP");
  recording.Mark("rest", recording.now_ns());
  recording.Draw("P");
  v1::HotAddresses window;
  window.set_source("cycles");
  window.set_begin_mono_ns(recording.now_ns() - 4 * check::kDrawnTick_ns);
  recording.EndWindow(window);
  recording.Draw("PPPPPPPP");
  const std::string path = recording.Finish();
  const auto windows_in = [&path](const std::string& phase) {
    Summary summary;
    EXPECT_TRUE(ReadPart(path, {.phase = phase}, summary).ok());
    return summary.hotspots().All({}).size();
  };
  EXPECT_EQ(windows_in("load"), 1u);
  EXPECT_EQ(windows_in("rest"), 0u);
}

TEST_F(HotNotesTest, SayWhyThereIsNone) {
  Add("no source opens");
  EXPECT_EQ(Notes(), "  hot addresses were not sampled: no source opens\n");
}

TEST(MissingStatisticsNote, SaysWhyAColumnIsEmpty) {
  Summary summary;
  const Report report{.summary = summary};
  VmSummary vm;
  const std::vector<Metric> kvm = {Metric::kMigrations, Metric::kExits};
  const std::vector<Metric> scheduler = {Metric::kMigrations, Metric::kIpc};
  EXPECT_THAT(MissingStatisticsNote(report, vm, kvm), HasSubstr("were not recorded"));
  EXPECT_THAT(MissingStatisticsNote(report, vm, scheduler), HasSubstr("were not recorded"));
  EXPECT_EQ(MissingStatisticsNote(report, vm, {}), "");
  vm.kvm_missing = "";
  EXPECT_EQ(MissingStatisticsNote(report, vm, kvm), "");
  vm.kvm_missing = "no descriptor";
  EXPECT_EQ(MissingStatisticsNote(report, vm, kvm),
            "  KVM's counts were not read: no descriptor\n");
  EXPECT_EQ(MissingStatisticsNote(report, vm, scheduler), "");
  const std::vector<Metric> numa = {Metric::kNumaRemote};
  v1::Session session;
  EXPECT_TRUE(summary.Add({.sequence = 1, .record = session}).ok());
  EXPECT_THAT(MissingStatisticsNote(report, vm, numa), HasSubstr("one NUMA node"));
  const std::vector<Metric> smt = {Metric::kSmtShared};
  EXPECT_THAT(MissingStatisticsNote(report, vm, smt), HasSubstr("no core of the host has two"));
}

// Twenty readings of a vCPU at which it ran, at 15 of which vCPU 3 of VM 2 ran beside it.
VcpuSummary WithNeighbours() {
  VcpuSummary vcpu;
  for (int i = 0; i < 20; ++i) {
    metric::StatisticsDelta read;
    read.neighbours.emplace();
    if (i >= 5) read.neighbours->push_back({.vm = 2, .index = 3});
    vcpu.smt.Add(*read.neighbours);
    metric::IntervalMaker().With({}, [&](metric::Interval interval) {
      interval.statistics = &read;
      vcpu.totals.Add(interval);
    });
  }
  return vcpu;
}

TEST(SmtNotes, NameWhoRanOnTheOtherThread) {
  v1::VcpuSet set;
  set.set_vm(2);
  set.mutable_instance()->set_pid(77);
  set.mutable_instance()->set_name("db");
  set.add_vcpus()->set_index(3);
  Summary summary;
  EXPECT_TRUE(summary.Add({.sequence = 1, .record = set}).ok());
  const Report report{.summary = summary};
  VmSummary vm;
  vm.vcpus[0] = WithNeighbours();
  vm.vcpus[1].smt.Add({});
  EXPECT_EQ(SmtNotes(report, vm, 0), "  on another thread of its core, vCPU 0: vCPU 3 of VM " +
                                         VmLabel(2, summary.vms().at(2)) +
                                         " 75.0 % of 20 readings at which it ran\n");
  EXPECT_THAT(SmtNotes(report, vm, 1), HasSubstr("no vCPU of 1 reading"));
  EXPECT_EQ(SmtNotes(report, vm, std::nullopt), "");
  EXPECT_EQ(SmtNotes(report, vm, 2), "");
  boost::json::object json;
  AddWhy(report, 1, vm.vcpus[0], json);
  const auto& neighbour = json.at("smt_neighbours").at(0);
  EXPECT_EQ(neighbour.at("vm"), "db");
  EXPECT_EQ(neighbour.at("vcpu"), 3);
  EXPECT_EQ(neighbour.at("share"), 0.75);
  AddWhy(report, 1, VcpuSummary(), json);
  EXPECT_TRUE(json.at("smt_neighbours").is_null());
}

TEST(Causes, ANeighbourIsOneFromHalfOfTheReadingsOn) {
  EXPECT_THAT(NamesOf(WithNeighbours()), ElementsAre("smt-shared"));
}

}  // namespace
}  // namespace vcpulse::report
