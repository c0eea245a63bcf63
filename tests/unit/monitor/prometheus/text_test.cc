// All texts together: what an independent reader says of them, and what docs/prometheus.md does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "monitor/metric/metric.h"
#include "monitor/prometheus/exposition.h"
#include "tests/unit/fixtures/made_statistics.h"
#include "tests/unit/fixtures/run_with_input.h"
#include "tests/unit/monitor/prometheus/metrics_fixture.h"

namespace vcpulse::prometheus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// With a series of each family.
std::string FullRecordingText() {
  CountedRecording recording;
  recording.AddSet(
      1, 1, "guest \"a\"\n\\\xFF",
      {"cycles", "instructions", "branches", "branch-misses", "cache-misses", "ref-cycles"});
  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set = recording.kept->VcpuSets().front();
  set.set_vm(2);
  set.mutable_instance()->set_pid(2);
  set.mutable_instance()->set_uuid("2b0b7f3c-0000-0000-0000-000000000000");
  recording.writer->Add(record, 0);
  for (int i = 0; i < 3; ++i) {
    *record.mutable_statistics() = fixtures::StatisticsOf(
        1, 1, i + 1,
        {"migrations", "involuntary_switches", "exits", "halt_exits", "io_exits", "signal_exits",
         "hypercalls", "wfe_exit_stat", "halt_poll_fail_ns"},
        {std::vector<uint64_t>(9)});
    recording.writer->Add(record, 0);
    recording.AddTick(1, 1, {});
  }
  return recording.Text();
}

struct Family {
  std::string type;
  std::set<std::string> labels;
  bool operator==(const Family&) const = default;
};
void PrintTo(const Family& family, std::ostream* out) {
  *out << family.type;
  for (const std::string& label : family.labels) *out << " " << label;
}

// What lies between the next pair of `mark`, and removes it; "" where there is none.
std::string Take(std::string& text, char mark) {
  const size_t begin = text.find(mark);
  const size_t end = text.find(mark, begin + 1);
  if (begin == std::string::npos || end == std::string::npos) return "";
  const std::string taken = text.substr(begin + 1, end - begin - 1);
  text.erase(0, end + 1);
  return taken;
}

std::map<std::string, Family> FamiliesOf(const std::string& text) {
  std::map<std::string, Family> families;
  std::istringstream lines(text);
  std::string line;
  std::string name;
  while (std::getline(lines, line)) {
    if (line.starts_with("# TYPE ")) {
      std::istringstream words(line.substr(7));
      words >> name;
      EXPECT_FALSE(families.contains(name)) << name << " twice";
      words >> families[name].type;
    } else if (!line.starts_with('#')) {
      EXPECT_THAT(line, StartsWith(name));
      for (size_t i = line.find_first_of("{,"); i != std::string::npos;) {
        const size_t equals = line.find("=\"", i);
        const std::string label = line.substr(i + 1, equals - i - 1);
        if (label != "le") families[name].labels.insert(label);
        const size_t next = line.find("\",", equals);
        i = next == std::string::npos ? next : next + 1;
      }
    }
  }
  return families;
}

// Those of docs/prometheus.md, and the counters of the table of metrics, which it refers to.
std::map<std::string, Family> FamiliesOfTheDocs() {
  std::map<std::string, Family> families;
  for (const metric::Info& info : metric::Table()) {
    for (const metric::Counter& counter : info.counters) {
      if (counter.of == nullptr) continue;
      const std::string name(counter.name.substr(std::string("vcpulse_vcpu_").size()));
      families["vcpulse_vcpu_" + name] = {.type = "counter", .labels = {"pid", "vcpu", "vm"}};
      families["vcpulse_vm_" + name] = {.type = "counter", .labels = {"pid", "vm"}};
      families["vcpulse_host_" + name] = {.type = "counter", .labels = {}};
    }
  }
  std::ifstream docs(VCPULSE_PROMETHEUS_DOC);
  std::string line;
  while (std::getline(docs, line)) {
    if (!line.starts_with("| `vcpulse_")) continue;
    Family& family = families[Take(line, '`')];
    family.type = Take(line, '|');
    family.type = family.type.substr(1, family.type.size() - 2);
    std::string labels = line.substr(0, line.find('|'));
    while (true) {
      const std::string label = Take(labels, '`');
      if (label.empty()) break;
      family.labels.insert(label);
    }
  }
  return families;
}

TEST(MetricsText, TheDocsHaveAllOfThemAndNoOther) {
  EXPECT_EQ(
      FamiliesOf(FullRecordingText() + TextOf(FullUplinkStats()) + TextOf(FullCollectorStats())),
      FamiliesOfTheDocs());
}

TEST(MetricsText, PromtoolHasNothingToSay) {
  if (tests::RunWithInput("promtool --version", "").exit_code != 0) {
    GTEST_SKIP() << "promtool is not there (package prometheus)";
  }
  for (const std::string& text :
       {FullRecordingText() + TextOf(FullUplinkStats()),
        CountedRecording().Text() + TextOf(stream::Uplink::Stats()), TextOf(FullCollectorStats()),
        TextOf(stream::Collector::Stats())}) {
    const tests::Judgement judgement = tests::RunWithInput("promtool check metrics", text);
    EXPECT_EQ(judgement.exit_code, 0) << text;
    EXPECT_EQ(judgement.said, "");
  }
  // It would have something to say.
  EXPECT_NE(tests::RunWithInput("promtool check metrics", "a_total{b=\"\\\n\"} 1\n").exit_code, 0);
}

TEST(MetricsText, EachCountIsInItsPlace) {
  const std::string uplink = TextOf(FullUplinkStats());
  for (const char* line :
       {"stream_connected 1", "stream_connects_total 2", "stream_sent_chunks_total 3",
        "stream_acknowledged_chunks_total 4", "stream_lost_chunks_total 5",
        "stream_lost_records_total 6", "stream_waiting_chunks 7", "stream_spool_bytes 8",
        "stream_spool_memory_bytes 9", "stream_queue_bytes 10", "stream_spool_limit_bytes 11"}) {
    EXPECT_THAT(uplink, HasSubstr("\nvcpulse_" + std::string(line) + "\n"));
  }
  const std::string collector = TextOf(FullCollectorStats());
  for (const char* line :
       {"connections 2", "accepted_connections_total 3", "refused_connections_total 4",
        "malformed_connections_total 5", "commits_total 6", "pending_bytes 7", "followers 8",
        "storage_failing 1"}) {
    EXPECT_THAT(collector, HasSubstr("\nvcpulse_collector_" + std::string(line) + "\n"));
  }
  const std::string agent = "{agent=\"host-a.example\"} ";
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"connections", "9"},
                                          {"streams_total", "10"},
                                          {"chunks_total", "11"},
                                          {"bytes_total", "12"},
                                          {"duplicates_total", "13"},
                                          {"gaps_total", "14"},
                                          {"lost_records_total", "15"},
                                          {"errors_total", "16"},
                                          {"lag_seconds", "0.25"},
                                          {"last_chunk_timestamp_seconds", "1700000000.5"}}) {
    EXPECT_THAT(collector, HasSubstr("\nvcpulse_collector_agent_" + name + agent + value + "\n"));
  }
  EXPECT_THAT(collector,
              HasSubstr("{agent=\"host-a.example\",host=\"host of host-a.example\"} 1\n"));
}

TEST(MetricsText, ATimeThatIsNotKnownIsAbsent) {
  stream::Collector::Stats stats;
  stats.agents.resize(1);
  stats.agents[0].agent_id = "a";
  EXPECT_THAT(TextOf(stats), Not(HasSubstr("\nvcpulse_collector_agent_lag_seconds{")));
  EXPECT_THAT(TextOf(stats), HasSubstr("\nvcpulse_collector_storage_failing 0\n"));
}

TEST(MetricsText, IsServedToThisMachinesNamesAlone) {
  const auto get = [](const char* target, const char* host) {
    return AnswerScrape({.method = "GET", .target = target, .host = host, .port = 9464},
                        "vcpulse record", [] { return std::string("a 1\n"); });
  };
  EXPECT_EQ(get("/metrics", "localhost:9464").body, "a 1\n");
  EXPECT_EQ(get("/metrics?x", "localhost:9464").status, 200);
  EXPECT_EQ(get("/metrics", "localhost:9464").content_type,
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(get("/", "127.0.0.1:9464").body, HasSubstr("<a href=\"/metrics\">"));
  EXPECT_EQ(get("/other", "localhost:9464").status, 404);
  EXPECT_EQ(get("/metrics", "evil.example:9464").status, 421);
}

}  // namespace
}  // namespace vcpulse::prometheus
