// What the scheduler and KVM say of real vCPUs, held against what they tell others.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"
#include "kvm/discovery/discovery.h"
#include "kvm/microguest/machine.h"
#include "kvm/proc_tree.h"
#include "kvm/statistics/vm_statistics.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/recorded_timeline.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

using kvm::SourceStatistics;

std::string KernelRelease() {
  utsname name{};
  uname(&name);
  return name.release;
}

const SourceStatistics* Find(const std::vector<SourceStatistics>& all, std::string_view source) {
  const auto found = std::ranges::find(all, source, &SourceStatistics::source);
  return found == all.end() ? nullptr : &*found;
}

uint64_t ValueOf(const SourceStatistics& source, size_t vcpu, std::string_view name) {
  const auto found = std::ranges::find(source.names, name);
  return source.vcpus.at(vcpu).values.at(static_cast<size_t>(found - source.names.begin()));
}

class StatisticsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
};

// The values of one descriptor of this process, by a walk over its bytes that knows nothing of
// ours.
std::map<std::string, uint64_t> OwnReading(int fd) {
  std::vector<char> file(1 << 16);
  const ssize_t got = pread(fd, file.data(), file.size(), 0);
  EXPECT_GT(got, 24);
  const auto word = [&file](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, file.data() + at, sizeof(value));
    return value;
  };
  const uint32_t name_size = word(4);
  std::map<std::string, uint64_t> values;
  for (uint32_t i = 0; i < word(8); ++i) {
    const size_t at = word(16) + i * (16 + name_size);
    std::memcpy(&values[file.data() + at + 16], file.data() + word(20) + word(at + 8), 8);
  }
  return values;
}

// A VMM that keeps such descriptors, as QEMU from 8.1 on: here this process is one.
TEST_F(StatisticsTest, TheVmmsDescriptorsGiveWhatKvmCounted) {
  if (!kvm::StatsDescriptorsHoldTheirVm(KernelRelease())) GTEST_SKIP() << "kernel before 6.5";
  namespace microguest = kvm::microguest;
  const auto machine = microguest::Machine::Create(2);
  ASSERT_TRUE(machine.ok()) << machine.status();
  const auto vm = kvm::Discovery("/").FindByPid(getpid());
  ASSERT_TRUE(vm.ok()) << vm.status();
  ASSERT_EQ(vm->vcpus.size(), 2u);
  const auto found = kvm::ProcTree("/").VcpuStatsDescriptors(getpid());
  ASSERT_EQ(found.size(), 2u);

  kvm::VmStatistics statistics("/", *vm, KernelRelease(), MonotonicNow_ns);
  EXPECT_EQ(statistics.kvm_refused(), "");
  for (const uint64_t turns : {1, 1000}) {
    (*machine)->Start(1, *microguest::FindProgram("halt"), turns);
    absl::SleepFor(absl::Milliseconds(50));
    std::vector<std::map<std::string, uint64_t>> before;
    for (const auto& descriptor : found) before.push_back(OwnReading(descriptor.fd));
    const auto all = statistics.Read();
    const SourceStatistics* const kvm = Find(all, "kvm-descriptor");
    ASSERT_NE(kvm, nullptr);
    ASSERT_EQ(kvm->vcpus.size(), 2u);
    EXPECT_GE(kvm->names.size(), 8u);
    for (size_t i = 0; i < 2; ++i) {
      const auto after = OwnReading(found[i].fd);
      for (const std::string& name : kvm->names) {
        EXPECT_GE(ValueOf(*kvm, i, name), before[i].at(name)) << i << " " << name;
        EXPECT_LE(ValueOf(*kvm, i, name), after.at(name)) << i << " " << name;
      }
    }
    EXPECT_GT(ValueOf(*kvm, 1, "exits"), 0u);
  }
}

