// The life of real guests while `vcpulse record` watches them: hotplug and unplug, paused, reset,
// restarted. Whether the host has a PMU does not matter here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/proc_tree.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/recorded_timeline.h"
#include "tests/kvm/run_program.h"
#include "tests/kvm/tiny_vmm.h"

namespace vcpulse::kvm_tests {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1::LifeCycle;

// UNKNOWN, since it is paused, and not starved.
MATCHER(IsPaused, "") {
  return arg.band == core::Band::kUnknown && arg.rule == core::Rule::kPaused && !arg.starved;
}

// (TID, start time) of a thread as the kernel tells it now.
std::pair<pid_t, uint64_t> Thread(pid_t pid, pid_t tid) {
  for (const kvm::Thread& thread : kvm::ProcTree("/").Threads(pid)) {
    if (thread.tid == tid) return {tid, thread.stat.start_time_ticks};
  }
  return {tid, 0};
}

// (index, (TID, start time)) of the vCPUs of a set.
using Row = std::pair<int, std::pair<pid_t, uint64_t>>;
std::vector<Row> RowsOf(const v1::VcpuSet& set) {
  std::vector<Row> rows;
  for (const v1::Vcpu& vcpu : set.vcpus()) {
    rows.push_back({static_cast<int>(vcpu.index()),
                    {static_cast<pid_t>(vcpu.tid()), vcpu.start_time_ticks()}});
  }
  return rows;
}

class LifeCycleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    std::filesystem::create_directories(folder_.Path("out"));
  }

  static QemuGuest Start(const GuestOptions& options) {
    auto guest = QemuGuest::Start(options);
    if (!guest.ok()) throw std::runtime_error(guest.status().ToString());
    EXPECT_TRUE(guest->WaitForProgram(kLong));
    return *std::move(guest);
  }

  std::vector<std::string> Record(const std::vector<std::string>& more) const {
    std::vector<std::string> all = Vcpulse({"record", "-i", "50ms", "-o", output_});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  bool HasSets(size_t count) const {
    return Eventually([&] { return ReadSoFar(output_).sets.size() >= count; });
  }

  bool HasChanges(LifeCycle::Kind kind, size_t count) const {
    return Eventually([&] { return ReadSoFar(output_).Of(kind).size() >= count; });
  }

  // Ends the recording in order; what it wrote.
  Timeline Finish(RunningProgram& record) const {
    record.Signal(SIGINT);
    const Finished finished = record.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return ReadBack(output_);
  }

  // Paused and resumed once, in the ticks between these two and in no other.
  static void ExpectPausedOnce(const Timeline& timeline, const std::string& detail) {
    const auto paused = timeline.Of(LifeCycle::KIND_VM_PAUSED);
    const auto resumed = timeline.Of(LifeCycle::KIND_VM_RESUMED);
    ASSERT_THAT(paused, SizeIs(1));
    ASSERT_THAT(resumed, SizeIs(1));
    EXPECT_THAT(paused[0].detail(), HasSubstr(detail));
    size_t during = 0;
    size_t after = 0;
    for (const Timeline::Tick& tick : timeline.ticks) {
      const int64_t at_ns = tick.sample.wake_ns;
      if (at_ns >= paused[0].mono_ns() && at_ns < resumed[0].mono_ns()) {
        ++during;
        EXPECT_THAT(tick.verdicts, Each(IsPaused())) << "tick " << tick.sample.tick;
        continue;
      }
      after += at_ns > resumed[0].mono_ns() ? 1 : 0;
      for (const core::Verdict& verdict : tick.verdicts) {
        EXPECT_NE(verdict.rule, core::Rule::kPaused) << "tick " << tick.sample.tick;
        // The tick of the change itself may hold neither.
        if (verdict.band == core::Band::kHalted || verdict.band == core::Band::kNone) continue;
        EXPECT_LT(
            std::min(std::abs(at_ns - paused[0].mono_ns()), std::abs(at_ns - resumed[0].mono_ns())),
            200'000'000)
            << "tick " << tick.sample.tick << " " << core::ToString(verdict.rule);
      }
    }
    EXPECT_GE(during, 5u);
    EXPECT_GE(after, 3u);
    EXPECT_THAT(timeline.sets, SizeIs(1)) << "no new epoch";
  }

  fakes::ProcDir folder_;
  std::string output_ = folder_.Path("out/x.vpt");
};

TEST_F(LifeCycleTest, HotplugAndUnplugAreNewEpochs) {
  const QemuGuest guest = Start({.max_vcpus = 4,
                                 .name = "life-plug",
                                 .debug_threads = true,
                                 .qmp_unix = true,
                                 .program = GuestProgram::kEject,
                                 .more = {"-machine", "pc", "-cpu", "qemu64"}});
  RunningProgram record(Record({"--vm", "life-plug"}));
  ASSERT_TRUE(HasSets(1));
  const Row boot = {0, Thread(guest.pid(), QmpTids(guest.qmp_unix()).at(0))};
  std::vector<Row> plugged;
  for (const size_t round : {0, 1}) {
    Qmp(guest.qmp_unix(),
        R"({"execute":"device_add","arguments":{"driver":"qemu64-x86_64-cpu","id":"more",)"
        R"("socket-id":0,"core-id":2,"thread-id":0}})");
    const std::vector<pid_t> tids = QmpTids(guest.qmp_unix());
    ASSERT_THAT(tids, SizeIs(2));
    plugged.push_back({2, Thread(guest.pid(), tids[1])});
    ASSERT_TRUE(HasSets(2 + 2 * round));
    Qmp(guest.qmp_unix(), R"({"execute":"device_del","arguments":{"id":"more"}})");
    ASSERT_TRUE(Eventually([&] { return QmpTids(guest.qmp_unix()).size() == 1; }))
        << "the guest did not eject it";
    ASSERT_TRUE(HasSets(3 + 2 * round));
  }
  const Timeline timeline = Finish(record);
  ASSERT_THAT(timeline.sets, SizeIs(5));
  EXPECT_THAT(RowsOf(timeline.sets[0]), ElementsAre(boot));
  EXPECT_THAT(RowsOf(timeline.sets[1]), ElementsAre(boot, plugged[0]));
  EXPECT_THAT(RowsOf(timeline.sets[2]), ElementsAre(boot));
  EXPECT_THAT(RowsOf(timeline.sets[3]), ElementsAre(boot, plugged[1]));
  EXPECT_THAT(RowsOf(timeline.sets[4]), ElementsAre(boot));
  EXPECT_NE(plugged[0], plugged[1]);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(timeline.sets[i].epoch(), i + 1);
  const auto changes = timeline.Of(LifeCycle::KIND_VCPUS_CHANGED);
  ASSERT_THAT(changes, SizeIs(4));
  EXPECT_EQ(changes[0].detail(), absl::StrCat("found vCPU 2 (TID ", plugged[0].second.first, ")"));
  EXPECT_EQ(changes[1].detail(), absl::StrCat("lost vCPU 2 (TID ", plugged[0].second.first, ")"));
  EXPECT_TRUE(std::ranges::is_sorted(changes, {}, &LifeCycle::mono_ns));
  for (const Timeline::Tick& tick : timeline.ticks) {
    EXPECT_EQ(tick.sample.vcpus.size(), tick.epoch % 2 == 0 ? 2u : 1u);
  }
}

TEST_F(LifeCycleTest, AQmpStopIsPausedAndAHaltedGuestIsNot) {
  const QemuGuest guest =
      Start({.vcpus = 2, .name = "life-stop", .debug_threads = true, .qmp_unix = true});
  RunningProgram record(Record({"--vm", "life-stop"}));
  ASSERT_TRUE(HasSets(1));
  absl::SleepFor(absl::Seconds(1));  // halted
  Qmp(guest.qmp_unix(), R"({"execute":"stop"})");
  ASSERT_TRUE(HasChanges(LifeCycle::KIND_VM_PAUSED, 1));
  // Runs on the paused threads for a moment.
  Qmp(guest.qmp_unix(),
      R"({"execute":"human-monitor-command","arguments":{"command-line":"info registers -a"}})");
  absl::SleepFor(absl::Milliseconds(700));
  Qmp(guest.qmp_unix(), R"({"execute":"cont"})");
  ASSERT_TRUE(HasChanges(LifeCycle::KIND_VM_RESUMED, 1));
  absl::SleepFor(absl::Seconds(1));
  const Timeline timeline = Finish(record);
  ExpectPausedOnce(timeline, "QMP stop");
  EXPECT_THAT(timeline.sets[0].notes(), IsEmpty());
}

