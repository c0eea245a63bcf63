#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/report/why_notes.h"

namespace vcpulse::report {
namespace {

using ::testing::ElementsAre;

v1::VcpuSet SetOf(uint32_t vm, const std::string& name, uint32_t first_tid) {
  v1::VcpuSet set;
  set.set_vm(vm);
  set.set_epoch(1);
  set.mutable_instance()->set_name(name);
  for (uint32_t index : {0U, 1U}) {
    v1::Vcpu& vcpu = *set.add_vcpus();
    vcpu.set_index(index);
    vcpu.set_tid(first_tid + index);
  }
  return set;
}

// Of vCPU 1 of VM 1.
v1::Competitors WindowOf(uint64_t unseen_ms) {
  v1::Competitors window;
  window.set_vm(1);
  window.set_epoch(1);
  window.set_vcpu_index(1);
  window.set_unattributed_ns(unseen_ms * 1'000'000);
  window.set_waited_ns(window.unattributed_ns());
  window.add_cpus(3);
  window.set_run_delay_ns(0);
  return window;
}

void Add(v1::Competitors& window, const v1::Competitor& who, uint64_t ms) {
  *window.add_competitors() = who;
  window.mutable_competitors(window.competitors_size() - 1)->set_ns(ms * 1'000'000);
  window.set_waited_ns(window.waited_ns() + ms * 1'000'000);
}

v1::Competitor Who(uint32_t tid, uint32_t pid, const std::string& thread,
                   const std::string& process = "", const std::string& vm = "") {
  v1::Competitor who;
  who.set_tid(tid);
  who.set_pid(pid);
  who.set_thread_name(thread);
  who.set_process_name(process);
  who.set_vm_name(vm);
  return who;
}

class RecordedCompetitorsTest : public ::testing::Test {
 protected:
  RecordedCompetitorsTest() {
    Take(SetOf(1, "web", 100));
    Take(SetOf(2, "db", 200));
  }

  template <typename Record>
  void Take(const Record& record) {
    EXPECT_TRUE(summary_.Add({.sequence = ++sequence_, .record = record}).ok());
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    const reading::CompetitorTotals totals = *summary_.competitors().Of(1, 1);
    for (const reading::CompetitorTotal& one : totals.competitors) {
      labels.push_back(one.label);
    }
    return labels;
  }
  std::string Notes(std::optional<uint32_t> vcpu = std::nullopt) const {
    return CompetitorNotes({.summary = summary_}, *summary_.vms().begin(), vcpu);
  }

  Summary summary_;
  uint64_t sequence_ = 0;
};

TEST_F(RecordedCompetitorsTest, AreNamedAsPeopleKnowThem) {
  v1::Competitors window = WindowOf(0);
  Add(window, Who(201, 20, "CPU 1/KVM", "qemu", "db"), 60);         // recorded
  Add(window, Who(300, 30, "CPU 0/KVM", "qemu", "elsewhere"), 50);  // not recorded
  Add(window, Who(77, 77, "kworker/3:1"), 40);
  Add(window, Who(412, 400, "worker", "postgres"), 30);
  window.mutable_competitors(2)->set_kernel_thread(true);
  Add(window, Who(0, 0, "swapper/3"), 20);
  Add(window, Who(500, 0, "gone"), 10);
  Add(window, Who(501, 0, ""), 5);
  Take(window);
  EXPECT_THAT(Labels(), ElementsAre("vCPU 1 of db", "CPU 0/KVM of VM elsewhere (PID 30)",
                                    "kernel thread kworker/3:1 [77]", "worker of postgres [400]",
                                    "nobody, an idle CPU", "gone", "a thread without a name"));
  const reading::CompetitorTotals totals = *summary_.competitors().Of(1, 1);
  using Kind = reading::CompetitorTotal::Kind;
  std::vector<Kind> kinds;
  for (const auto& one : totals.competitors) kinds.push_back(one.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::kVcpu, Kind::kVm, Kind::kKernel, Kind::kProcess, Kind::kIdle,
                                 Kind::kProcess, Kind::kProcess));
  EXPECT_EQ(totals.competitors[0].vm, "db");
  EXPECT_EQ(totals.competitors[0].vcpu, 1u);
  EXPECT_EQ(totals.competitors[1].vm, "elsewhere");
  EXPECT_EQ(totals.competitors[1].vcpu, std::nullopt);
  EXPECT_FALSE(summary_.competitors().Of(1, 0));
  EXPECT_FALSE(summary_.competitors().Of(2, 1));
}

// The many short-lived threads of a build are one competitor; its processes are then several.
TEST_F(RecordedCompetitorsTest, OfTheSameNamesAreOne) {
  for (const uint32_t pid : {40U, 41U}) {
    v1::Competitors window = WindowOf(10);
    Add(window, Who(pid, pid, "cc1"), 30);
    Add(window, Who(pid + 100, 50, "make"), 5);
    Take(window);
  }
  const reading::CompetitorTotals totals = *summary_.competitors().Of(1, 1);
  EXPECT_EQ(totals.windows, 2u);
  EXPECT_EQ(totals.waited_ns, 90'000'000u);
  EXPECT_EQ(totals.unattributed_ns, 20'000'000u);
  EXPECT_EQ(totals.further_ns, 0u);
  EXPECT_THAT(Labels(), ElementsAre("cc1", "make [50]"));
  EXPECT_EQ(totals.competitors[0].ns, 60'000'000u);
}

TEST_F(RecordedCompetitorsTest, NotesTellTheLargest) {
  v1::Competitors window = WindowOf(20);
  window.set_waited_ns(window.waited_ns() + 30'000'000);  // of others than the 16 that are kept
  Add(window, Who(200, 20, "CPU 0/KVM"), 100);
  Add(window, Who(1, 1, "a\x1b"), 30);
  Add(window, Who(2, 2, "b"), 20);
  Add(window, Who(3, 3, "c"), 10);
  window.add_cpus(1);
  Take(window);
  EXPECT_EQ(
      Notes(),
      "  competitors, vCPU 1: 47.6 % vCPU 0 of db, 14.3 % a? [1], 9.5 % b [2], 19.0 % "
      "others, 9.5 %\n"
      "                       unattributed of the 210 ms that it waited (1 window, CPU 1, 3)\n");
  EXPECT_EQ(Notes(0), "");
  EXPECT_EQ(Notes(1), Notes());
}

// What the scheduler booked is said where the account is much less.
TEST_F(RecordedCompetitorsTest, TheSchedulersOwnCountIsHeldAgainstIt) {
  v1::Competitors window = WindowOf(0);
  Add(window, Who(3, 3, "c"), 100);
  window.set_run_delay_ns(120'000'000);
  Take(window);
  EXPECT_THAT(Notes(), ::testing::Not(::testing::HasSubstr("scheduler")));
  window.set_run_delay_ns(130'000'000);
  Take(window);
  EXPECT_THAT(Notes(), ::testing::EndsWith("it waited 250\n                       ms by the "
                                           "scheduler's count\n"));
  window.clear_run_delay_ns();
  Take(window);
  EXPECT_FALSE(summary_.competitors().Of(1, 1)->run_delay_ns);
}

// A window of a vCPU that no set has is a damaged file's.
TEST_F(RecordedCompetitorsTest, UnknownVcpusArePassedOver) {
  v1::Competitors window = WindowOf(1);
  window.set_vcpu_index(9);
  Take(window);
  EXPECT_FALSE(summary_.competitors().Of(1, 9));
}

TEST_F(RecordedCompetitorsTest, AWindowMaySeeNoWaiting) {
  Take(WindowOf(0));
  EXPECT_EQ(Notes(), "  competitors, vCPU 1: no waiting was seen in 1 window\n");
}

TEST_F(RecordedCompetitorsTest, ARefusalIsTold) {
  v1::Competitors refusal = WindowOf(0);
  refusal.set_refused("no tracefs");
  Take(refusal);
  EXPECT_FALSE(summary_.competitors().Of(1, 1));
  EXPECT_EQ(Notes(), "  competitors were not watched: vCPU 1: no tracefs\n");
  EXPECT_EQ(summary_.competitors().Refused(2), std::nullopt);
  Take(WindowOf(5));
  EXPECT_EQ(summary_.competitors().Refused(1), std::nullopt);
}

// Shares are those of a whole, whatever a damaged file says; memory is bounded.
TEST_F(RecordedCompetitorsTest, ADamagedFileIsBounded) {
  for (uint32_t i = 1; i <= 200; ++i) {
    v1::Competitors window = WindowOf(0);
    Add(window, Who(10'000 + i, i, "thread" + std::to_string(i)), 1);
    window.mutable_competitors(0)->set_ns(UINT64_MAX);
    window.set_waited_ns(7);
    window.set_unattributed_ns(UINT64_MAX);
    window.add_cpus(i);
    Take(window);
  }
  const reading::CompetitorTotals totals = *summary_.competitors().Of(1, 1);
  EXPECT_EQ(totals.competitors.size(), 64u);
  uint64_t sum = totals.unattributed_ns + totals.further_ns;
  for (const reading::CompetitorTotal& one : totals.competitors) sum += one.ns;
  EXPECT_EQ(sum, totals.waited_ns);
}

}  // namespace
}  // namespace vcpulse::report
