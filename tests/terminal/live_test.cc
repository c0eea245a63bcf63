// Real guests on a terminal, live, and what a collector receives of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"
#include "tests/stream/stream_commands.h"
#include "tests/terminal/pseudo_terminal.h"
#include "tests/terminal/tmux.h"

namespace vcpulse::kvm_tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class TopLive : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    auto guest = QemuGuest::Start(
        {.vcpus = 2, .name = "spinner", .debug_threads = true, .program = GuestProgram::kPause});
    ASSERT_TRUE(guest.ok()) << guest.status();
    guest_ = std::make_unique<QemuGuest>(*std::move(guest));
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }
  std::string Pid() const { return absl::StrCat(guest_->pid()); }
  static std::string Report(const std::string& file) {
    const Finished run = RunProgram(Vcpulse({"report", "--json", file}));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }

  const fakes::ProcDir folder_;
  std::unique_ptr<QemuGuest> guest_;
};

TEST_F(TopLive, ShowsMarksAndWritesWhatItHolds) {
  const Tmux terminal(100, 30, VcpulseLine({"top", Pid(), "-i", "20ms"}));
  ASSERT_TRUE(terminal.Shows("vCPU 1")) << terminal.Text();
  EXPECT_TRUE(terminal.Shows("LIVE"));
  EXPECT_THAT(terminal.Text(), HasSubstr("-spinner"));
  terminal.Press({"m"});
  terminal.Type("load");
  terminal.Press({"Enter"});
  EXPECT_TRUE(terminal.Shows("^load")) << terminal.Text();
  // Nothing was written so far: it asks.
  terminal.Press({"q"});
  ASSERT_TRUE(terminal.Shows("Leave? y")) << terminal.Text();
  terminal.Press({"w"});
  terminal.Type(Path("held.vpt"));
  terminal.Press({"Enter"});
  ASSERT_TRUE(terminal.Shows("written to")) << terminal.Text();
  terminal.Press({"q"});
  EXPECT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
  const std::string report = Report(Path("held.vpt"));
  EXPECT_THAT(report, HasSubstr("\"spinner\""));
  EXPECT_THAT(report, HasSubstr("\"load\""));
}

TEST_F(TopLive, APausedViewLosesNothingInTheFile) {
  const Tmux terminal(
      100, 30, VcpulseLine({"record", "--top", "--pid", Pid(), "-i", "20ms", "-o", Path("a.vpt")}));
  ASSERT_TRUE(terminal.Shows("vCPU 1")) << terminal.Text();
  terminal.Press({"Space"});
  ASSERT_TRUE(terminal.Shows("PAUSED"));
  // Time goes on behind it.
  ASSERT_TRUE(terminal.Shows("PAUSED -3.")) << terminal.Text();
  terminal.Press({"q"});
  ASSERT_TRUE(terminal.Shows("exit 0")) << terminal.Text();
  const std::string report = Report(Path("a.vpt"));
  EXPECT_THAT(report, HasSubstr("\"ticks_missed\": 0"));
  EXPECT_THAT(report, HasSubstr("\"end_reason\": \"control\""));
  EXPECT_THAT(terminal.Text(), ContainsRegex("ticks, .* 0 gaps"));
}

TEST_F(TopLive, RecordLeavesWhereTopStays) {
  const Tmux recording(
      100, 30, VcpulseLine({"record", "--top", "--pid", Pid(), "-d", "1s", "-o", Path("b.vpt")}));
  EXPECT_TRUE(recording.Shows("exit 0")) << recording.Text();
  EXPECT_TRUE(std::filesystem::exists(Path("b.vpt")));
  const Tmux top(100, 30, VcpulseLine({"top", Pid(), "-d", "1s", "-o", Path("c.vpt")}));
  ASSERT_TRUE(top.Shows("END")) << top.Text();
  EXPECT_THAT(top.Text(), HasSubstr("vCPU 1"));
  top.Press({"q"});
  EXPECT_TRUE(top.Shows("exit 0")) << top.Text();
  EXPECT_TRUE(std::filesystem::exists(Path("c.vpt")));
}

TEST_F(TopLive, AnErrorIsInSightAndPrinted) {
  const Tmux terminal(150, 30, VcpulseLine({"top", Pid(), "-o", "/nowhere/x.vpt"}));
  ASSERT_TRUE(terminal.Shows("exit 2")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("/nowhere/x.vpt"));
  const Tmux nobody(150, 30, VcpulseLine({"top", "no-such-vm"}));
  ASSERT_TRUE(nobody.Shows("exit 2")) << nobody.Text();
  EXPECT_THAT(nobody.Text(), HasSubstr("no-such-vm"));
}

// From the first byte on the terminal is to be given back.
TEST_F(TopLive, ASignalAtTheFirstByteEndsItInOrder) {
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes; ++i) {
    PseudoTerminal terminal(Vcpulse({"top", Pid()}));
    ASSERT_TRUE(terminal.HasStarted());
    ASSERT_TRUE(terminal.AwaitByte());
    terminal.Terminate();
    ASSERT_TRUE(Eventually([&] { return terminal.Read(), terminal.Status().has_value(); }));
    EXPECT_EQ(*terminal.Status(), 0) << terminal.Read();
    EXPECT_THAT(terminal.Read(), HasSubstr("\x1b[?1049l"));
  }
}

// It stays for a person to read the error, but not for a signal that came before.
TEST_F(TopLive, ASignalBeforeTheFirstWriteFailsEndsIt) {
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes; ++i) {
    PseudoTerminal terminal(Vcpulse({"top", Pid(), "-o", "/dev/full"}));
    ASSERT_TRUE(terminal.HasStarted());
    ASSERT_TRUE(terminal.AwaitByte());
    terminal.Terminate();
    ASSERT_TRUE(Eventually([&] { return terminal.Read(), terminal.Status().has_value(); }));
    EXPECT_THAT(terminal.Read(), HasSubstr("No space left"));
  }
}

TEST_F(TopLive, AStoppedTerminalHoldsNobodyUp) {
  PseudoTerminal terminal(Vcpulse({"top", Pid()}), PseudoTerminal::Begins::kStopped);
  EXPECT_TRUE(terminal.EndsThoughStopped());
}

TEST_F(TopLive, ShowsWhatACollectorReceives) {
  stream_tests::RunningCollector collector("unix:" + Path("c.sock"), Path("collected"));
  const RunningProgram recording(
      Vcpulse({"record", "--pid", Pid(), "-i", "20ms", "--to", collector.address(), "--agent-id",
               "rack7", "--spool-dir", Path("spool")}));
  const Tmux live(100, 30, VcpulseLine({"top", collector.address()}));
  ASSERT_TRUE(live.Shows("vCPU 1")) << live.Text();
  EXPECT_THAT(live.Text(), HasSubstr("rack7"));
  EXPECT_THAT(live.Text(), HasSubstr("LIVE"));
  const Tmux folder(100, 30, VcpulseLine({"top", Path("collected")}));
  ASSERT_TRUE(folder.Shows("vCPU 1")) << folder.Text();
  EXPECT_THAT(folder.Text(), HasSubstr("rack7"));
  live.Press({"q"});
  EXPECT_TRUE(live.Shows("exit 0")) << live.Text();
  folder.Press({"q"});
  EXPECT_TRUE(folder.Shows("exit 0")) << folder.Text();
  recording.Signal(SIGTERM);
}

}  // namespace
}  // namespace vcpulse::kvm_tests