TEST_F(LifeCycleTest, ASigstopIsPaused) {
  const QemuGuest guest = Start({.vcpus = 2, .name = "life-sigstop", .debug_threads = true});
  RunningProgram record(Record({"--vm", "life-sigstop"}));
  ASSERT_TRUE(HasSets(1));
  absl::SleepFor(absl::Milliseconds(500));
  ::kill(guest.pid(), SIGSTOP);
  EXPECT_TRUE(HasChanges(LifeCycle::KIND_VM_PAUSED, 1));
  absl::SleepFor(absl::Milliseconds(500));
  ::kill(guest.pid(), SIGCONT);
  ASSERT_TRUE(HasChanges(LifeCycle::KIND_VM_RESUMED, 1));
  absl::SleepFor(absl::Milliseconds(500));
  ExpectPausedOnce(Finish(record), "SIGSTOP");
}

// A halted vCPU waits in QEMU there, like a paused one.
TEST_F(LifeCycleTest, WithTheIrqchipInQemuPausedCannotBeTold) {
  auto started = QemuGuest::Start({.vcpus = 2,
                                   .name = "life-irqchip",
                                   .debug_threads = true,
                                   .qmp_unix = true,
                                   .more = {"-machine", "pc,kernel_irqchip=off"}});
  if (started.status().message().find("does not support userspace APIC") !=
      absl::string_view::npos) {
    GTEST_SKIP() << "this KVM has no userspace APIC, which this QEMU wants";  // QEMU 10 asks for it
  }
  ASSERT_TRUE(started.ok()) << started.status();
  const QemuGuest guest = *std::move(started);
  ASSERT_TRUE(guest.WaitForProgram(kLong));
  RunningProgram record(Record({"--vm", "life-irqchip"}));
  ASSERT_TRUE(HasSets(1));
  absl::SleepFor(absl::Milliseconds(500));
  Qmp(guest.qmp_unix(), R"({"execute":"stop"})");
  absl::SleepFor(absl::Milliseconds(700));
  const Timeline timeline = Finish(record);
  EXPECT_THAT(timeline.Of(LifeCycle::KIND_VM_PAUSED), IsEmpty());
  ASSERT_THAT(timeline.sets[0].notes(), SizeIs(1));
  EXPECT_THAT(timeline.sets[0].notes(0), HasSubstr("kernel_irqchip=off"));
  EXPECT_EQ(timeline.ticks.back().verdicts[0].band, core::Band::kHalted);
}

TEST_F(LifeCycleTest, AResetIsNoChange) {
  const QemuGuest guest = Start({.vcpus = 2,
                                 .name = "life-reset",
                                 .debug_threads = true,
                                 .qmp_unix = true,
                                 .program = GuestProgram::kBusy});
  RunningProgram record(Record({"--vm", "life-reset"}));
  ASSERT_TRUE(HasSets(1));
  for (int i = 0; i < 3; ++i) {
    Qmp(guest.qmp_unix(), R"({"execute":"system_reset"})");
    absl::SleepFor(absl::Milliseconds(700));
  }
  EXPECT_EQ(guest.Starts(), 4);
  const Timeline timeline = Finish(record);
  EXPECT_THAT(timeline.sets, SizeIs(1));
  ASSERT_THAT(timeline.life_cycles, SizeIs(1));
  EXPECT_EQ(timeline.life_cycles[0].kind(), LifeCycle::KIND_VM_FOUND);
  // What it counts goes on rising after the last reset.
  const auto& ticks = timeline.ticks;
  ASSERT_GT(ticks.size(), 20u);
  EXPECT_GT(ticks.back().sample.vcpus[0].time_enabled_ns,
            ticks[ticks.size() - 8].sample.vcpus[0].time_enabled_ns);
}

// Waits for the name to come again, as often as it goes, and no longer than it was told.
TEST_F(LifeCycleTest, ARestartUnderTheSameNameIsAnotherInstance) {
  const GuestOptions options = {.name = "life-again", .debug_threads = true};
  QemuGuest guest = Start(options);
  const pid_t first = guest.pid();
  RunningProgram record(Record({"--vm", "life-again", "--rewait", "8s"}));
  ASSERT_TRUE(HasSets(1));
  guest.Kill();
  absl::SleepFor(absl::Milliseconds(500));
  guest = Start(options);
  const pid_t second = guest.pid();
  ASSERT_TRUE(HasSets(2));
  guest.Kill();
  const Finished finished = record.Wait();  // by itself
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("waiting up to 8s"));

  const Timeline timeline = ReadBack(output_);
  EXPECT_EQ(timeline.end_reason, "vm-end");
  ASSERT_THAT(timeline.sets, SizeIs(2));
  EXPECT_EQ(timeline.sets[1].vm(), 2u);
  EXPECT_EQ(timeline.sets[1].instance().pid(), static_cast<uint32_t>(second));
  const auto found = timeline.Of(LifeCycle::KIND_VM_FOUND);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[1].detail(),
              HasSubstr(absl::StrCat("again: 'life-again' ran as PID ", first, " before")));
  EXPECT_THAT(timeline.Of(LifeCycle::KIND_VM_ENDED), SizeIs(2));
}

