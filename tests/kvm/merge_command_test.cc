// `vcpulse merge`: the parts of one recording as one timeline, and what it says of them. Needs no
// guest. What it has in common with other commands that write a file: batch_commands_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr char kGolden[] = VCPULSE_TEST_DATA "/timeline-v2.vpt";

// The golden timeline's chunks, which begin with the magic.
std::vector<std::string> Chunks() {
  const std::string magic("\x89VPT\r\n\x1a\n", 8);
  const std::string golden = Contents(kGolden);
  std::vector<std::string> chunks;
  for (size_t at = 0; at < golden.size();) {
    const size_t end = std::min(golden.find(magic, at + 1), golden.size());
    chunks.push_back(golden.substr(at, end - at));
    at = end;
  }
  return chunks;
}

class MergeCommand : public ::testing::Test {
 protected:
  // A file of the chunks from `begin` to before `end`.
  std::string Part(const std::string& name, size_t begin, size_t end) const {
    const std::string path = folder_.Path(name);
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream out(path, std::ios::binary);
    for (size_t i = begin; i < end; ++i) out << chunks_.at(i);
    return path;
  }

  Finished Merge(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "merge");
    arguments.insert(arguments.end(), {"-o", output_});
    return RunProgram(Vcpulse(arguments));
  }

  const std::vector<std::string> chunks_ = Chunks();
  fakes::ProcDir folder_;
  const std::string output_ = folder_.Path("out.vpt");
};

TEST_F(MergeCommand, PartsGiveTheWholeAndNothingIsSaid) {
  ASSERT_EQ(chunks_.size(), 4u);
  const Finished merged = Merge({Part("b.vpt", 2, 4), Part("a.vpt", 0, 2)});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(merged.out + merged.err, "");
  EXPECT_TRUE(Contents(output_) == Contents(kGolden));
}

TEST_F(MergeCommand, ACollectedFolderGivesTheWholeOnStandardOutput) {
  Part("stream/00000000000000000001.vpt", 0, 1);
  Part("stream/00000000000000000002.vpt", 1, 3);
  Part("stream/00000000000000000003.vpt", 3, 4);
  const Finished merged = RunProgram(Vcpulse({"merge", folder_.Path("stream"), "--output", "-"}));
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_TRUE(merged.out == Contents(kGolden));
}

TEST_F(MergeCommand, WhatIsThereTwiceAndWhatIsMissingIsSaid) {
  const Finished merged = Merge({Part("a.vpt", 1, 2), Part("same.vpt", 1, 2), Part("c.vpt", 3, 4)});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_TRUE(Contents(output_) == chunks_[1] + chunks_[3]);
  EXPECT_THAT(merged.err,
              AllOf(HasSubstr(output_ + ": 1 chunk found in several parts, written once"),
                    HasSubstr(": begins with record "), HasSubstr(": no part has records "),
                    HasSubstr("records lost"), Not(HasSubstr("the end of the recording"))));
  const Finished report = RunProgram(Vcpulse({"report", output_}));
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out + report.err, HasSubstr("lost"));
}

TEST_F(MergeCommand, AnEndThatIsMissingAndDamageAreSaid) {
  const std::string torn = Part("a.vpt", 0, 3);
  fs::resize_file(torn, fs::file_size(torn) - 7);
  const Finished merged = Merge({torn});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.err, AllOf(HasSubstr("warning: " + torn + ": skipped 1 damaged region"),
                                HasSubstr("the end of the recording is in no part")));
}

TEST_F(MergeCommand, WhatIsEmptyIsSkippedAndSaid) {
  const std::string empty = Part("empty.vpt", 0, 0);
  const Finished merged = Merge({empty, Part("whole.vpt", 0, 4)});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(merged.err, "vcpulse: warning: " + empty + ": skipped, as it is empty\n");
  EXPECT_TRUE(Contents(output_) == Contents(kGolden));

  const Finished nothing = Merge({empty});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_EQ(nothing.err, "vcpulse: " + empty + ": there is no record\n");
}

TEST_F(MergeCommand, RecordingsOfSeveralHostsStaySeparate) {
  const std::string other = VCPULSE_TEST_DATA "/timeline-v1.vpt";
  const Finished merged = Merge({kGolden, other});
  EXPECT_EQ(merged.exit_code, 2);
  EXPECT_THAT(merged.err,
              AllOf(HasSubstr(std::string(kGolden) + ", " + other + " are separate recordings"),
                    HasSubstr("`vcpulse compare A B`")));
  EXPECT_EQ(std::ranges::count(merged.err, '\n'), 1) << merged.err;
  EXPECT_FALSE(fs::exists(output_));
}

TEST_F(MergeCommand, NoPartIsOverwrittenNorReadFromStandardInput) {
  const std::string a = Part("a.vpt", 0, 2);
  const std::string out = Part("out.vpt", 2, 4);
  EXPECT_THAT(Merge({a, out}).err, HasSubstr("is the file that is read"));
  EXPECT_TRUE(Contents(out) == chunks_[2] + chunks_[3]);
  EXPECT_THAT(Merge({a, "-"}).err, HasSubstr("standard input cannot be a part"));
  EXPECT_THAT(Merge({folder_.Path("")}).err, HasSubstr("lies in the folder that is read"));
}

// Every command that reads one recording names those of a folder that holds several.
TEST_F(MergeCommand, OtherCommandsNameSeparateRecordingsOfAFolder) {
  const std::string folder = folder_.Path("two");
  const std::string first = Part("two/a.vpt", 0, 4);
  const std::string second = folder + "/b.vpt";
  fs::copy_file(VCPULSE_TEST_DATA "/timeline-v1.vpt", second);
  const std::vector<std::vector<std::string>> commands = {
      {"report", folder},
      {"report", folder, "--html", folder_.Path("x.html")},
      {"report", folder, "--explain", "vcpu=0"},
      {"check", folder, "--expect", "gaps <= 1%"},
      {"check", first, "--baseline", folder, "--expect", "vcpu=*: halted <= baseline"},
      {"compare", folder, first},
      {"replay", folder, "--speed", "max"}};
  for (const std::vector<std::string>& command : commands) {
    const Finished refused = RunProgram(Vcpulse(command));
    EXPECT_EQ(refused.exit_code, 2) << command[0];
    EXPECT_THAT(refused.err, HasSubstr(folder +
                                       " holds 2 separate recordings, and one is read at "
                                       "a time: name one of " +
                                       first + ", " + second))
        << command[0];
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  }
}

}  // namespace
}  // namespace vcpulse::kvm_tests
