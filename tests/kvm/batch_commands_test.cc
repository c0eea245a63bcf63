// `import`, `classify`, `merge` and `export`: what a failure leaves behind, and where
// a closed pipe is none. Needs no guest.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs it with a standard output that nobody reads any more.
Finished RunIntoClosedPipe(std::vector<std::string> arguments) {
  constexpr int kPassedOn = 9;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  dup2(ends[1], kPassedOn);
  close(ends[0]);
  close(ends[1]);
  arguments.insert(arguments.begin(), {"sh", "-c", "exec \"$@\" >&9", "sh"});
  Finished finished = RunProgram(arguments);
  close(kPassedOn);
  return finished;
}

struct Command {
  const char* name;
  std::vector<std::string> before;  // FILE
  std::vector<std::string> after;
};

const Command kImport = {.name = "import", .before = {"import", "csv"}, .after = {}};
const Command kClassify = {.name = "classify", .before = {"classify"}, .after = {}};
const Command kMerge = {.name = "merge", .before = {"merge"}, .after = {}};
const Command kExport = {
    .name = "exportJsonl", .before = {"export"}, .after = {"--format", "jsonl"}};
const Command kExportCsv = {
    .name = "exportCsv", .before = {"export"}, .after = {"--format", "csv"}};
const Command kExportPerfetto = {
    .name = "exportPerfetto", .before = {"export"}, .after = {"--format", "perfetto"}};

class BatchCommands : public ::testing::TestWithParam<const Command*> {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.Path("out"));
    // Long enough for `export` to have written some of it before it meets the end.
    std::ofstream csv(csv_);
    csv << "dt_ns,cycles,instructions\n";
    for (int row = 0; row < 500; ++row) csv << "100000000,8,9\n";
    csv.close();
    NewTimeline(timeline_);
  }

  void NewTimeline(const std::string& path) const {
    ASSERT_EQ(RunProgram(Vcpulse({"import", "csv", csv_, "-o", path})).exit_code, 0);
  }

  // What the command can read.
  std::string Good() const { return GetParam() == &kImport ? csv_ : timeline_; }

  static std::vector<std::string> Arguments(const std::string& file, const std::string& output) {
    std::vector<std::string> arguments = GetParam()->before;
    arguments.push_back(file);
    arguments.insert(arguments.end(), GetParam()->after.begin(), GetParam()->after.end());
    arguments.insert(arguments.end(), {"-o", output});
    return Vcpulse(arguments);
  }

  // One line, exit code 2, and the older OUT is as it was, with nothing beside it.
  void ExpectRefused(const std::vector<std::string>& arguments,
                     const ::testing::Matcher<std::string>& line) const {
    std::ofstream(output_) << "older";
    const Finished finished = RunProgram(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, AllOf(::testing::StartsWith("vcpulse: "), line));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_EQ(Contents(output_), "older");
    EXPECT_EQ(FilesBesideOutput(), 1);
  }

  std::ptrdiff_t FilesBesideOutput() const {
    return std::distance(fs::directory_iterator(folder_.Path("out")), fs::directory_iterator());
  }

  fakes::ProcDir folder_;
  std::string csv_ = folder_.Path("x.csv");
  std::string timeline_ = folder_.Path("x.vpt");
  std::string output_ = folder_.Path("out/x.out");
};

std::string NameOf(const ::testing::TestParamInfo<const Command*>& info) {
  return info.param->name;
}

INSTANTIATE_TEST_SUITE_P(Each, BatchCommands,
                         ::testing::Values(&kImport, &kClassify, &kMerge, &kExport, &kExportCsv,
                                           &kExportPerfetto),
                         NameOf);

// Those that read timelines.
class TimelineCommands : public BatchCommands {};
INSTANTIATE_TEST_SUITE_P(Each, TimelineCommands,
                         ::testing::Values(&kClassify, &kMerge, &kExport, &kExportCsv,
                                           &kExportPerfetto),
                         NameOf);

class Exports : public BatchCommands {};
INSTANTIATE_TEST_SUITE_P(Each, Exports, ::testing::Values(&kExport, &kExportCsv, &kExportPerfetto),
                         NameOf);

TEST_P(BatchCommands, FilesThatCannotBeRead) {
  const std::string none = folder_.Path("none");
  ExpectRefused(Arguments(none, output_),
                AllOf(HasSubstr(none), ::testing::ContainsRegex("[Nn]o such file")));
  ExpectRefused(Arguments(folder_.Path("out"), output_), HasSubstr("/out"));
}

TEST_P(BatchCommands, OutputsThatCannotBeWritten) {
  ExpectRefused(Arguments(Good(), "/dev/full"),
                AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
  ExpectRefused(Arguments(Good(), folder_.Path("nowhere/x")), HasSubstr("nowhere/x"));
  ExpectRefused(Arguments(Good(), folder_.Path("out")), HasSubstr("/out"));
  ExpectRefused(Arguments(Good(), ""), HasSubstr("--output"));
}

TEST_P(BatchCommands, TheFileThatIsReadIsNotOverwritten) {
  const std::string before = Contents(Good());
  ExpectRefused(Arguments(Good(), Good()), HasSubstr("is the file that is read"));
  EXPECT_EQ(Contents(Good()), before);
  // Nor by the older file that is put aside.
  const std::string newer = folder_.Path("newer");
  std::ofstream(newer) << "newer";
  fs::copy_file(Good(), newer + ".old");
  ExpectRefused(Arguments(newer + ".old", newer), HasSubstr("would be kept as"));
  EXPECT_EQ(Contents(newer + ".old"), before);
  EXPECT_EQ(Contents(newer), "newer");
}

TEST_P(BatchCommands, AClosedPipeIsNoFailure) {
  const Finished finished = RunIntoClosedPipe(Arguments(Good(), "-"));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, Not(HasSubstr("Broken pipe")));
}

TEST_P(BatchCommands, AnOlderFileIsKeptBesideTheNewOne) {
  std::ofstream(output_) << "older";
  const Finished finished = RunProgram(Arguments(Good(), output_));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_GT(fs::file_size(output_), 5u);
  EXPECT_EQ(Contents(output_ + ".old"), "older");
  EXPECT_EQ(FilesBesideOutput(), 2);
}

// A folder that holds separate recordings is refused before anything is written, each named.
TEST_P(TimelineCommands, TwoRecordingsInOneFolder) {
  const std::string second = folder_.Path("two/second.vpt");
  fs::create_directories(folder_.Path("two"));
  NewTimeline(second);
  fs::copy_file(timeline_, folder_.Path("two/first.vpt"));
  ExpectRefused(Arguments(folder_.Path("two"), output_),
                AllOf(HasSubstr("separate recordings"),
                      HasSubstr(std::string(folder_.Path("two/first.vpt")) + ", " + second)));
}

// The error comes when the first recording was written already.
TEST_P(TimelineCommands, TwoRecordingsInOneFile) {
  const std::string second = folder_.Path("second.vpt");
  NewTimeline(second);
  const std::string both = folder_.Path("both.vpt");
  std::ofstream(both, std::ios::binary) << Contents(timeline_) << Contents(second);
  ExpectRefused(Arguments(both, output_), HasSubstr("both.vpt"));
}

TEST_P(BatchCommands, UnknownWords) {
  if (GetParam()->before.front() == "export") {
    ExpectRefused(Vcpulse({"export", timeline_, "--format", "xml", "-o", output_}),
                  HasSubstr("--format: 'xml' is none of jsonl"));
    return;
  }
  std::vector<std::string> arguments = Arguments(Good(), output_);
  arguments.insert(arguments.end(), {"--profile", "nope"});
  if (GetParam() == &kMerge) {
    ExpectRefused(arguments, HasSubstr("unknown option '--profile'"));
    return;
  }
  ExpectRefused(arguments,
                AllOf(HasSubstr("--profile: 'nope' is neither"), Not(HasSubstr(Good()))));
  arguments[arguments.size() - 2] = "--classifier";
  ExpectRefused(arguments, HasSubstr("--classifier: 'nope' is none of"));
}

// A part of it, by time; what is not there is an error and no empty file.
TEST_P(Exports, APart) {
  const Finished all = RunProgram(Arguments(timeline_, "-"));
  std::vector<std::string> arguments = Arguments(timeline_, "-");
  arguments.insert(arguments.end(), {"--from", "10s", "--until", "20s"});
  const Finished part = RunProgram(arguments);
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_EQ(part.err, "");
  EXPECT_GT(part.out.size(), all.out.size() / 10);
  EXPECT_LT(part.out.size(), all.out.size() / 3);
  arguments = Arguments(timeline_, output_);
  arguments.insert(arguments.end(), {"--from", "1h"});
  ExpectRefused(arguments, HasSubstr("no tick in the part asked for (from 1h to the end)"));
  arguments = Arguments(timeline_, output_);
  arguments.insert(arguments.end(), {"--phase", "boot"});
  ExpectRefused(arguments, HasSubstr("no phase 'boot'"));
  arguments = Arguments(timeline_, output_);
  arguments.insert(arguments.end(), {"--from", "7"});
  ExpectRefused(arguments, HasSubstr("--from: '7' has no unit"));
}

TEST(ListCommands, AClosedPipeIsNoFailure) {
  for (const std::string what : {"profiles", "events"}) {
    const Finished finished = RunIntoClosedPipe(Vcpulse({"list", what}));
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_THAT(finished.err, Not(HasSubstr("Broken pipe")));
  }
}

TEST(ListCommands, AnEmptyNameIsNoProfile) {
  const Finished finished = RunProgram(Vcpulse({"list", "profiles", ""}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("NAME: the value is empty"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests
