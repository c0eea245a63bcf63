#include "monitor/follow/replay_view.h"

#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/base/fd.h"
#include "monitor/follow/live_line.h"
#include "monitor/timeline/reader.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::follow {
namespace {

using check::DrawnRecording;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string Played(const std::string& file, ReplayView& view) {
  std::string text;
  EXPECT_TRUE(timeline::ReadTimeline(file, [&](const timeline::Entry& entry) {
                if (const auto line = view.Take(entry)) text += *line;
                if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
                  text += view.TickLine(*tick);
                }
                return absl::OkStatus();
              }).ok());
  return text;
}

TEST(ReplayView, ALinePerTickAndEvent) {
  DrawnRecording drawn;
  drawn.Begin(1, {.vcpus = {0, 1}});
  drawn.Draw(std::vector<std::string>{"PHu", "sP3"});
  drawn.Draw("[boot]!");
  ReplayView view(std::nullopt);
  EXPECT_EQ(Played(drawn.Finish(), view),
            "    0.000s  guest1  --  IPC -\n"
            "    0.100s  guest1  #$  IPC 1.25\n"
            "    0.200s  guest1  .#  IPC 2.00\n"
            "    0.300s  guest1  !#  IPC 1.95\n"
            "    0.300s  marker 'boot'\n"
            "    0.300s  guest1: vm-ended\n");
}

TEST(ReplayView, VmsOfOneNameAndNamesThatAreNoText) {
  DrawnRecording drawn;
  drawn.Name(1, "we\x1b[2Jb");
  drawn.Name(2, "we\x1b[2Jb");
  drawn.Begin(1, {});
  drawn.Begin(2, {});
  drawn.Draw({{1, {"P"}}, {2, {"S"}}});
  ReplayView view(std::nullopt);
  const std::string text = Played(drawn.Finish(), view);
  EXPECT_THAT(text, HasSubstr("  we?[2Jb  #  IPC"));
  EXPECT_THAT(text, HasSubstr("  we?[2Jb (VM 2)  S  IPC"));
}

