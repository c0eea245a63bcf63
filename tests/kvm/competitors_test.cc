// `record --competitors` where it is known who has the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <csignal>
#include <string>

#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

bool HasTracepoints() {
  return ::access("/sys/kernel/tracing/events/sched/sched_switch/format", R_OK) == 0;
}

// Tracefs is readable by root alone, and needs no KVM. Where nobody has mounted it, this process
// does so for itself and those that it starts.
std::string WhyNoTracepoints() {
  if (const std::string why = WhyNoKvm(); !why.empty()) return why;
  if (HasTracepoints()) return "";
  const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", "/sys/kernel/tracing", "tracefs", 0, nullptr) == 0;
  if (mounted && HasTracepoints()) return "";
  return "no tracefs at /sys/kernel/tracing, or not root";
}

void Pin(const QemuGuest& guest, const std::string& cpu) {
  ASSERT_EQ(RunProgram({"taskset", "-a", "-cp", cpu, std::to_string(guest.pid())}).exit_code, 0);
}

absl::StatusOr<QemuGuest> StartBusy(const std::string& name) {
  absl::StatusOr<QemuGuest> guest =
      QemuGuest::Start({.name = name, .debug_threads = true, .program = GuestProgram::kBusy});
  if (guest.ok() && !guest->WaitForProgram(kLong)) return absl::InternalError("does not run");
  return guest;
}

// The competitors of vCPU 0 of this VM, and the text of the report.
using Arguments = std::vector<std::string>;

struct Reported {
  json::value competitors;
  double starved_share = 0;
  std::string text;
};

Reported Record(const std::string& vm, const Arguments& target) {
  const std::string file = testing::TempDir() + "competitors.vpt";
  Arguments command = {"record", "--competitors", "-d", "3s", "-o", file};
  command.insert(command.end(), target.begin(), target.end());
  const Finished recorded = RunProgram(Vcpulse(command));
  EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
  const Finished report = RunProgram(Vcpulse({"report", file, "--json"}));
  EXPECT_EQ(report.exit_code, 0) << report.err;
  Reported reported{.text = RunProgram(Vcpulse({"report", file})).out};
  const auto parsed = json::parse(report.out);
  for (const auto& one : parsed.at("vms").as_array()) {
    if (one.at("name").as_string() != vm) continue;
    reported.starved_share = one.at("vcpus").at(0).at("starved_share").to_number<double>();
    reported.competitors = one.at("vcpus").at(0).at("competitors");
  }
  return reported;
}

double Number(const json::value& value) { return value.to_number<double>(); }

// Two vCPUs on one CPU: each has what the other one lacks.
TEST(Competitors, TheOtherVmOnTheCpuIsNamed) {
  if (const std::string why = WhyNoTracepoints(); !why.empty()) GTEST_SKIP() << why;
  const auto web = StartBusy("web");
  const auto db = StartBusy("db");
  ASSERT_TRUE(web.ok() && db.ok()) << web.status() << db.status();
  const std::string cpu = std::to_string(sched_getcpu());
  Pin(*web, cpu);
  Pin(*db, cpu);
  for (const bool both : {true, false}) {
    SCOPED_TRACE(both ? "both are recorded" : "one is recorded");
    const Reported reported = Record("web", both ? Arguments{"--all"} : Arguments{"--vm", "web"});
    const json::value& found = reported.competitors;
    ASSERT_TRUE(found.is_object()) << reported.text;
    EXPECT_GE(found.at("windows").to_number<int>(), 1);
    EXPECT_EQ(json::serialize(found.at("cpus")), "[" + cpu + "]");
    const double waited_s = Number(found.at("waited_s"));
    EXPECT_GT(waited_s, 0.2);
    EXPECT_NEAR(waited_s, Number(found.at("run_delay_s")), 0.1 * waited_s);
    EXPECT_LT(Number(found.at("unattributed_s")), 0.05 * waited_s);
    // Other programs may run on the CPU; of VMs it is the first.
    json::value first;
    for (const auto& one : found.at("threads").as_array()) {
      if (first.is_null() && !one.at("vm").is_null()) first = one;
    }
    ASSERT_TRUE(first.is_object()) << json::serialize(found);
    EXPECT_EQ(first.at("vm"), "db");
    EXPECT_EQ(first.at("kind"), both ? "vcpu" : "vm");
    EXPECT_GT(Number(first.at("share")), 0.1);
    const std::string label = first.at("label").as_string().c_str();
    if (both) {
      EXPECT_EQ(label, "vCPU 0 of db");
      EXPECT_EQ(first.at("vcpu"), 0);
    } else {
      EXPECT_EQ(label, "CPU 0/KVM of VM db (PID " + std::to_string(db->pid()) + ")");
      EXPECT_TRUE(first.at("vcpu").is_null());
    }
    EXPECT_THAT(reported.text, HasSubstr("  competitors, vCPU 0: "));
  }
}

// One that never lets go of the CPU is switched from by nobody.
TEST(Competitors, AHogThatIsNeverSwitchedFromIsNamed) {
  if (const std::string why = WhyNoTracepoints(); !why.empty()) GTEST_SKIP() << why;
  if (::geteuid() != 0) GTEST_SKIP() << "a SCHED_FIFO hog needs root";
  const auto web = StartBusy("web");
  ASSERT_TRUE(web.ok()) << web.status();
  const std::string cpu = std::to_string(sched_getcpu());
  Pin(*web, cpu);
  // The recording itself stays off this CPU as long as others are free; the kernel leaves 5 % to
  // other threads (sched_rt_runtime_us).
  RunningProgram hog({"taskset", "-c", cpu, "chrt", "-f", "1", "sh", "-c", "while :; do :; done"});
  const Reported reported = Record("web", {"--vm", "web"});
  hog.Signal(SIGKILL);
  const json::value& found = reported.competitors;
  ASSERT_TRUE(found.is_object()) << reported.text;
  const auto& first = found.at("threads").at(0);
  EXPECT_EQ(first.at("thread"), "sh");
  EXPECT_EQ(first.at("kind"), "process");
  EXPECT_GT(Number(first.at("share")), 0.8);
  EXPECT_GT(Number(found.at("waited_s")), 0.6);
}

// A guest that halts waits when it wakes up: for whoever has its CPU by then.
TEST(Competitors, WaitsAfterWakeUpsAreSeen) {
  if (const std::string why = WhyNoTracepoints(); !why.empty()) GTEST_SKIP() << why;
  const auto guest =
      QemuGuest::Start({.name = "tick", .debug_threads = true, .program = GuestProgram::kTimer});
  ASSERT_TRUE(guest.ok()) << guest.status();
  ASSERT_TRUE(guest->WaitForProgram(kLong));
  const std::string cpu = std::to_string(sched_getcpu());
  Pin(*guest, cpu);
  const std::vector<std::string> hog = {"taskset", "-c", cpu, "sh", "-c", "while :; do :; done"};
  std::array hogs = {RunningProgram(hog), RunningProgram(hog), RunningProgram(hog)};
  const Reported reported = Record("tick", {"--vm", "tick"});
  for (RunningProgram& one : hogs) one.Signal(SIGKILL);
  const json::value& found = reported.competitors;
  // Some schedulers give a thread that wakes up its CPU at once.
  if (reported.starved_share < 0.9) GTEST_SKIP() << "this scheduler does not starve the guest";
  ASSERT_TRUE(found.is_object()) << reported.text;
  const double waited_s = Number(found.at("waited_s"));
  EXPECT_NEAR(waited_s, Number(found.at("run_delay_s")), 0.15 * waited_s);
  EXPECT_EQ(found.at("threads").at(0).at("thread"), "sh");
}

}  // namespace
}  // namespace vcpulse::kvm_tests