TEST_F(LifeCycleTest, VcpuThreadsThatEndAndComeAgainInALivingVmm) {
  TinyVmm vmm;
  ASSERT_GT(vmm.pid(), 0);
  RunningProgram record(Record({"--pid", std::to_string(vmm.pid())}));
  ASSERT_TRUE(HasSets(1));
  const Row row0 = {0, Thread(vmm.pid(), vmm.Tid(0))};
  const Row row1 = {1, Thread(vmm.pid(), vmm.Tid(1))};
  vmm.EndThread(0);
  ASSERT_TRUE(HasSets(2));
  vmm.EndThread(1);
  ASSERT_TRUE(HasChanges(LifeCycle::KIND_VCPUS_CHANGED, 2));
  vmm.BeginThread(1);
  const Row row1_again = {1, Thread(vmm.pid(), vmm.Tid(1))};
  ASSERT_TRUE(HasSets(3));
  const Timeline timeline = Finish(record);
  ASSERT_THAT(timeline.sets, SizeIs(3));
  EXPECT_THAT(RowsOf(timeline.sets[0]), ElementsAre(row0, row1));
  EXPECT_THAT(RowsOf(timeline.sets[1]), ElementsAre(row1));
  EXPECT_THAT(RowsOf(timeline.sets[2]), ElementsAre(row1_again));
  const auto changes = timeline.Of(LifeCycle::KIND_VCPUS_CHANGED);
  ASSERT_THAT(changes, SizeIs(3));
  EXPECT_THAT(changes[1].detail(), HasSubstr("none is left"));
  EXPECT_THAT(timeline.Of(LifeCycle::KIND_VM_ENDED), IsEmpty());
}

TEST_F(LifeCycleTest, ARecordingBeginsWhenItStartsNotWithItsFirstVm) {
  const int64_t before_ns = MonotonicNow_ns();
  RunningProgram record(Record({"--all"}));
  absl::SleepFor(absl::Seconds(1));
  const QemuGuest guest = Start({.name = "life-late", .debug_threads = true});
  absl::SleepFor(absl::Seconds(2));
  Finish(record);
  const auto report =
      boost::json::parse(RunProgram(Vcpulse({"report", "--json", output_})).out).as_object();
  const int64_t start_ns = report.at("session").at("start_mono_ns").as_int64();
  EXPECT_GE(start_ns, before_ns);
  EXPECT_LE(start_ns, before_ns + kNsPerSecond / 2);
}

// It might be starting: what becomes of it is only known at its end, or the recording's.
TEST_F(LifeCycleTest, AVmWhoseVcpuThreadsNeverShowedIsSkippedUnlessItHasEnded) {
  const auto is_recorded = [this](const std::string& name) {
    return Eventually([&] {
      return std::ranges::any_of(ReadSoFar(output_).sets, [&](const v1::VcpuSet& set) {
        return set.instance().name() == name;
      });
    });
  };
  for (const bool ends : {false, true}) {
    auto vmm = std::make_unique<TinyVmm>();
    ASSERT_GT(vmm->pid(), 0);
    const auto pid = static_cast<uint32_t>(vmm->pid());
    for (const int vcpu : {0, 1}) vmm->EndThread(vcpu);
    const QemuGuest first = Start({.name = "life-first", .debug_threads = true});
    RunningProgram record(Record({"--all"}));
    ASSERT_TRUE(is_recorded("life-first"));
    if (ends) vmm.reset();
    // The rescan that finds this one has seen the end of the other.
    const QemuGuest second = Start({.name = "life-second", .debug_threads = true});
    ASSERT_TRUE(is_recorded("life-second"));
    const std::vector<LifeCycle> skipped = Finish(record).Of(LifeCycle::KIND_VM_SKIPPED);
    const auto found = std::ranges::find(
        skipped, pid, [](const LifeCycle& change) { return change.instance().pid(); });
    EXPECT_EQ(found == skipped.end(), ends);
    if (!ends && found != skipped.end()) {
      EXPECT_EQ(found->skip_reason(), LifeCycle::SKIP_REASON_NOT_OPENED);
    }
    std::filesystem::remove(output_);
  }
}

}  // namespace
}  // namespace vcpulse::kvm_tests
