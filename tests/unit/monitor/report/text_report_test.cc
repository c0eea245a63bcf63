#include "monitor/report/text_report.h"

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/report/text_format.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Without counters, on its CPU for that long in a tick.
Did RanDegraded(uint64_t ns) {
  return {.enabled_ns = ns,
          .running_ns = ns,
          .counts = {ns},
          .verdict = {core::Band::kUnknown, core::Rule::kNoCounters, false}};
}

// Three vCPUs of one VM, one tick each way, and a Summary record.
void RecordBands(HandMadeRecording& recording) {
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002, 2003})).ok());
  recording.First(1, 1, 0, 3);
  for (uint64_t tick = 1; tick <= 10; ++tick) {
    recording.Tick(1, 1, tick,
                   {Busy(200'000'000, kProductiveHigh), Busy(50'000'000, kSpinningLow), Blocked()});
  }
  v1::Summary end;
  end.set_cpu_ns(2'000'000);
  end.set_end_reason("duration");
  ASSERT_TRUE(recording.Add(end).ok());
}

// The whole page once, as a user sees it: alignment, order, words.
TEST(TextReport, ShowsAWholeRecording) {
  HandMadeRecording recording;
  RecordBands(recording);
  EXPECT_EQ(RenderText(WholeReport(recording.summary)),
            R"(host1: Linux 6.1.0 x86_64, A CPU, 4 CPUs; vcpulse 0.1.0
recorded 2026-01-02 03:04:05 UTC, 1.0 s, a tick every 100ms
longest spin: vCPU 1 for 1.0 s (at +0.0 s; SPINNING? 100.0% of its time)
most starved: none
residency: guest cycles over the highest core frequency known or seen (1.000 GHz); a lower bound
           where the core runs slower
bands: ipc-bands: HALTED below residency 0.02 (left above 0.04); SPINNING below IPC 0.75, PRODUCTIVE
       from IPC 1

VM 1 "guest1", pid 1001: 11 samples, 0 gaps, event set min
vCPU  TID HALTED SPINNING? PRODUCTIVE UNKNOWN starved  IPC residency run-delay cycles instr
   0 2001   0.0%      0.0%     100.0%    0.0%    0.0% 2.00    100.0%      0.0%  1.00G 2.00G
   1 2002   0.0%    100.0%       0.0%    0.0%    0.0% 0.50    100.0%      0.0%  1.00G  500M
   2 2003 100.0%      0.0%       0.0%    0.0%    0.0%    -      0.0%      0.0%      0     0

SPINNING? is by ipc-bands: the IPC was below 0.75, which is a hint and no proof of a spin loop. Slow
work, such as divisions or cache misses, looks the same.

own cost: 11 ticks, 0 missed; late by p50 20.0 us, p99 20.0 us, max 20.0 us; reading one vCPU took
          p50 500 ns, p99 500 ns; reads of one VM spanned p50 2.5 us, p99 2.5 us, max 2.5 us
own cost: processor time 2.0 ms, 0.2% of one CPU
)");
}

// A pipe gets plain text; a terminal gets the dominating band and nothing else in colour.
TEST(TextReport, ColoursOnlyWhereAsked) {
  HandMadeRecording recording;
  RecordBands(recording);
  const Report report = WholeReport(recording.summary);
  EXPECT_THAT(RenderText(report), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderText(report, {.colour = true}), HasSubstr("\x1b[32m100.0%\x1b[0m"));
}

// Of a part, the head says which part, beside when the whole recording began.
TEST(TextReport, NamesThePartThatItShows) {
  HandMadeRecording recording;
  RecordBands(recording);
  Report report = WholeReport(recording.summary);
  report.start_mono_ns = kStart_ns;
  report.from_ns = 400'000'000;
  report.to_ns = 1'000'000'000;
  EXPECT_THAT(RenderText(report),
              HasSubstr("\nrecorded 2026-01-02 03:04:05 UTC, 600.0 ms of it (after 400.0 ms, up "
                        "to 1.0 s), a tick every 100ms\n"));
}

// The IPC rule is explained where it spoke, and only there.
TEST(TextReport, SaysWhatSpinningMeansOnlyWhereSeen) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {Busy(200'000'000, kProductiveHigh)});
  EXPECT_THAT(RenderText(WholeReport(recording.summary)), Not(HasSubstr("IPC rule")));
}

// An absent event: "-" in the table, the reason below, and no 0 anywhere in its column.
TEST(TextReport, ShowsAnAbsentEventAsADashWithItsReason) {
  HandMadeRecording recording;
  recording.Begin();
  v1::VcpuSet set = recording.Set(1, 1, {2001}, {"cycles"});
  v1::AbsentEvent* absent = set.add_absent_events();
  absent->set_event("instructions");
  absent->set_error(ENOENT);
  absent->set_reason("no such event on this PMU");
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 100'000'000,
                   .running_ns = 100'000'000,
                   .counts = {100'000'000},
                   .verdict = {core::Band::kUnknown, core::Rule::kNoInstructions, false}}});
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text, HasSubstr("   0 2001   0.0%     0.0%       0.0%  100.0%    0.0%   -    100.0%"
                              "      0.0%   100M     -\n"));
  EXPECT_THAT(text, HasSubstr("  not counted: instructions (ENOENT: no such event on this PMU)\n"));
  EXPECT_THAT(text, HasSubstr("  UNKNOWN: ran guest code, but instructions are not counted: vCPU 0 "
                              "100.0%\n"));
}

// Advice that names the errno itself is not given it twice; without any, the errno speaks.
TEST(TextReport, NamesTheErrnoOfAnAbsentEventOnce) {
  HandMadeRecording recording;
  recording.Begin();
  v1::VcpuSet set = recording.Set(1, 1, {2001});
  for (const auto& [event, error, reason] :
       {std::tuple("branches", ENOENT, "the PMU has none (ENOENT)"), std::tuple("c", EBUSY, ""),
        std::tuple("ref-cycles", 0, "dropped")}) {
    v1::AbsentEvent* absent = set.add_absent_events();
    absent->set_event(event);
    absent->set_error(error);
    absent->set_reason(reason);
  }
  ASSERT_TRUE(recording.Add(set).ok());
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text, HasSubstr("  not counted: branches (the PMU has none (ENOENT))\n"));
  EXPECT_THAT(text, HasSubstr("  not counted: c (EBUSY: Device or resource busy)\n"));
  EXPECT_THAT(text, HasSubstr("  not counted: ref-cycles (dropped)\n"));
}

// Estimates and parts of the time are marked in the table and explained below.
TEST(TextReport, MarksEstimatesAndPartialCounts) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  Did half = Busy(100'000'000, kProductiveHigh);
  half.running_ns = 50'000'000;
  recording.Tick(1, 1, 1, {half});
  ASSERT_TRUE(recording.Add(recording.Set(1, 2, {2001}, {"cycles"})).ok());
  recording.First(1, 2, 2, 1);
  Did rest = half;
  rest.counts = {100'000'000};
  recording.Tick(1, 2, 3, {rest});
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text, HasSubstr(" ~400M ~200M+\n"));
  EXPECT_THAT(text, HasSubstr("was on the PMU for part of the time only:"));
  EXPECT_THAT(text, HasSubstr("0: 50%\n"));
  EXPECT_THAT(text, HasSubstr("  + at least: counted in some epochs only: vCPU 0: instructions in "
                              "100.0 ms of 200.0 ms\n"));
  EXPECT_THAT(text, HasSubstr("2 epochs"));
}

// A vCPU that could not be opened keeps its row, and a group that never ran has no counts.
TEST(TextReport, ListsVcpusWithoutNumbers) {
  HandMadeRecording recording;
  recording.Begin();
  v1::VcpuSet set = recording.Set(1, 1, {2001});
  v1::UnopenedVcpu* unopened = set.add_unopened_vcpus();
  unopened->set_index(1);
  unopened->set_tid(2002);
  unopened->set_error(EMFILE);
  unopened->set_reason("raise the limit");
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 100'000'000,
                   .counts = {0, 0},
                   .verdict = {core::Band::kUnknown, core::Rule::kNotCounted, false}}});
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text, HasSubstr("\n   1 2002      -        -          -       -       -   -         -"
                              "         -      -     -\n"));
  EXPECT_THAT(text,
              HasSubstr("  vCPU 1 could not be opened: EMFILE: Too many open files; raise the "
                        "limit\n"));
  EXPECT_THAT(text, HasSubstr("never on the PMU while the thread ran: vCPU 0\n"));
  EXPECT_THAT(text, HasSubstr("100.0%    0.0%   -         -      0.0%      -     -\n"));
}

