#include "monitor/import/perf_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Status = PerfCount::Status;

PerfStat Read(const std::string& text) {
  auto stat = ReadPerfJson(text, "x.json");
  EXPECT_TRUE(stat.ok()) << stat.status();
  return stat.ok() ? *std::move(stat) : PerfStat();
}

std::string PerfJsonError(const std::string& text) {
  return std::string(ReadPerfJson(text, "x.json").status().message());
}

std::string Line(const std::string& value, const std::string& more = "") {
  return R"({"interval" : 0.100000000, "thread" : "CPU 0/KVM-12", "counter-value" : )" + value +
         R"(, "unit" : "", "event" : "cycles:G", "event-runtime" : 5, "pcnt-running" : 100.00)" +
         more + "}\n";
}

std::vector<std::tuple<std::string, uint64_t, uint64_t>> Kinds(const PerfStat& stat) {
  std::vector<std::tuple<std::string, uint64_t, uint64_t>> kinds;
  for (const Skipped& kind : stat.skipped) {
    kinds.emplace_back(kind.what.substr(0, 12), kind.lines, kind.first);
  }
  return kinds;
}

using Kind = std::tuple<std::string, uint64_t, uint64_t>;

TEST(PerfJson, OneLine) {
  const PerfStat stat = Read(Line("\"1234.000000\""));
  ASSERT_EQ(stat.rows.size(), 1u);
  EXPECT_EQ(stat.rows[0].t_ns, 100'000'000u);
  EXPECT_EQ(stat.rows[0].dt_ns, 100'000'000u);
  EXPECT_THAT(stat.events, ElementsAre("cycles:G"));
  EXPECT_EQ(stat.targets.at(0).comm, "CPU 0/KVM");
  EXPECT_EQ(stat.targets.at(0).number, 12u);
  const PerfCount& count = stat.counts.at(0);
  EXPECT_EQ(count.value, 1234u);
  EXPECT_EQ(count.running_ns, 5u);
  EXPECT_EQ(count.percent, 100);
  EXPECT_TRUE(count.timed);
  EXPECT_TRUE(stat.skipped.empty());
}

// Every way in which some perf or locale writes the same number.
TEST(PerfJson, Numbers) {
  for (const char* written : {R"("1234567.000000")", R"("1234567")", "1234567", "1234567.000000",
                              R"("1,234,567")", R"("1.234.567")", R"("1,234,567.000000")",
                              R"("1.234.567,000000")", R"("1234567,000000")", R"("1 234 567")",
                              "\"1\xE2\x80\xAF"
                              "234\xE2\x80\xAF"
                              "567,000000\"",
                              R"("1'234'567")"}) {
    const PerfStat stat = Read(Line(written));
    ASSERT_EQ(stat.counts.size(), 1u) << written;
    EXPECT_EQ(stat.counts[0].value, 1234567u) << written;
  }
  EXPECT_EQ(Read(Line(R"("1,234")")).counts.at(0).value, 1234u);
}

TEST(PerfJson, NumbersThatAreNone) {
  for (const char* written : {R"("")", R"("12x")", R"("-5")", R"("1.5")", "-5", "1.5", "null", "[]",
                              R"("nan")", "1e30", R"(",5")"}) {
    EXPECT_THAT(PerfJsonError(Line(written)), HasSubstr("not a whole number (1, first in line 1)"))
        << written;
  }
}

// A thread's time in ms is a count of ns.
TEST(PerfJson, MillisecondsAreNanoseconds) {
  const PerfStat stat = Read(
      R"({"interval" : 1.5, "counter-value" : "68.895248", "unit" : "msec", "event" : "task-clock"})");
  EXPECT_EQ(stat.counts.at(0).value, 68'895'248u);
  EXPECT_FALSE(stat.counts.at(0).timed);
  EXPECT_EQ(stat.rows.at(0).t_ns, 1'500'000'000u);
}

TEST(PerfJson, NotCountedAndNotSupported) {
  EXPECT_EQ(Read(Line(R"("<not counted>")")).counts.at(0).status, Status::kNotCounted);
  EXPECT_EQ(Read(Line(R"("<not supported>")")).counts.at(0).status, Status::kNotSupported);
}

// C writes these, JSON has none of them.
TEST(PerfJson, NumbersOfALocaleOutsideTexts) {
  for (const char* more :
       {R"(, "metric-value" : 1,500000)", R"(, "metric-value" : nan)", R"(, "metric-value" : -nan)",
        R"(, "metric-value" : inf)", R"(, "metric-value" : -inf, "x" : "a\"1,5nan")"}) {
    EXPECT_EQ(Read(Line(R"("7")", more)).counts.at(0).value, 7u) << more;
  }
  const PerfStat stat =
      Read(R"({"interval" : 0,200000000, "counter-value" : "7,000000", "event" : "r1,2", )"
           R"("event-runtime" : 3, "pcnt-running" : 50,00})");
  EXPECT_EQ(stat.rows.at(0).t_ns, 200'000'000u);
  EXPECT_EQ(stat.counts.at(0).percent, 50);
  EXPECT_THAT(stat.events, ElementsAre("r1,2"));
}

TEST(PerfJson, LinesOfOthersArePassedOverAndTold) {
  const PerfStat stat =
      Read("# started on Sun Nov 22\n\nhello\n" + Line("\"1\"") + "world\n" +
           R"({"interval" : 0.1, "metric-value" : "1.0", "metric-unit" : "insn per cycle"})"
           "\n" +
           R"({"core" : "S0-D0-C0", "interval" : 0.1, "counter-value" : "1", "event" : "cycles:G"})"
           "\n" +
           R"({"counter-value" : "1", "event" : "cycles:G"})"
           "\n" +
           "{nothing}\n" + Line("\"2\"") +
           R"({"interval" : 0.1, "thread" : "x", "counter-value" : "1", "event" : "cycles:G"})"
           "\n" +
           R"({"interval" : 0.2, "thread" : "CPU 0/KVM-12", "counter-va)");
  EXPECT_EQ(stat.counts.size(), 1u);
  EXPECT_EQ(stat.counts[0].value, 1u);
  EXPECT_THAT(Kinds(stat), ElementsAre(Kind("comments", 1, 1), Kind("no JSON obje", 2, 3),
                                       Kind("a metric, no", 1, 6), Kind("counts of a ", 1, 7),
                                       Kind("no \"interval", 1, 8), Kind("broken JSON", 1, 9),
                                       Kind("an event or ", 1, 11), Kind("cut off in t", 1, 12),
                                       Kind("a count of t", 1, 10)));
}

// A workload writes to the same terminal, and does not always end its line.
TEST(PerfJson, TextInFrontOfAnObject) {
  EXPECT_EQ(Read("working..." + Line("\"1\"")).counts.size(), 1u);
  EXPECT_THAT(PerfJsonError("{" + Line("\"1\"")), HasSubstr("broken JSON"));
}

TEST(PerfJson, NothingToImportNamesWhatTheLinesAre) {
  EXPECT_THAT(PerfJsonError(""), HasSubstr("x.json: no line holds a count of an interval"));
  EXPECT_THAT(PerfJsonError("# x\nfoo\nbar\n"),
              HasSubstr("comments (1, first in line 1); no JSON object: messages of others (2, "
                        "first in line 2)"));
  EXPECT_THAT(PerfJsonError(R"({"counter-value" : "1", "event" : "cycles"})"),
              HasSubstr("perf stat -I"));
}

// perf writes event by event, the threads of each in any order.
TEST(PerfJson, RowsByThread) {
  const auto line = [](const char* t, int tid, const char* event) {
    return R"({"interval" : )" + std::string(t) + R"(, "thread" : "CPU 0/KVM-)" +
           std::to_string(tid) + R"(", "counter-value" : "1", "event" : ")" + event + "\"}\n";
  };
  const PerfStat stat = Read(line("0.1", 2, "a") + line("0.1", 1, "a") + line("0.1", 1, "b") +
                             line("0.1", 2, "b") + line("0.3", 1, "a"));
  ASSERT_EQ(stat.rows.size(), 3u);
  EXPECT_EQ(stat.rows[0].size, 2u);
  EXPECT_EQ(stat.rows[1].size, 2u);
  EXPECT_EQ(stat.rows[2].size, 1u);
  EXPECT_EQ(stat.rows[2].dt_ns, 200'000'000u);
}

TEST(PerfJson, ALaterRunInTheSameFile) {
  const auto line = [](const char* t) {
    return R"({"interval" : )" + std::string(t) +
           R"(, "counter-value" : "1", "event" : "a"})"
           "\n";
  };
  const PerfStat stat = Read(line("0.1") + line("0.2") + line("0.1") + line("0.15"));
  EXPECT_EQ(stat.rows.size(), 2u);
  EXPECT_THAT(Kinds(stat), ElementsAre(Kind("of a later r", 2, 3)));
}

// It is passed over to its end, also where it lasts longer than the first.
TEST(PerfJson, ALaterRunIsNeverAContinuation) {
  const auto at = [](const char* interval) {
    return std::string(R"({"interval" : )") + interval +
           R"(, "thread" : "CPU 0/KVM-12", "counter-value" : "7.000000", "event" : "cycles:G"})" +
           "\n";
  };
  const PerfStat stat = Read(at("0.1") + at("0.2") + at("0.1") + at("0.2") + at("0.3"));
  EXPECT_EQ(stat.counts.size(), 2u);
  ASSERT_EQ(stat.skipped.size(), 1u);
  EXPECT_EQ(stat.skipped[0].lines, 3u);
}

TEST(PerfJson, CpusOldAndNew) {
  const auto cpu = [](const char* written) {
    return Read(R"({"interval" : 0.1, "cpu" : )" + std::string(written) +
                R"(, "counter-value" : "1", "event" : "a"})")
        .targets.at(0);
  };
  for (const char* written : {"\"3\"", "3", "\"CPU3\""}) {
    EXPECT_EQ(cpu(written).kind, PerfTarget::Kind::kCpu);
    EXPECT_EQ(cpu(written).number, 3u);
  }
}

TEST(PerfJson, ShareThatIsNone) {
  const PerfStat stat =
      Read(R"({"interval" : 0.1, "counter-value" : "1", "event" : "a", "event-runtime" : 5, )"
           R"("pcnt-running" : 101.00})");
  EXPECT_FALSE(stat.counts.at(0).timed);
}

struct Case {
  const char* written;
  const char* name;
  bool counts_host;
};

TEST(PerfEvent, NamesAndSides) {
  for (const Case& c : {
           Case{"cycles:G", "cycles", false},
           Case{"cycles:GD", "cycles", false},
           Case{"cycles:ukG", "cycles", false},
           Case{"cpu-cycles:G", "cycles", false},
           Case{"cpu/cycles/G", "cycles", false},
           Case{"cpu_core/cycles/G", "cpu_core/cycles/", false},
           Case{"L1-dcache-loads:G", "L1-dcache-loads", false},
           Case{"armv8_pmuv3/inst_retired/G", "armv8_pmuv3/inst_retired/", false},
           Case{"r01a8:G", "r01a8", false},
           Case{"misc_retired.pause_inst:G", "misc_retired.pause_inst", false},
           // One privilege level of the guest is no cycles of the guest.
           Case{"cycles:uG", "cycles:uG", false},
           Case{"cycles", "cycles:H", true},
           Case{"cycles:u", "cycles:u", true},
           Case{"cycles:GH", "cycles:GH", true},
           Case{"cpu/cycles/", "cycles:H", true},
           Case{"r01a8", "r01a8:H", true},
           Case{"task-clock", "task-clock", true},
           Case{"task-clock:G", "task-clock:G", true},
           Case{"kvm:kvm_exit", "kvm:kvm_exit", true},
           Case{"i1", "i1", false},
           Case{"no such (thing)", "no such (thing)", false},
       }) {
    const PerfEvent event = ReadPerfEvent(c.written);
    EXPECT_EQ(event.name, c.name) << c.written;
    EXPECT_EQ(event.counts_host, c.counts_host) << c.written;
  }
  EXPECT_TRUE(ReadPerfEvent("task-clock").by_nature);
  EXPECT_FALSE(ReadPerfEvent("cycles").by_nature);
}

}  // namespace

}  // namespace vcpulse::importing
