#include "tools/vcpulse/help.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/test_app.h"

namespace vcpulse::tools {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(HelpText, HasExamplesFirstAndWrapsDescriptionsBelowTheirColumn) {
  TestApp tool;
  tool.below->get_option("--format")->description("how to write what was read from the file [a]");
  const Command run = tool.ReadRun(
      "A note that is longer than the sixty columns that this terminal has for it.\n\n"
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
            "  FILE                      what to read (required)\n"
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

TEST(HelpText, ItemsHaveAColumnAndTextStandsApart) {
  TestApp tool;
  const Command run = tool.ReadRun(
      "Exit status:\n  0  done\n  2, 3  an error of which one line on stderr gives the reason\n"
      "Else none.");
  EXPECT_THAT(HelpText(run, 60), EndsWith("\n"
                                          "Exit status:\n"
                                          "  0     done\n"
                                          "  2, 3  an error of which one line on stderr gives the\n"
                                          "        reason\n"
                                          "\n"
                                          "  Else none.\n"));
}

TEST(HelpText, ALongTermHasItsDescriptionOnTheNextLine) {
  TestApp tool;
  tool.below->get_option("--after")->type_name("unix:PATH|tcp:HOST:PORT");
  EXPECT_THAT(HelpText(tool.Read().subcommands[0], 80),
              HasSubstr("\n  --after unix:PATH|tcp:HOST:PORT\n"
                        "                            a time\n"));
}

}  // namespace
}  // namespace vcpulse::tools