TEST(ReplayView, GapsSayWhy) {
  ReplayView view(1'000'000'000);
  v1::Gap gap;
  gap.set_vm(2);
  gap.set_mono_ns(3'500'000'000);
  gap.set_first_tick(7);
  gap.set_last_tick(9);
  gap.set_reason(v1::Gap::REASON_READ_FAILED);
  gap.set_vcpu_index(3);
  gap.set_error(3);
  EXPECT_EQ(view.Take({.sequence = 1, .record = gap}),
            "    2.500s  gap: VM 2, ticks 7 to 9: read-failed, vCPU 3, ESRCH: No such process\n");
  EXPECT_EQ(view.progress().gaps, 1U);
}

// As the line of a recording that runs: vCPUs by the latest band, of VMs that live.
TEST(ReplayView, ProgressIsThatOfARecording) {
  DrawnRecording drawn;
  drawn.Begin(1, {.vcpus = {0, 1}});
  drawn.Begin(2, {});
  drawn.Draw({{1, {"PH", "PS"}}, {2, {"PU"}}});
  ReplayView view(std::nullopt);
  Played(drawn.Finish(), view);
  EXPECT_EQ(view.ticks(), 3U);
  EXPECT_EQ(view.elapsed(), absl::Milliseconds(200));
  EXPECT_EQ(view.progress().vcpu_samples, 9U);
  EXPECT_THAT(view.progress().Bands(), ::testing::ElementsAre(0, 1, 1, 0, 1));
}

recorder::Progress SomeProgress() {
  recorder::Progress progress{.samples = 30, .vcpu_samples = 120, .gaps = 2};
  const auto of = [](core::Band band, size_t vcpus) {
    return std::vector<core::Verdict>(vcpus, {.band = band});
  };
  progress.vms = {{"web", of(core::Band::kNone, 1)},
                  {"db-0", of(core::Band::kHalted, 3)},
                  {"db-1", of(core::Band::kSpinning, 4)},
                  {"db-2", of(core::Band::kProductive, 5)},
                  {"db-3", of(core::Band::kUnknown, 6)}};
  progress.vms.back().vcpus.front().starved = true;
  return progress;
}

TEST(LiveLine, SaysTimeTicksGapsAndBands) {
  EXPECT_EQ(FormatLiveLine(absl::Milliseconds(3060), 30, SomeProgress(), 200),
            "3.1s  30 ticks  2 gaps  vCPUs: 3 halted, 4 spinning, 5 productive, 7 unknown");
}

// A line wider than the terminal would wrap, and \r would not take it back.
TEST(LiveLine, FitsTheTerminal) {
  EXPECT_EQ(FormatLiveLine(absl::Seconds(3), 30, SomeProgress(), 20), "3.0s  30 ticks  2 ga");
}

TEST(LiveLines, ACharacterPerVcpu) {
  EXPECT_THAT(FormatLiveLines(absl::Seconds(3), 30, SomeProgress(), 200, 24),
              ElementsAre(FormatLiveLine(absl::Seconds(3), 30, SomeProgress(), 200), "  web   -",
                          "  db-0  ...", "  db-1  SSSS", "  db-2  #####", "  db-3  !?????"));
}

TEST(LiveLines, FitTheTerminal) {
  EXPECT_THAT(FormatLiveLines(absl::Seconds(3), 30, SomeProgress(), 11, 24),
              ElementsAre("3.0s  30 ti", "  web   -", "  db-0  ...", "  db-1  SS+", "  db-2  ##+",
                          "  db-3  !?+"));
  EXPECT_THAT(FormatLiveLines(absl::Seconds(3), 30, SomeProgress(), 200, 4),
              ElementsAre(::testing::_, "  web   -", "  db-0  ...", "  and 3 more VMs"));
  EXPECT_THAT(FormatLiveLines(absl::Seconds(3), 30, SomeProgress(), 200, 6), SizeIs(6));
  EXPECT_THAT(FormatLiveLines(absl::Seconds(3), 30, SomeProgress(), 200, 1), SizeIs(1));
}

// What `show` makes of a terminal on standard error.
std::string OnTerminal(const std::function<void()>& show) {
  int ends[2];
  EXPECT_EQ(openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  const Fd screen(ends[0]);
  const Fd terminal(ends[1]);
  const Fd before(dup(STDERR_FILENO));
  dup2(terminal.get(), STDERR_FILENO);
  show();
  dup2(before.get(), STDERR_FILENO);
  std::string text;
  pollfd waits{.fd = screen.get(), .events = POLLIN, .revents = 0};
  while (poll(&waits, 1, 200) == 1) {
    char buffer[1024];
    const ssize_t got = read(screen.get(), buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// Beside a command both write: what is erased must be our own line.
TEST(LiveLine, OnASharedTerminalItIsOneLine) {
  const std::string text = OnTerminal([] {
    LiveLine live(true);
    live.Show(absl::Seconds(3), 30, SomeProgress());
    live.Clear();
  });
  EXPECT_EQ(text, FormatLiveLine(absl::Seconds(3), 30, SomeProgress(), 79) + "\r\033[J");
}

TEST(LiveLine, ItsLinesAreRemovedBeforeOthersCome) {
  const std::string text = OnTerminal([] {
    LiveLine live;
    live.Show(absl::Seconds(3), 30, SomeProgress());
    live.Show(absl::Seconds(4), 40, SomeProgress());
    live.Clear();
    live.Clear();
  });
  EXPECT_THAT(text, StartsWith("3.0s  30 ticks"));
  EXPECT_THAT(text, HasSubstr("  db-3  !?????\033[5A\r\033[J4.0s  40 ticks"));
  EXPECT_THAT(text, EndsWith("  db-3  !?????\033[5A\r\033[J"));
}

}  // namespace
}  // namespace vcpulse::follow
