// Every command that reads timelines reads those of every schema release; and so does a reader that
// shares no code with vcpulse (docs/examples/read_timeline.py). Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "boost/json.hpp"
#include "tests/fakes/temporary_folder.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace json = boost::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Golden {
  const char* name;
  const char* vm;    // a VM in it
  size_t intervals;  // of all its vCPUs
  // Exit code: the first one is too short to be judged, of the second a VM was skipped, and it does
  // not say whether that ran KVM.
  int check;
};
constexpr Golden kGolden[] = {{"timeline-v1.vpt", "g\xc3\xa4st", 25, 3},
                              {"timeline-v2.vpt", "turns", 142, 3},
                              {"timeline-v3.vpt", "counted", 78, 0},
                              {"timeline-v4.vpt", "counted", 58, 0},
                              {"timeline-v5.vpt", "counted", 38, 0}};

std::string PathOf(const Golden& golden) {
  return std::string(VCPULSE_TEST_DATA) + "/" + golden.name;
}

std::vector<json::object> Lines(const std::string& text) {
  std::vector<json::object> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line).as_object());
  return lines;
}

class GoldenTimelines : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTimelines, AreAsManyAsThereAreReleases) {
  size_t there = 0;
  for (const auto& file : std::filesystem::directory_iterator(VCPULSE_TEST_DATA)) {
    there += file.path().extension() == ".vpt" ? 1 : 0;
  }
  EXPECT_EQ(there, std::size(kGolden)) << "a release without a row above";
}

// A reader written from docs/timeline.md and the published schema alone sees the same values.
TEST_P(GoldenTimelines, AreReadByAReaderOfItsOwn) {
  const std::filesystem::path folder = fakes::MakeTemporaryFolder();
  ASSERT_FALSE(folder.empty());
  const Finished made = RunProgram({"protoc", "--python_out=" + folder.string(), "-I",
                                    VCPULSE_PROTO_FOLDER, "vcpulse/v1/timeline.proto"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Finished own =
      RunProgram({"env", "PYTHONPATH=" + folder.string(), VCPULSE_OWN_READER, PathOf(GetParam())});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(own.exit_code, 0) << own.err;
  const Finished exported =
      RunProgram(Vcpulse({"export", PathOf(GetParam()), "--format", "jsonl"}));
  ASSERT_EQ(exported.exit_code, 0) << exported.err;

  const std::vector<json::object> seen = Lines(own.out);
  const std::vector<json::object> ours = Lines(exported.out);
  ASSERT_EQ(ours.size(), GetParam().intervals);
  ASSERT_EQ(seen.size(), ours.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    for (const auto& [key, value] : seen[i]) {
      ASSERT_TRUE(ours[i].contains(key)) << key << ": " << json::serialize(ours[i]);
      EXPECT_EQ(json::serialize(ours[i].at(key)), json::serialize(value))
          << key << " of line " << i;
    }
  }
}

TEST(GoldenHotAddresses, AreNamedFromTheTimeline) {
  const std::string file = std::string(VCPULSE_TEST_DATA) + "/timeline-v3.vpt";
  const std::string map = ::testing::TempDir() + "golden.map";
  std::ofstream(map) << "ffffffff81000000 T lock\nffffffff81001000 T end\n";
  const Finished finished = RunProgram(Vcpulse({"hotspots", file, "--guest-system-map", map}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(
      finished.out,
      HasSubstr("vCPU 1: 100 samples in 1.0 s by kvm-exit, 1 window after starvation, 2 lost, "
                "1 while halted\n"
                "   90.0 %      90  kernel  lock\n"
                "    7.0 %       7  user    0x401000\n"
                "    3.0 %       3          places that were left out\n"));
}

// The file has the names and the code itself.
TEST(GoldenHotAddresses, AreNamedByTheTimelineItself) {
  const Finished finished =
      RunProgram(Vcpulse({"hotspots", std::string(VCPULSE_TEST_DATA) + "/timeline-v5.vpt"}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(
      finished.out,
      HasSubstr("vCPU 0: 100 samples in 1.0 s by cycles, 1 window after spinning\n"
                "   60.0 %      60  kernel  lock_slowpath\n"
                "   30.0 %      30  user    0x401000\n"
                "   10.0 %      10  kernel  0xffffffffc0000000\n"
                "  waits in place: at least 60.0 % after spinning in a loop with PAUSE, WFE "
                "or YIELD\n"));
}

// Statistics stand in the row after each reading but the first, as rates; what was not read is
// null.
TEST(GoldenStatistics, AreRatesInTheRowsAfterReadings) {
  const Finished exported = RunProgram(Vcpulse(
      {"export", std::string(VCPULSE_TEST_DATA) + "/timeline-v3.vpt", "--format", "jsonl"}));
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  std::vector<json::object> rows;
  for (const json::object& row : Lines(exported.out)) {
    if (row.contains("exits")) rows.push_back(row);
  }
  // Both vCPUs after the first reading, which gives no rate, and after the two that follow; vCPU 0
  // alone after the last.
  ASSERT_EQ(rows.size(), 7u);
  const auto number = [&rows](size_t i, const char* key) {
    return rows[i].at(key).is_null() ? -1 : rows[i].at(key).to_number<double>();
  };
  EXPECT_EQ(number(0, "exits"), -1);
  EXPECT_EQ(rows[2].at("tick"), 10);
  EXPECT_EQ(number(2, "exits"), 1000);
  EXPECT_EQ(number(2, "halt_exits"), 400);
  EXPECT_EQ(number(2, "io_exits"), 0);
  EXPECT_EQ(number(3, "io_exits"), 60);
  EXPECT_EQ(number(2, "halt_poll"), 250);
  EXPECT_EQ(number(2, "migrations"), 3);
  EXPECT_EQ(number(2, "preemptions"), 7);
  EXPECT_EQ(number(5, "migrations"), -1);  // vCPU 1 at tick 20: not read
  EXPECT_EQ(number(5, "exits"), 1000);
  EXPECT_EQ(number(6, "migrations"), 3);  // vCPU 0 at tick 30
  EXPECT_EQ(number(6, "exits"), -1);      // nothing of KVM's any more
}

// Shares of the 500 ms that were waited; the refusal is of another vCPU.
TEST(GoldenCompetitors, AreNamed) {
  const std::string file = std::string(VCPULSE_TEST_DATA) + "/timeline-v4.vpt";
  const Finished report = RunProgram(Vcpulse({"report", file, "--columns", "numa_remote"}));
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(
      report.out,
      HasSubstr(
          "competitors, vCPU 0: 60.0 % vCPU 1 of counted, 20.0 % CPU 0/KVM of VM elsewhere (PID "
          "8001), 10.0 %\n"
          "                       kernel thread kworker/4:1 [77], 6.0 % others, 4.0 % unattributed "
          "of the 500\n"
          "                       ms that it waited (1 window, CPU 4, 6)\n"));
  EXPECT_THAT(report.out, HasSubstr("competitors were not watched: vCPU 1: the thread of vCPU 1"));
  EXPECT_THAT(report.out, HasSubstr("         33.3\n"));  // one reading of three
}

INSTANTIATE_TEST_SUITE_P(Releases, GoldenTimelines, ::testing::ValuesIn(kGolden),
                         [](const auto& release) {
                           return "v" + std::to_string(release.index + 1);
                         });

constexpr const char* kAgain = "FILE";  // the same timeline once more

struct Reader {
  const char* name;
  std::vector<std::string> before;  // FILE
  std::vector<std::string> after;
  bool names_vms = true;  // its output has the names of VMs
};

const std::vector<Reader>& Readers() {
  static const auto* const readers = new std::vector<Reader>{
      {.name = "report", .before = {"report"}, .after = {}},
      {.name = "reportJson", .before = {"report", "--json"}, .after = {}},
      {.name = "explain", .before = {"report", "--explain", "vm=1,vcpu=0"}, .after = {}},
      {.name = "check", .before = {"check", "--expect", "gaps <= 60%"}, .after = {}},
      {.name = "classify", .before = {"classify"}, .after = {"-o", "-"}, .names_vms = false},
      {.name = "jsonl", .before = {"export", "--format", "jsonl"}, .after = {}},
      {.name = "csv", .before = {"export", "--format", "csv"}, .after = {}},
      {.name = "perfetto", .before = {"export", "--format", "perfetto"}, .after = {}},
      {.name = "replay", .before = {"replay", "--speed", "max"}, .after = {}},
      {.name = "replayDelimited",
       .before = {"replay", "--speed", "max", "--format", "delimited"},
       .after = {}},
      {.name = "page", .before = {"report", "--html", "-"}, .after = {}, .names_vms = false},
      {.name = "compare", .before = {"compare"}, .after = {kAgain}, .names_vms = false},
  };
  return *readers;
}

class GoldenReaders : public ::testing::TestWithParam<std::tuple<Golden, Reader>> {};

TEST_P(GoldenReaders, ReadThem) {
  const auto& [golden, reader] = GetParam();
  std::vector<std::string> arguments = reader.before;
  arguments.push_back(PathOf(golden));
  for (const std::string& argument : reader.after) {
    arguments.push_back(argument == kAgain ? PathOf(golden) : argument);
  }
  const Finished finished = RunProgram(Vcpulse(arguments));
  EXPECT_EQ(finished.exit_code, reader.before[0] == "check" ? golden.check : 0) << finished.err;
  EXPECT_THAT(finished.err, Not(AnyOf(HasSubstr("damaged"), HasSubstr("lost"))));
  EXPECT_FALSE(finished.out.empty());
  if (reader.names_vms) {
    EXPECT_THAT(finished.out, HasSubstr(golden.vm));
  }
}

std::string NameOfPair(const ::testing::TestParamInfo<std::tuple<Golden, Reader>>& info) {
  const Golden& golden = std::get<0>(info.param);
  return std::string(std::get<1>(info.param).name) + "_" + std::string(golden.name).substr(9, 2);
}

INSTANTIATE_TEST_SUITE_P(Releases, GoldenReaders,
                         ::testing::Combine(::testing::ValuesIn(kGolden),
                                            ::testing::ValuesIn(Readers())),
                         NameOfPair);

}  // namespace
}  // namespace vcpulse::kvm_tests
