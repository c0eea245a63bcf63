// `vcpulse rollup`, and commands that join the parts of one recording. Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGolden[] = VCPULSE_TEST_DATA "/timeline-v2.vpt";
constexpr char kOther[] = VCPULSE_TEST_DATA "/timeline-v1.vpt";

Finished RunCommand(const std::vector<std::string>& arguments) {
  return RunProgram(Vcpulse(arguments));
}

class RollupCommand : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name).string(); }

  // Folders of two collectors that have every other chunk, and the second one in common.
  std::pair<std::string, std::string> TwoCollectors() const {
    const std::string magic("\x89VPT\r\n\x1a\n", 8);
    const std::string golden = Contents(kGolden);
    const std::string stream = "host1/20261122T072146Z-" + std::string(32, '0');
    const std::pair folders(Path("c1/" + stream), Path("c2/" + stream));
    fs::create_directories(folders.first);
    fs::create_directories(folders.second);
    size_t number = 1;
    for (size_t at = 0; at < golden.size(); ++number) {
      const size_t end = std::min(golden.find(magic, at + 1), golden.size());
      const std::string name = "/0000000000000000000" + std::to_string(number) + ".vpt";
      const std::string chunk = golden.substr(at, end - at);
      if (number % 2 == 0) std::ofstream(folders.first + name, std::ios::binary) << chunk;
      if (number % 2 == 1 || number == 2) {
        std::ofstream(folders.second + name, std::ios::binary) << chunk;
      }
      at = end;
    }
    return folders;
  }

  void ExpectRefused(std::vector<std::string> arguments,
                     const ::testing::Matcher<std::string>& line) const {
    arguments.insert(arguments.begin(), "rollup");
    const Finished refused = RunCommand(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, AllOf(StartsWith("vcpulse: "), line));
  }

  fakes::ProcDir folder_;
};

TEST_F(RollupCommand, FoldersOfTwoCollectorsAreOneTimeline) {
  const auto [first, second] = TwoCollectors();
  for (std::vector<std::string> command : {std::vector<std::string>{"report", "--json"},
                                           {"export", "--format", "csv"},
                                           {"report", "--html", "-"},
                                           {"rollup", "--window", "1s"}}) {
    std::vector<std::string> whole = command;
    whole.emplace_back(kGolden);
    command.insert(command.end(), {first, second});
    const Finished joined = RunCommand(command);
    const Finished expected = RunCommand(whole);
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
    EXPECT_EQ(joined.out, expected.out) << command[0];
    EXPECT_EQ(joined.err, expected.err);
  }
  const Finished found = RunCommand({"rollup", Path("c1"), Path("c2"), "--window", "1s"});
  EXPECT_EQ(found.out, RunCommand({"rollup", kGolden, "--window", "1s"}).out);
}

// As after a replay under another name: `report` and `export` join by the stream too.
TEST_F(RollupCommand, OneStreamUnderTwoAgentsCountsOnce) {
  const auto [first, second] = TwoCollectors();
  fs::rename(Path("c2/host1"), Path("c1/host2"));
  const std::string once = RunCommand({"rollup", kGolden, "--window", "1s"}).out;
  const Finished whole = RunCommand({"rollup", Path("c1"), "--window", "1s"});
  EXPECT_EQ(whole.out, once);
  EXPECT_EQ(whole.err, "");
  const Finished twice = RunCommand({"rollup", Path("c1"), Path("c1/host2"), "--window", "1s"});
  EXPECT_EQ(twice.exit_code, 0) << twice.err;
  EXPECT_EQ(twice.out, once);
}

TEST_F(RollupCommand, AFolderTakesAFilePerWindow) {
  const std::string out = Path("rollups") + "/";
  const Finished rolled = RunCommand({"rollup", kGolden, kOther, "--window", "1s,60s", "-o", out});
  EXPECT_EQ(rolled.exit_code, 0) << rolled.err;
  EXPECT_EQ(Contents(out + "1s.csv"),
            RunCommand({"rollup", kGolden, kOther, "--window", "1s"}).out);
  EXPECT_EQ(Contents(out + "1m.csv"), RunCommand({"rollup", kGolden, kOther}).out);
  const Finished lines = RunCommand({"rollup", kGolden, "--format", "jsonl"});
  EXPECT_THAT(lines.out, StartsWith("{\"window_start_ns\":"));
}

TEST_F(RollupCommand, AFileAndAFolderOfOneRecordingCountOnce) {
  const auto [first, second] = TwoCollectors();
  const std::string whole = RunCommand({"rollup", kGolden, "--window", "1s"}).out;
  EXPECT_EQ(RunCommand({"rollup", kGolden, first, "--window", "1s"}).out, whole);
  EXPECT_EQ(RunCommand({"rollup", second, kGolden, "--window", "1s"}).out, whole);
}

// As of a stream whose first chunks the broker removed before a collector took them.
TEST_F(RollupCommand, ABeginningThatIsMissingIsSaid) {
  const auto [first, second] = TwoCollectors();
  fs::remove(second + "/00000000000000000001.vpt");
  fs::remove(second + "/00000000000000000002.vpt");
  fs::remove(first + "/00000000000000000002.vpt");
  const auto begins = HasSubstr("begins with record 49: earlier records are not here");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"report", "--json", first, second},
        {"report", "--json", second + "/00000000000000000003.vpt"},
        {"export", "--format", "csv", first, second},
        {"rollup", "--window", "1s", Path("c1"), Path("c2")}}) {
    const Finished said = RunCommand(command);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_THAT(said.err, begins) << command[0];
    if (command[0] == "report") {
      EXPECT_THAT(said.out, HasSubstr("\"lost_before_first\": 48,"));
    }
  }
}

TEST_F(RollupCommand, ABadRecordingIsLeftOut) {
  fs::create_directories(Path("d"));
  fs::copy_file(kGolden, Path("d/a.vpt"));
  std::ofstream(Path("bad.vpt")) << "no timeline";
  fs::copy_file(kOther, Path("d/c.vpt"));
  const Finished good = RunCommand({"rollup", Path("d")});
  const Finished some = RunCommand({"rollup", Path("bad.vpt"), Path("d")});
  EXPECT_EQ(some.exit_code, 0);
  EXPECT_EQ(some.out, good.out);
  EXPECT_THAT(some.err, AllOf(StartsWith("vcpulse: warning: "), HasSubstr(Path("bad.vpt")),
                              HasSubstr(": left out\n")));
  EXPECT_EQ(RunCommand({"rollup", Path("d"), Path("bad.vpt")}).out, good.out);
  ExpectRefused({Path("bad.vpt")}, HasSubstr("is not a vcpulse timeline"));
  fs::create_directories(Path("empty"));
  for (const std::string& without : {Path("empty"), Path("none")}) {
    const Finished others = RunCommand({"rollup", without, Path("d")});
    EXPECT_EQ(others.exit_code, 0);
    EXPECT_EQ(others.out, good.out);
    EXPECT_THAT(others.err, AllOf(HasSubstr(without), HasSubstr(": left out\n")));
  }
  const Finished neither = RunCommand({"rollup", Path("empty"), Path("none"), "-o", Path("out")});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.err, AllOf(HasSubstr(Path("empty") + " is a directory"),
                                 HasSubstr("vcpulse: cannot read " + Path("none"))));
  EXPECT_FALSE(fs::exists(Path("out")));
}

TEST_F(RollupCommand, BadInputIsOneLine) {
  ExpectRefused({kGolden, "--window", "0s"}, HasSubstr("--window: '0s' is shorter than 1ms"));
  ExpectRefused({kGolden, "--window", "7"}, HasSubstr("--window: '7' has no unit"));
  ExpectRefused({kGolden, "--window", "10s,10s"}, HasSubstr("'10s' is given twice"));
  ExpectRefused({kGolden, "--window", "2d"}, HasSubstr("'2d' is longer than 24h"));
  ExpectRefused({kGolden, "--format", "xml"},
                HasSubstr("--format: 'xml' is none of csv, jsonl, parquet"));
  ExpectRefused({Path("none")}, HasSubstr("cannot read " + Path("none")));
  fs::create_directories(Path("empty"));
  ExpectRefused({Path("empty")}, HasSubstr("holds no timeline (*.vpt)"));
  ExpectRefused({kGolden, "-o", kGolden}, HasSubstr("is the file that is read"));
  const Finished apart = RunCommand({"report", kGolden, kOther});
  EXPECT_EQ(apart.exit_code, 2);
  EXPECT_THAT(apart.err, HasSubstr("are separate recordings"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests
