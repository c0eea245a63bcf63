// `vcpulse doctor` on this machine, with real guests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>

#include "kvm/base/fd.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string Text(const json::value& value) {
  return value.is_null() ? "null" : std::string(value.as_string().data(), value.as_string().size());
}

// The whole answer; the test fails where it is no JSON or lacks a field.
json::object Doctor(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"doctor", "--json"});
  const Finished finished = RunProgram(Vcpulse(more));
  EXPECT_EQ(finished.err, "");
  boost::system::error_code error;
  json::value value = json::parse(finished.out, error);
  EXPECT_FALSE(error) << finished.out;
  if (error) return {};
  json::object all = value.as_object();
  EXPECT_EQ(finished.exit_code, all.at("complete").as_bool() ? 0 : 1);
  return all;
}

// The findings of one id that are about `about`.
std::vector<json::object> Findings(const json::object& all, std::string_view id,
                                   const std::string& about = "") {
  std::vector<json::object> found;
  for (const json::value& value : all.at("findings").as_array()) {
    const json::object& finding = value.as_object();
    if (Text(finding.at("id")) != id) continue;
    if (Text(finding.at("tried")).find(about) == std::string::npos) continue;
    found.push_back(finding);
  }
  return found;
}

// A connection to QMP that is held until the object goes.
Fd Hold(const std::string& address) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::strncpy(where.sun_path, address.c_str() + std::strlen("unix:"), sizeof(where.sun_path) - 1);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  char greeting[16];
  EXPECT_GT(::read(fd.get(), greeting, sizeof(greeting)), 0);  // it is ours
  return fd;
}

TEST(Doctor, EveryFindingHasItsFields) {
  const json::object all = Doctor();
  ASSERT_TRUE(all.contains("findings"));
  EXPECT_THAT(Text(all.at("verdict")), AnyOf("complete", "unknown", "degraded", "fails"));
  const json::array& findings = all.at("findings").as_array();
  EXPECT_GE(findings.size(), 20u);
  for (const json::value& value : findings) {
    const json::object& finding = value.as_object();
    EXPECT_EQ(finding.size(), 5u);
    EXPECT_THAT(Text(finding.at("state")), AnyOf("ok", "fail", "note", "unknown"));
    EXPECT_NE(Text(finding.at("tried")), "") << finding.at("id");
    EXPECT_NE(Text(finding.at("answered")), "") << finding.at("id");
    EXPECT_TRUE(finding.contains("fix"));
    if (Text(finding.at("state")) == "fail") {
      EXPECT_FALSE(finding.at("fix").is_null()) << finding.at("id");
    }
  }
}

TEST(Doctor, WithoutAPmuThatIsTheFailure) {
  if (std::filesystem::exists("/sys/bus/event_source/devices/cpu")) {
    GTEST_SKIP() << "this machine has a PMU";
  }
  const auto pmu = Findings(Doctor(), "pmu");
  ASSERT_EQ(pmu.size(), 1u);
  EXPECT_EQ(Text(pmu[0].at("state")), "fail");
  EXPECT_THAT(Text(pmu[0].at("answered")), HasSubstr("no PMU"));

  const Finished text = RunProgram(Vcpulse({"doctor"}));
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("\nFAIL      pmu "), HasSubstr(" fix:      "),
                              HasSubstr(" failed: recording would "),
                              HasSubstr("host-cycles     not tried, as there is no PMU; likewise "
                                        "guest-only, events-full,")));
}

TEST(Doctor, AnEmptyRootHasNoKvm) {
  const fakes::ProcDir nothing;
  const json::object all = Doctor({"--root", nothing.root()});
  EXPECT_EQ(Text(all.at("verdict")), "fails");
  EXPECT_EQ(Text(Findings(all, "kvm").at(0).at("state")), "fail");
}

TEST(Doctor, ARootThatIsNotThereIsAUsageError) {
  const Finished finished = RunProgram(Vcpulse({"doctor", "--root", "/no/such/folder"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("/no/such/folder"));
}

TEST(Doctor, ARootWithoutProcIsOneError) {
  const fakes::ProcDir host;
  const std::string nothing = host.root() + "/proc";
  const Finished finished = RunProgram(Vcpulse({"doctor", "--root", nothing}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("there is no " + nothing + "/proc"));
}

TEST(Doctor, AnotherPidNamespaceIsAFailure) {
  const fakes::ProcDir host;
  const json::object all = Doctor({"--root", host.root()});
  EXPECT_EQ(Text(Findings(all, "pid-namespace").at(0).at("state")), "fail");
  EXPECT_EQ(Text(Findings(all, "other-users").at(0).at("state")), "unknown");
  EXPECT_EQ(Text(Findings(Doctor(), "pid-namespace").at(0).at("state")), "ok");
}

class DoctorOfGuests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(DoctorOfGuests, NamedThreadsAreFound) {
  const auto guest = QemuGuest::Start({.vcpus = 2, .name = "named", .debug_threads = true});
  ASSERT_TRUE(guest.ok()) << guest.status();
  const std::string about = "(PID " + std::to_string(guest->pid()) + ")";
  const json::object all = Doctor();
  const auto vcpus = Findings(all, "vcpus", about);
  ASSERT_EQ(vcpus.size(), 1u);
  EXPECT_EQ(Text(vcpus[0].at("state")), "ok");
  EXPECT_THAT(Text(vcpus[0].at("answered")), HasSubstr("2 vCPUs, found by "));
  EXPECT_EQ(Findings(all, "thread-names", about).size(), 0u);
  // Its vCPU is the one that permission was tried on.
  EXPECT_EQ(Findings(all, "other-users", about).size(), 1u);
}

TEST_F(DoctorOfGuests, UnnamedThreadsAndAHeldQmpAreSeen) {
  const auto guest = QemuGuest::Start({.name = "unnamed", .qmp_unix = true});
  ASSERT_TRUE(guest.ok()) << guest.status();
  const std::string about = "(PID " + std::to_string(guest->pid()) + ")";
  auto qmp = Findings(Doctor(), "qmp", about);
  ASSERT_EQ(qmp.size(), 1u);
  EXPECT_THAT(Text(qmp[0].at("answered")), HasSubstr("it answers"));

  const Fd held = Hold(guest->qmp_unix());
  const json::object all = Doctor();
  qmp = Findings(all, "qmp", about);
  ASSERT_EQ(qmp.size(), 1u);
  EXPECT_EQ(Text(qmp[0].at("state")), "note");
  EXPECT_THAT(Text(qmp[0].at("answered")), HasSubstr("another client may hold it"));
  const auto names = Findings(all, "thread-names", about);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_THAT(Text(names[0].at("fix")), HasSubstr("debug-threads=on"));
  // Whether they are told without names depends on debugfs and on the kernel's guest times.
  const auto vcpus = Findings(all, "vcpus", about);
  ASSERT_EQ(vcpus.size(), 1u);
  EXPECT_EQ(Text(vcpus[0].at("state")) == "fail",
            Text(vcpus[0].at("answered")).find("found by") == std::string::npos);
}

TEST_F(DoctorOfGuests, ATcgGuestIsANote) {
  const auto guest = QemuGuest::Start({.name = "slow", .tcg = true});
  ASSERT_TRUE(guest.ok()) << guest.status();
  const auto vcpus = Findings(Doctor(), "vcpus", "(PID " + std::to_string(guest->pid()) + ")");
  ASSERT_EQ(vcpus.size(), 1u);
  EXPECT_EQ(Text(vcpus[0].at("state")), "note");
  EXPECT_THAT(Text(vcpus[0].at("answered")), HasSubstr("TCG"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests
