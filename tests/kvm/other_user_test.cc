// What `vcpulse` may see of guests that are not its user's, and of a /proc that is not at /.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/recorded_timeline.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The command as user `nobody` with CAP_PERFMON and no other right, in a folder it may enter.
std::vector<std::string> AsNobody(const std::vector<std::string>& command) {
  std::vector<std::string> all = {"setpriv",
                                  "--reuid=65534",
                                  "--regid=65534",
                                  "--clear-groups",
                                  "--inh-caps=-all,+perfmon",
                                  "--ambient-caps=-all,+perfmon"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

class OtherUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    fs::permissions(folder_.Path(""), fs::perms::all);
    // The build tree may be closed to others.
    binary_ = folder_.Path("vcpulse");
    fs::copy_file(Vcpulse({}).front(), binary_);
    auto guest = QemuGuest::Start(
        {.vcpus = 2, .name = "other-user", .debug_threads = true, .qmp_unix = true});
    ASSERT_TRUE(guest.ok()) << guest.status();
    guest_.emplace(*std::move(guest));
  }

  fakes::ProcDir folder_;
  std::string binary_;
  std::optional<QemuGuest> guest_;
};

TEST_F(OtherUser, WithCapPerfmonAloneItIsFoundUnproven) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: cannot become another user";
  if (const Finished can = RunProgram(AsNobody({"true"})); can.exit_code != 0) {
    GTEST_SKIP() << "setpriv cannot give CAP_PERFMON alone: " << can.err;
  }
  const Finished list = RunProgram(AsNobody({binary_, "list", "--vm", "other-user"}));
  ASSERT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("other-user"), HasSubstr("2 vCPUs"),
                              HasSubstr("thread-name  name"), HasSubstr("note: unproven"),
                              HasSubstr("CAP_SYS_PTRACE"), Not(HasSubstr("  fd\n"))));
  const Finished all = RunProgram(AsNobody({binary_, "list"}));
  EXPECT_THAT(all.out, HasSubstr("other-user")) << "among all that are found too";

  // Where it may be recorded, what cannot be told is said.
  const std::string output = folder_.Path("x.vpt");
  const Finished record =
      RunProgram(AsNobody({binary_, "record", "--vm", "other-user", "-d", "500ms", "-o", output}));
  if (record.exit_code != 0) {
    EXPECT_THAT(record.err, HasSubstr("perf_event_paranoid"));
    return;
  }
  const Timeline timeline = ReadBack(output);
  ASSERT_EQ(timeline.sets.size(), 1u);
  EXPECT_EQ(timeline.sets[0].vcpus(0).proof(), "name");
  ASSERT_EQ(timeline.sets[0].notes_size(), 2);
  EXPECT_THAT(timeline.sets[0].notes(1), HasSubstr("paused and halted cannot be distinguished"));
}

// A privileged container has the host's /proc at another place.
TEST_F(OtherUser, AnotherRootIsReadAndRecorded) {
  const fakes::ProcDir host;
  fs::remove(host.Path("proc"));
  fs::create_symlink("/proc", host.Path("proc"));
  const Finished list = RunProgram(Vcpulse({"list", "--root", host.root(), "--vm", "other-user"}));
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("2 vCPUs"));
  const std::string output = folder_.Path("x.vpt");
  const Finished record = RunProgram(Vcpulse(
      {"record", "--root", host.root(), "--vm", "other-user", "-d", "500ms", "-o", output}));
  EXPECT_EQ(record.exit_code, 0) << record.err;
  EXPECT_GT(ReadBack(output).samples.at(1), 2u);
}

// Neither needs a guest.
TEST(Root, WithoutAProcIsRefused) {
  const fakes::ProcDir empty;
  fs::remove(empty.Path("proc"));
  for (const char* command : {"list", "record"}) {
    const Finished refused = RunProgram(Vcpulse({command, "--root", empty.root()}));
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--root"), HasSubstr(empty.root() + "/proc")));
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1);
  }
}

TEST(Root, PidsOfAnotherNamespaceAreListedAndNotRecorded) {
  const std::string host = fakes::HostTree("crosvm");
  const Finished list = RunProgram(Vcpulse({"list", "--root", host}));
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("guest-a  PID 6300"), HasSubstr("penguin  PID 6400")));
  const Finished record = RunProgram(Vcpulse({"record", "--root", host, "-d", "1s"}));
  EXPECT_EQ(record.exit_code, 2);
  EXPECT_THAT(record.err, HasSubstr("PID namespace"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests
