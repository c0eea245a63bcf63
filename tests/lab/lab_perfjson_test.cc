// What the real `perf stat -j` wrote beside guests, imported by the program: the same counts. What
// perf wrote is read here once more, by other means than the import's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>

#include "monitor/metric/interval.h"
#include "monitor/timeline/reader.h"
#include "tests/kvm/run_program.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// (ns since the start, TID, event), each once.
using Key = std::tuple<int64_t, uint32_t, std::string>;

struct Written {
  std::string value;
  uint64_t running_ns = 0;
  double percent = 0;
};

std::map<Key, Written> ReadLines(const std::string& text) {
  const std::regex line(
      "\"interval\" : (\\d+)\\.(\\d{9}), \"thread\" : \"CPU \\d+/KVM-(\\d+)\", "
      "\"counter-value\" : \"([^\"]*)\", \"unit\" : \"\", \"event\" : \"([^\"]*)\", "
      "\"event-runtime\" : (\\d+), \"pcnt-running\" : ([0-9.]+)");
  std::map<Key, Written> all;
  std::istringstream lines(text);
  for (std::string written; std::getline(lines, written);) {
    std::smatch m;
    if (!std::regex_search(written, m, line)) continue;
    const int64_t t_ns = std::stoll(m[1].str()) * 1'000'000'000 + std::stoll(m[2].str());
    std::string event = m[5].str();
    if (event.ends_with(":G")) event.resize(event.size() - 2);
    all[{t_ns, static_cast<uint32_t>(std::stoul(m[3].str())), event}] = {
        m[4].str(), std::stoull(m[6].str()), std::stod(m[7].str())};
  }
  return all;
}

struct Imported {
  std::map<Key, std::optional<uint64_t>> counts;
  std::map<std::pair<int64_t, uint32_t>, uint64_t> enabled_ns;
  std::string said;
};

Imported Import(const std::string& file) {
  const std::string vpt = ::testing::TempDir() + "/lab_" + file + ".vpt";
  const kvm_tests::Finished finished = kvm_tests::RunProgram(
      kvm_tests::Vcpulse({"import", "perf-json", OutputPath("perfjson-1", file), "-o", vpt}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  Imported imported{.counts = {}, .enabled_ns = {}, .said = finished.err};
  metric::IntervalReader intervals;
  const auto take = [&](const metric::Interval& interval) {
    const uint32_t tid = interval.Vcpu().tid();
    imported.enabled_ns[{interval.EndNs(), tid}] = interval.delta.time_enabled_ns;
    for (const metric::EventPlace& event : interval.epoch.events) {
      imported.counts[{interval.EndNs(), tid, event.name}] = interval.CountOf(event).count;
    }
    return absl::OkStatus();
  };
  const auto read = timeline::ReadTimeline(
      vpt, [&](const timeline::Entry& entry) { return intervals.Add(entry, take); });
  EXPECT_TRUE(read.ok()) << read.status();
  return imported;
}

// Every count that perf wrote, and nothing where it wrote none.
void ExpectPerfsCounts(const std::map<Key, Written>& perf, const Imported& imported) {
  EXPECT_EQ(imported.counts.size(), perf.size());
  for (const auto& [key, written] : perf) {
    const auto found = imported.counts.find(key);
    const auto& [t_ns, tid, event] = key;
    ASSERT_NE(found, imported.counts.end()) << t_ns << " " << tid << " " << event;
    const bool off_cpu = written.value == "<not counted>" && written.percent == 100;
    if (off_cpu) {
      EXPECT_EQ(found->second, 0u) << t_ns << " " << tid << " " << event;
      EXPECT_EQ((imported.enabled_ns.at({t_ns, tid})), 0u);
    } else if (written.value.starts_with("<")) {
      EXPECT_EQ(found->second, std::nullopt) << t_ns << " " << tid << " " << event;
    } else {
      ASSERT_TRUE(written.value.ends_with(".000000")) << written.value;
      EXPECT_EQ(found->second, std::stoull(written.value)) << t_ns << " " << tid << " " << event;
    }
  }
}

TEST(PerfJson, ThreadsOfTwoVms) {
  const std::string text = ReadText(OutputPath("perfjson-1", "threads.json"));
  const auto perf = ReadLines(text);
  ASSERT_GE(perf.size(), 12u * 10);  // 4 threads, 3 events, most of 15 intervals
  const Imported imported = Import("threads.json");
  ExpectPerfsCounts(perf, imported);
  EXPECT_THAT(imported.said, AllOf(HasSubstr("2 VMs, 4 vCPUs"), Not(HasSubstr("broken"))));
  // perf 6.1 begins with a comment, perf 6.12 does not.
  EXPECT_EQ(imported.said.find("first line 1: comments") != std::string::npos,
            text.starts_with("#"));
  // All on the PMU all the time: the time enabled is exact.
  for (const auto& [key, written] : perf) {
    if (written.running_ns == 0) continue;
    EXPECT_EQ((imported.enabled_ns.at({std::get<0>(key), std::get<1>(key)})), written.running_ns);
  }
}

TEST(PerfJson, EventsThatTakeTurns) {
  const auto perf = ReadLines(ReadText(OutputPath("perfjson-1", "turns.json")));
  ASSERT_GE(perf.size(), 40u * 10);
  const Imported imported = Import("turns.json");
  ExpectPerfsCounts(perf, imported);
  EXPECT_THAT(imported.said, HasSubstr("perf's extrapolations"));
  size_t in_turns = 0;
  for (const auto& [key, written] : perf) {
    if (written.running_ns == 0 || written.percent >= 100) continue;
    ++in_turns;
    const auto enabled =
        static_cast<double>(imported.enabled_ns.at({std::get<0>(key), std::get<1>(key)}));
    // perf cuts the share to whole percents.
    EXPECT_NEAR(100 * static_cast<double>(written.running_ns) / enabled, written.percent + 0.5, 1);
  }
  EXPECT_GT(in_turns, 100u);
}

// The host's counts give no verdict, and the workload's lines are told.
TEST(PerfJson, ATotalWithTheHostsPart) {
  const Imported imported = Import("total.err");
  EXPECT_THAT(imported.said, AllOf(HasSubstr("counts the host too"),
                                   HasSubstr("skipped 5 lines, first line 1: no JSON object"),
                                   HasSubstr("1 VM, 1 vCPU")));
}

TEST(PerfJson, CpusAndCores) {
  EXPECT_THAT(Import("cpus.json").said, HasSubstr("rows are of CPUs of the host"));
  const kvm_tests::Finished cores = kvm_tests::RunProgram(kvm_tests::Vcpulse(
      {"import", "perf-json", OutputPath("perfjson-1", "cores.json"), "-o", "/dev/null"}));
  EXPECT_EQ(cores.exit_code, 2);
  EXPECT_THAT(cores.err, HasSubstr("counts of a core, die, socket or node"));
}

}  // namespace
}  // namespace vcpulse::lab