// Gaps with what failed and when, those of one VM under it, those of all at the end.
TEST(TextReport, ListsGapsAndLifeCycle) {
  HandMadeRecording recording;
  RecordBands(recording);
  v1::Gap gap;
  gap.set_vm(1);
  gap.set_first_tick(3);
  gap.set_last_tick(3);
  gap.set_mono_ns(kStart_ns + 3 * kTick_ns);
  gap.set_reason(v1::Gap::REASON_READ_FAILED);
  gap.set_vcpu_index(2);
  gap.set_error(EIO);
  ASSERT_TRUE(recording.Add(gap).ok());
  v1::Gap missed;
  missed.set_first_tick(5);
  missed.set_last_tick(6);
  missed.set_mono_ns(kStart_ns + 7 * kTick_ns);
  missed.set_reason(v1::Gap::REASON_TICK_MISSED);
  ASSERT_TRUE(recording.Add(missed).ok());
  v1::LifeCycle change;
  change.set_vm(1);
  change.set_kind(v1::LifeCycle::KIND_VM_ENDED);
  change.set_mono_ns(kStart_ns + 9 * kTick_ns);
  change.set_detail("the process is gone");
  ASSERT_TRUE(recording.Add(change).ok());
  change.set_vm(0);
  change.set_kind(v1::LifeCycle::KIND_VM_SKIPPED);
  change.mutable_instance()->set_name("db");
  change.set_detail("too many open files");
  change.set_skip_reason(v1::LifeCycle::SKIP_REASON_NOT_OPENED);
  ASSERT_TRUE(recording.Add(change).ok());
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text, HasSubstr("11 samples, 1 gap of its own,"));
  EXPECT_THAT(text, HasSubstr("  gap: 1 tick lost, read-failed, vCPU 2, EIO: Input/output error "
                              "(at +0.3 s)\n"));
  EXPECT_THAT(text, HasSubstr("gap of all VMs: 2 ticks lost, tick-missed (at +0.7 s)\n"));
  EXPECT_THAT(text, HasSubstr("life cycle: +0.9 s vm-ended, VM 1: the process is gone\n"));
  EXPECT_THAT(text, HasSubstr("life cycle: +0.9 s vm-skipped (not-opened) \"db\": too many open "));
}

TEST(TextReport, SaysThatItIsDegradedAndWhy) {
  HandMadeRecording recording;
  v1::Session session = HandMadeRecording::Session();
  session.set_residency_method(v1::RESIDENCY_METHOD_TIME_ENABLED);
  session.set_residency_blind_spot("an upper bound");
  session.set_degraded_reason("this machine has no PMU");
  ASSERT_TRUE(recording.Add(session).ok());
  v1::VcpuSet set = recording.Set(1, 1, {2001}, {"task-clock"});
  set.set_event_set("degraded");
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {RanDegraded(3'000'000)});
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text,
              StartsWith("DEGRADED: no hardware counter was read: this machine has no PMU. RAN"));
  EXPECT_THAT(text, HasSubstr("\nlongest spin: unknown: no hardware counter was read\n"));
  EXPECT_THAT(text, HasSubstr("vCPU  TID HALTED  RAN starved run-delay\n"
                              "   0 2001   0.0% 3.0%    0.0%      0.0%\n"));
  EXPECT_THAT(text, Not(HasSubstr("UNKNOWN")));
  EXPECT_THAT(
      text,
      HasSubstr("residency: time on a CPU, guest or host mode (no counter); an upper bound\n"));
}

// Nine degraded VMs fit a screen: a line each, the worst vCPUs, and what is the same of all is said
// once.
TEST(TextReport, ManyVmsFitAScreen) {
  HandMadeRecording recording;
  v1::Session session = HandMadeRecording::Session();
  session.set_residency_method(v1::RESIDENCY_METHOD_TIME_ENABLED);
  session.set_degraded_reason("this machine has no PMU");
  ASSERT_TRUE(recording.Add(session).ok());
  for (uint32_t vm = 1; vm <= 9; ++vm) {
    v1::VcpuSet set = recording.Set(vm, 1, {100 * vm, 100 * vm + 1}, {"task-clock"});
    set.set_event_set("degraded");
    set.add_notes("two descriptors are parked");
    v1::AbsentEvent* const absent = set.add_absent_events();
    absent->set_event("cycles");
    absent->set_reason("this machine has no PMU");
    ASSERT_TRUE(recording.Add(set).ok());
    v1::LifeCycle found;
    found.set_kind(v1::LifeCycle::KIND_VM_FOUND);
    found.set_vm(vm);
    found.set_mono_ns(kStart_ns);
    ASSERT_TRUE(recording.Add(found).ok());
    recording.First(vm, 1, 0, 2);
    Did waited = RanDegraded(vm * 1'000'000);
    waited.run_delay_ns = vm == 7 ? 80'000'000 : 0;
    waited.verdict.starved = vm == 7;
    recording.Tick(vm, 1, 1, {RanDegraded(3'000'000), waited});
  }
  const Report report = WholeReport(recording.summary);
  const std::string text = RenderText(report);
  EXPECT_LE(std::ranges::count(text, '\n'), 60) << text;
  EXPECT_THAT(
      text,
      HasSubstr(
          "most starved: vCPU 1 of VM 7 \"guest7\" waited 80.0% of its time for a CPU (starved "
          "ticks 100.0%,\n              longest run 100.0 ms at +0.0 s)\n"));
  EXPECT_THAT(text,
              HasSubstr("        VM  PID vCPUs HALTED  RAN starved run-delay samples gaps\n"
                        "1 \"guest1\" 1001     2   0.0% 2.0%    0.0%      0.0%       2    0\n"));
  EXPECT_THAT(text, HasSubstr("7 \"guest7\"    1 701   0.0% 7.0%  100.0%     80.0%\n"
                              "1 \"guest1\"    0 100 "));
  EXPECT_THAT(text, HasSubstr("\n2 more vCPUs (--top 0 shows all)\n"));
  EXPECT_THAT(text, HasSubstr("all 9 VMs:\n  not counted: cycles (see DEGRADED above)\n"
                              "  note: two descriptors are parked\n"));
  EXPECT_THAT(text, HasSubstr("life cycle: +0.0 s to +0.0 s vm-found, VMs 1, 2, 3, 4,"));

  EXPECT_THAT(RenderText(report, {.top = 0}), Not(HasSubstr("more vCPU")));
  const std::string one = RenderText(report, {.vm = 2, .vcpu = 1});
  EXPECT_THAT(one, HasSubstr("vCPU TID HALTED  RAN starved run-delay\n   1 201   0.0% 2.0%"));
  EXPECT_THAT(one, Not(HasSubstr("guest3")));
  EXPECT_THAT(one, Not(HasSubstr("   0 200")));
  const std::string brief = RenderText(report, {.brief = true});
  EXPECT_THAT(brief, HasSubstr("\n9 \"guest9\" 1009 "));
  EXPECT_LE(std::ranges::count(brief, '\n'), 20) << brief;
}

// Rows by a metric, most first; the rest is counted.
TEST(TextReport, SortsAndCutsRows) {
  HandMadeRecording recording;
  RecordBands(recording);
  const std::string text =
      RenderText(WholeReport(recording.summary), {.sort = metric::Metric::kHalted, .top = 1});
  EXPECT_THAT(text, HasSubstr("instr\n   2 2003 100.0%"));
  EXPECT_THAT(text, HasSubstr("\n2 more vCPUs (--top 0 shows all)\n"));
  EXPECT_THAT(text, Not(HasSubstr("   0 2001")));
}

// Ticks that nobody saw are not part of a stretch; much UNKNOWN time is said beside it.
TEST(TextReport, TheHeadlineClaimsNoMoreThanWasSeen) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  const Did spun = Busy(50'000'000, kSpinningLow);
  recording.Tick(1, 1, 1, {spun});
  recording.Tick(1, 1, 2, {spun});
  recording.Tick(1, 1, 5, {spun});
  recording.Tick(1, 1, 6, {Busy(90'000'000, kBetween)});
  EXPECT_THAT(
      RenderText(WholeReport(recording.summary)),
      HasSubstr("\nlongest spin: vCPU 0 for 200.0 ms (at +0.0 s; SPINNING? 83.3% of its time); "
                "16.7% of the time is\n              UNKNOWN\n"));

  HandMadeRecording unknown;
  unknown.Begin();
  ASSERT_TRUE(unknown.Add(unknown.Set(1, 1, {2001})).ok());
  unknown.First(1, 1, 0, 1);
  unknown.Tick(1, 1, 1, {Busy(90'000'000, kBetween)});
  EXPECT_THAT(RenderText(WholeReport(unknown.summary)),
              HasSubstr("\nlongest spin: unknown: no busy time could be judged\n"));
}

// A VM without counters beside one with them is named, whatever the session says.
TEST(TextReport, OneDegradedVmIsNamed) {
  HandMadeRecording recording;
  recording.Begin();
  v1::VcpuSet set = recording.Set(1, 1, {2001}, {"task-clock"});
  set.set_event_set("degraded");
  ASSERT_TRUE(recording.Add(set).ok());
  ASSERT_TRUE(recording.Add(recording.Set(2, 1, {2002})).ok());
  recording.First(1, 1, 0, 1);
  recording.First(2, 1, 0, 1);
  recording.Tick(1, 1, 1, {RanDegraded(3'000'000)});
  recording.Tick(2, 1, 1, {Busy(200'000'000, kProductiveHigh)});
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text,
              StartsWith("DEGRADED: no hardware counter was read of VM 1 \"guest1\". RAN is"));
  EXPECT_THAT(text, HasSubstr("   0 2001   0.0% 3.0% "));
  EXPECT_THAT(text, HasSubstr("   0 2002   0.0%     0.0%     100.0% "));
}

// With one vCPU chosen, no note is about another one.
TEST(TextReport, NotesAreOfTheChosenVcpu) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002})).ok());
  recording.First(1, 1, 0, 2);
  recording.Tick(1, 1, 1, {Busy(90'000'000, kBetween), Busy(90'000'000, kBetween)});
  const Report report = WholeReport(recording.summary);
  EXPECT_THAT(RenderText(report), HasSubstr(": vCPU 0 100.0%, vCPU 1 100.0%\n"));
  EXPECT_THAT(RenderText(report, {.vcpu = 1}),
              AllOf(HasSubstr(": vCPU 1 100.0%\n"), Not(HasSubstr("vCPU 0"))));
}

// The longest spin is one in a row, with the phase that most of it lies in: its first tick begins
// before the marker.
TEST(TextReport, LeadsWithTheLongestSpinAndItsPhase) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  uint64_t tick = 0;
  for (const char letter : std::string("SSPSSSPS")) {
    if (tick == 3) {
      v1::Marker marker;
      marker.set_name("body");
      marker.set_mono_ns(kStart_ns + 3 * kTick_ns + kTick_ns / 10);
      ASSERT_TRUE(recording.Add(marker).ok());
    }
    recording.Tick(
        1, 1, ++tick,
        {letter == 'S' ? Busy(50'000'000, kSpinningLow) : Busy(200'000'000, kProductiveHigh)});
  }
  EXPECT_THAT(
      RenderText(WholeReport(recording.summary)),
      HasSubstr("\nlongest spin: vCPU 0 for 300.0 ms (at +0.3 s, phase body; SPINNING? 75.0% "
                "of its time)\nmost starved: none\n"));
}

// What was lost is never silent; a recording that was whole says nothing of it.
TEST(TextReport, TellsDamage) {
  HandMadeRecording recording;
  RecordBands(recording);
  Report report = WholeReport(recording.summary);
  EXPECT_EQ(DescribeLoss(report), "");
  report.read.damages = {{.offset = 10, .bytes = 100, .reason = "CRC"},
                         {.offset = 500, .bytes = 23, .reason = "torn"}};
  report.read.lost_records = 7;
  EXPECT_EQ(DescribeLoss(report), "2 chunks damaged (123 bytes), 7 records lost");
  EXPECT_THAT(RenderText(report),
              HasSubstr("LOSS: 2 chunks damaged (123 bytes), 7 records lost\n"));
}

// Records that a collector was told of as lost: why stands behind their number.
TEST(TextReport, TellsWhyRecordsWereLostOnTheWay) {
  timeline::ReadReport read;
  read.lost_records = 1200;
  read.told_losses = {{1, 1000, v1::LostRecords::REASON_SPOOL_FULL},
                      {2001, 2200, v1::LostRecords::REASON_SPOOL_FULL}};
  EXPECT_EQ(DescribeLoss(read, 0, true),
            "1200 records lost on the way: the agent's spool was full");
  read.lost_records = 1300;
  EXPECT_EQ(DescribeLoss(read, 0, true),
            "1300 records lost, 1200 of them on the way: the agent's spool was full");
  read.told_losses[1].reason = v1::LostRecords::REASON_AGENT_BUSY;
  read.damages = {{.offset = 10, .bytes = 100, .reason = "CRC"}};
  EXPECT_EQ(DescribeLoss(read, 0, true),
            "1 chunk damaged (100 bytes), 1300 records lost, 1200 of them on the way: 1000 as the "
            "agent's spool was full, 200 as the agent was too slow to send them");
  read.told_losses = {{1, 1300, static_cast<v1::LostRecords::Reason>(99)}};
  EXPECT_THAT(DescribeLoss(read, 0, true), HasSubstr("lost on the way: why is not recorded"));
}

// A later part of a recording is not damaged: what came before it is elsewhere, or nowhere.
TEST(TextReport, TellsWhereATimelineBegins) {
  timeline::ReadReport read;
  read.lost_records = read.lost_before_first = 17834;
  EXPECT_EQ(DescribeLoss(read, 0, true), "begins with record 17835: earlier records are not here");
  read.lost_records += 10;
  read.told_losses = {{20001, 20010, v1::LostRecords::REASON_SPOOL_FULL}};
  EXPECT_EQ(DescribeLoss(read, 0, true),
            "begins with record 17835: earlier records are not here; 10 records lost on the way: "
            "the agent's spool was full");
}

// kill -9 leaves no Summary record. With --until the end was not looked at, so nothing is claimed.
TEST(TextReport, TellsARecordingThatDidNotEnd) {
  HandMadeRecording recording;
  recording.Begin();
  Report report = WholeReport(recording.summary);
  report.read.ended_in_order = false;
  EXPECT_THAT(DescribeLoss(report), HasSubstr("was not closed cleanly"));
  EXPECT_THAT(RenderText(report), HasSubstr("No VM was recorded.\n"));
  EXPECT_THAT(RenderText(report), HasSubstr("nothing happened, a tick every 100ms"));
  EXPECT_THAT(RenderText(report), HasSubstr("own cost: no tick with a sample was recorded\n"));
  report.to_ns = 1'000'000'000;
  EXPECT_EQ(DescribeLoss(report), "");
}

// Phases are what a harness looks for; a run of thousands must not bury the rest.
TEST(TextReport, ListsMarkers) {
  HandMadeRecording recording;
  RecordBands(recording);
  v1::Marker marker;
  marker.set_name("load\x1b[2J");
  marker.set_mono_ns(kStart_ns + 400'000'000);
  ASSERT_TRUE(recording.Add(marker).ok());
  EXPECT_THAT(RenderText(WholeReport(recording.summary)),
              HasSubstr("\nmarker: +0.4 s load?[2J\nown cost: "));
  for (int i = 0; i < 22; ++i) ASSERT_TRUE(recording.Add(marker).ok());
  EXPECT_THAT(RenderText(WholeReport(recording.summary)),
              HasSubstr("load?[2J\nmarker: 3 more (--json)\nown cost: "));
}

// Text of outside origin cannot write to the terminal, and no line ends in blanks.
TEST(TextReport, IsCleanText) {
  HandMadeRecording recording;
  recording.Begin();
  v1::VcpuSet set = recording.Set(1, 1, {2001});
  set.mutable_instance()->set_name("evil\x1b]0;title\x07");
  set.add_notes("note\x1b[2J");
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 1);
  const std::string text = RenderText(WholeReport(recording.summary));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("fewer than two samples in a row"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(!line.empty() && line.back() == ' ') << "'" << line << "'";
    EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(TextReport, OfAnImportHasNoOwnCostAndNoTid) {
  const ImportedRecording imported;
  const std::string text = RenderText(WholeReport(imported.summary));
  EXPECT_THAT(text, Not(HasSubstr("own cost")));
  EXPECT_THAT(text, Not(HasSubstr("pid")));
  EXPECT_THAT(text, HasSubstr("counters from elsewhere"));
  EXPECT_THAT(text, HasSubstr("vCPU HALTED SPINNING"));
  EXPECT_THAT(text,
              HasSubstr("residency: guest cycles over the highest rate seen; too high until the "
                        "first busy tick\n"));
}

}  // namespace
}  // namespace vcpulse::report
