#include "tools/vcpulse/help.h"

#include <algorithm>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/test_app.h"

namespace vcpulse::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HelpText, HasExamplesFirstAndWrapsDescriptionsBelowTheirColumn) {
  TestApp tool;
  tool.below->get_option("--format")->description("how to write what was read from the file [a]");
  const Command run = tool.ReadRun(
      "A note that is longer than the sixty columns that this terminal has for it.\n"
      "Examples:\n  tool run --quiet a-name-that-is-never-wrapped-however-narrow-the-terminal");
  EXPECT_EQ(HelpText(run, 60),
            "Run it\n"
            "\n"
            "Usage: tool run [OPTIONS] FILE\n"
            "\n"
            "Examples:\n"
            "  tool run --quiet a-name-that-is-never-wrapped-however-narrow-the-terminal\n"
            "\n"
            "Arguments:\n"
            "  FILE TEXT REQUIRED        what to read\n"
            "\n"
            "Limits:\n"
            "  --after DURATION          a time\n"
            "\n"
            "Options:\n"
            "  -h, --help                Print this help message and exit\n"
            "  -f, --format json|csv     how to write what was read from\n"
            "                            the file [a]\n"
            "  --quiet                   say nothing\n"
            "\n"
            "A note that is longer than the sixty columns that this\n"
            "terminal has for it.\n");
}

TEST(HelpText, ALongTermHasItsDescriptionOnTheNextLine) {
  TestApp tool;
  tool.below->get_option("--after")->type_name("unix:PATH|tcp:HOST:PORT");
  EXPECT_THAT(HelpText(tool.Read().subcommands[0], 80),
              HasSubstr("\n  --after unix:PATH|tcp:HOST:PORT\n"
                        "                            a time\n"));
}

// The error of the arguments.
std::string UsageErrorOf(std::vector<std::string> arguments) {
  TestApp tool;
  tool.app.require_subcommand(1);
  tool.below->fallthrough();
  try {
    tool.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return UsageError(tool.app, arguments, error);
  }
  return "none";
}

TEST(UsageError, NamesTheArgumentThatIsWrong) {
  EXPECT_EQ(UsageErrorOf({"run", "f", "--quiet", "--formt", "csv"}),
            "unknown option '--formt'; did you mean '--format'? (`tool run --help` lists the "
            "options)");
  EXPECT_EQ(UsageErrorOf({"run", "--colour=red", "f"}),
            "unknown option '--colour' (`tool run --help` lists the options)");
  EXPECT_EQ(UsageErrorOf({"run", "-x3", "f"}),
            "unknown option '-x' (`tool run --help` lists the options)");
  EXPECT_EQ(UsageErrorOf({"--quiett", "run"}),
            "unknown option '--quiett' (`tool --help` lists the options)");
  EXPECT_EQ(UsageErrorOf({"run", "one", "two", "three"}),
            "unexpected argument 'two' (`tool run --help` shows the usage)");
  EXPECT_EQ(UsageErrorOf({"rum"}),
            "unknown command 'rum'; did you mean 'run'? (`tool --help` lists the commands)");
}

TEST(UsageError, AValueIsNotTakenForAnOption) {
  EXPECT_EQ(UsageErrorOf({"run", "-f", "-1", "f"}), "none");
  EXPECT_THAT(UsageErrorOf({"run"}), StartsWith("FILE is required"));
}

}  // namespace
}  // namespace vcpulse::tools