// A QEMU from 7.1 on without them: what it tells itself, before and after.
TEST_F(StatisticsTest, QmpGivesWhatQemuTells) {
  const auto guest =
      QemuGuest::Start({.vcpus = 2, .qmp_unix = true, .program = GuestProgram::kBusy});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ASSERT_TRUE(guest->WaitForProgram(kLong));
  const auto told = [&] {
    const std::string answer =
        Qmp(guest->qmp_unix(), R"({"execute": "query-stats", "arguments": {"target": "vcpu"}})");
    const boost::json::value answered = boost::json::parse(answer);
    std::vector<std::map<std::string, uint64_t>> vcpus;
    for (const auto& vcpu : answered.at("return").as_array()) {
      vcpus.emplace_back();
      for (const auto& stat : vcpu.at("stats").as_array()) {
        const boost::json::value& value = stat.at("value");
        if (!value.is_number()) continue;  // a histogram
        vcpus.back()[stat.at("name").as_string().c_str()] = value.to_number<uint64_t>();
      }
    }
    return vcpus;
  };
  const auto vm = kvm::Discovery("/").FindByQmp(guest->qmp_unix(), kLong);
  ASSERT_TRUE(vm.ok()) << vm.status();
  kvm::VmStatistics statistics("/", *vm, KernelRelease(), MonotonicNow_ns);
  const auto before = told();
  const auto all = statistics.Read();
  const auto after = told();
  const SourceStatistics* const kvm = Find(all, "kvm-qmp");
  ASSERT_NE(kvm, nullptr) << statistics.kvm_refused();
  ASSERT_EQ(kvm->vcpus.size(), 2u);
  ASSERT_EQ(before.size(), 2u);
  // QEMU lists them as it likes: both vCPUs lie within some one of its lists, each its own.
  for (const std::string& name : kvm->names) {
    std::vector<uint64_t> low{before[0].at(name), before[1].at(name)};
    std::vector<uint64_t> high{after[0].at(name), after[1].at(name)};
    std::vector<uint64_t> ours{ValueOf(*kvm, 0, name), ValueOf(*kvm, 1, name)};
    for (auto* values : {&low, &high, &ours}) std::ranges::sort(*values);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_GE(ours[i], low[i]) << name;
      EXPECT_LE(ours[i], high[i]) << name;
    }
  }
  // The first is busy, the second was never started.
  EXPECT_GT(ValueOf(*kvm, 0, "exits"), ValueOf(*kvm, 1, "exits"));
}

// What perf counts as `migrations` on the same thread.
TEST_F(StatisticsTest, MigrationsAreThoseOfPerf) {
  const std::vector<int> cpus = [] {
    cpu_set_t set;
    std::vector<int> all;
    sched_getaffinity(0, sizeof(set), &set);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
    }
    return all;
  }();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU: nothing to migrate to";
  const auto guest =
      QemuGuest::Start({.name = "web", .debug_threads = true, .program = GuestProgram::kBusy});
  ASSERT_TRUE(guest.ok()) << guest.status();
  const auto vm = kvm::Discovery("/").FindByPid(guest->pid());
  ASSERT_TRUE(vm.ok()) << vm.status();
  const pid_t tid = vm->vcpus.at(0).tid;
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_MIGRATIONS;
  const Fd perf(static_cast<int>(syscall(SYS_perf_event_open, &attr, tid, -1, -1, 0)));
  if (!perf.valid()) GTEST_SKIP() << "no software events here";
  const auto counted = [&perf] {
    uint64_t count = 0;
    EXPECT_EQ(read(perf.get(), &count, sizeof(count)), 8);
    return count;
  };
  kvm::VmStatistics statistics("/", *vm, KernelRelease(), MonotonicNow_ns);
  struct Where {
    int cpu = -1;
    uint64_t run_ns = 0;
  };
  const auto where = [&statistics] {
    const auto now = statistics.Read();
    const SourceStatistics* scheduler = Find(now, "scheduler");
    if (scheduler == nullptr) return Where{};
    return Where{scheduler->vcpus[0].cpu.value_or(-1), ValueOf(*scheduler, 0, "run_ns")};
  };
  // Returns when it has run there: a thread that sleeps goes over when it wakes up, and perf counts
  // a migration when the thread is next on a CPU.
  const auto runs_on = [&](int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(tid, sizeof(one), &one) != 0) return false;
    if (!Eventually([&] { return where().cpu == cpu; })) return false;
    const uint64_t before_ns = where().run_ns;
    return Eventually([&] { return where().run_ns > before_ns; });
  };
  ASSERT_TRUE(runs_on(cpus[0]));  // from here on it migrates where the test says alone
  const auto first = statistics.Read();
  const uint64_t perf_first = counted();
  for (int i = 1; i <= 7; ++i) ASSERT_TRUE(runs_on(cpus[i % 2]));
  const auto second = statistics.Read();
  const uint64_t migrations = ValueOf(*Find(second, "scheduler"), 0, "migrations") -
                              ValueOf(*Find(first, "scheduler"), 0, "migrations");
  EXPECT_EQ(migrations, counted() - perf_first);
  EXPECT_EQ(migrations, 7u);
  EXPECT_EQ(Find(second, "scheduler")->vcpus[0].cpu, cpus[1]);
}

// Through the command: they are in the timeline, the report has their columns, and they can be
// asked for.
TEST_F(StatisticsTest, ARecordingHasThemAndCheckTakesThem) {
  const auto guest =
      QemuGuest::Start({.name = "web", .qmp_unix = true, .program = GuestProgram::kBusy});
  ASSERT_TRUE(guest.ok()) << guest.status();
  const std::string file = testing::TempDir() + "statistics.vpt";
  const Finished recorded =
      RunProgram(Vcpulse({"record", "--qmp", guest->qmp_unix(), "-d", "3500ms", "-o", file}));
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const Finished report =
      RunProgram(Vcpulse({"report", file, "--columns", "migrations,exits,halt_exits"}));
  EXPECT_THAT(report.out, testing::HasSubstr("migrations/s exits/s halt-exits/s"));
  const Finished check = RunProgram(Vcpulse(
      {"check", file, "--expect", "vcpu=*: exits.p50 >= 1", "--expect", "vcpu=*: exits.p50 < 1"}));
  EXPECT_EQ(check.exit_code, 1) << check.out;
  EXPECT_THAT(check.out, testing::HasSubstr("PASS          vcpu=*: exits.p50 >= 1"));
  EXPECT_THAT(check.out, testing::HasSubstr("FAIL          vcpu=*: exits.p50 < 1"));

  const Finished without = RunProgram(
      Vcpulse({"record", "--qmp", guest->qmp_unix(), "-d", "1s", "-o", file, "--no-statistics"}));
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(RunProgram(Vcpulse({"export", "--format", "jsonl", file})).out,
              testing::Not(testing::HasSubstr("\"exits\"")));
  std::filesystem::remove(file);
}

// Without counters a vCPU that is on a CPU is UNKNOWN: KVM's statistics tell such guests apart.
TEST_F(StatisticsTest, WithoutCountersTheyExplainWhatAVcpuDoes) {
  struct Case {
    GuestProgram program;
    const char* cause;  // null: none explains it
  };
  for (const Case& one :
       {Case{GuestProgram::kRomWrites, "device-exits"}, Case{GuestProgram::kTimer, "wake-ups"},
        Case{GuestProgram::kBusy, nullptr}}) {
    SCOPED_TRACE(one.cause == nullptr ? "busy" : one.cause);
    const auto guest = QemuGuest::Start({.name = "web", .qmp_unix = true, .program = one.program});
    ASSERT_TRUE(guest.ok()) << guest.status();
    ASSERT_TRUE(guest->WaitForProgram(kLong));
    const std::string file = testing::TempDir() + "explained.vpt";
    const Finished recorded = RunProgram(Vcpulse(
        {"record", "--qmp", guest->qmp_unix(), "--event-set", "degraded", "-d", "4s", "-o", file}));
    ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
    const Finished report = RunProgram(Vcpulse({"report", file, "--json"}));
    const auto json = boost::json::parse(report.out);
    const auto& vcpu = json.at("vms").at(0).at("vcpus").at(0);
    const auto& time = vcpu.at("without_counters");
    // A fast host serves the timer in so little time that the vCPU is HALTED.
    if (one.program == GuestProgram::kTimer && time.is_null()) {
      EXPECT_GT(vcpu.at("share").at("halted").to_number<double>(), 0.9) << report.out;
      continue;
    }
    ASSERT_TRUE(time.is_object()) << report.out;
    const double seconds = time.at("seconds").to_number<double>();
    const auto& causes = time.at("causes").as_object();
    double explained = 0;
    for (const auto& cause : causes) explained += cause.value().to_number<double>();
    if (one.cause == nullptr) {
      EXPECT_EQ(explained, 0);
      continue;
    }
    // All but what came after the last reading. KVM may poll for the timer all the time.
    double expected = causes.at(one.cause).to_number<double>();
    if (one.program == GuestProgram::kTimer) {
      expected += causes.at("halt-polling").to_number<double>();
    }
    EXPECT_GT(expected, 0.6 * seconds) << boost::json::serialize(time);
    EXPECT_THAT(RunProgram(Vcpulse({"report", file})).out,
                testing::HasSubstr("  without counters, vCPU 0: "));
  }
}

}  // namespace
}  // namespace vcpulse::kvm_tests
