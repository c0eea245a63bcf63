#include "tools/vcpulse/usage_error.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/test_app.h"

namespace vcpulse::tools {
namespace {

using ::testing::StartsWith;

// The error of the arguments.
std::string UsageErrorOf(std::vector<std::string> arguments) {
  TestApp tool;
  double number = 0;
  tool.below->add_option("--number", number, "")->excludes(tool.below->get_option("--after"));
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
  // Its options are those of no command.
  EXPECT_EQ(UsageErrorOf({"rum", "--after", "1s"}),
            "unknown command 'rum'; did you mean 'run'? (`tool --help` lists the commands)");
}

TEST(UsageError, AValueIsNotTakenForAnOption) {
  EXPECT_EQ(UsageErrorOf({"run", "-f", "-1", "f"}), "none");
  EXPECT_THAT(UsageErrorOf({"run"}), StartsWith("FILE is required"));
}

TEST(UsageError, SaysInWordsOfTheUserWhatTheParserFound) {
  EXPECT_THAT(UsageErrorOf({"run", "f", "--after", "1s", "--after", "2s"}),
              StartsWith("--after is given more than once (`tool run --help`"));
  EXPECT_THAT(UsageErrorOf({"run", "f", "--after"}),
              StartsWith("--after needs a value (DURATION) ("));
  EXPECT_THAT(UsageErrorOf({"run", "f", "--after", "--number", "3"}),
              StartsWith("--after needs a value (DURATION) ("));
  EXPECT_THAT(UsageErrorOf({"run", "f", "--number", "x"}),
              StartsWith("--number: 'x' is not a number ("));
  EXPECT_THAT(UsageErrorOf({"run", "f", "--after", "1s", "--number", "1"}),
              StartsWith("--after and --number cannot be used together ("));
  EXPECT_EQ(UsageErrorOf({}), "no command given (`tool --help` lists the commands)");
}

TEST(FlagWithValue, IsRefused) {
  const auto of = [](std::vector<std::string> arguments) {
    return FlagWithValue(TestApp().app, arguments).value_or("none");
  };
  EXPECT_EQ(of({"run", "f", "--quiet=no"}),
            "--quiet takes no value (`tool run --help` shows the usage)");
  EXPECT_EQ(of({"run", "f", "--quiet=1", "--format=csv"}),
            "--quiet takes no value (`tool run --help` shows the usage)");
  EXPECT_EQ(of({"run", "f", "--quiet", "--format=csv", "--after=1s"}), "none");
}

// The error of a file of --config that holds `text`.
std::string ConfigErrorOf(const std::string& text) {
  TestApp tool;
  tool.app.set_config("--config")->default_str("my.ini");
  std::istringstream input(text);
  try {
    ConfigReader(tool.app).from_config(input);
  } catch (const CLI::ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(ConfigReader, NamesTheFirstLineThatIsWrong) {
  EXPECT_EQ(ConfigErrorOf("# mine\n\n[run]\nformat = \"json\"\nquiet=true\n"), "none");
  EXPECT_EQ(ConfigErrorOf("[run]\nformat = [\"a=b\",\n  \"c=d\"\n]\nquiet = true\n"), "none");
  EXPECT_EQ(ConfigErrorOf("run.format = \"json\"\n"), "none");
  EXPECT_EQ(ConfigErrorOf("[run]\nformat = [\"a\",\n\"b\"]\nquite = 1\n"),
            "--config: my.ini:4: 'quite' is not an option of run; did you mean 'quiet'?");
  EXPECT_EQ(ConfigErrorOf("[run]\nformta = 1\n"),
            "--config: my.ini:2: 'formta' is not an option of run; did you mean 'format'?");
  EXPECT_EQ(ConfigErrorOf("[rum]\n"),
            "--config: my.ini:1: 'rum' is not a command; did you mean 'run'?");
  EXPECT_EQ(ConfigErrorOf("[run]\nquiet\n"), "--config: my.ini:2: 'quiet' is not OPTION = VALUE");
  EXPECT_EQ(ConfigErrorOf("quiet = true\n"),
            "--config: my.ini:1: 'quiet' is above the first [COMMAND]");
  EXPECT_EQ(ConfigErrorOf("[run.more]\n"), "--config: my.ini:1: 'run.more' is not a command");
}

}  // namespace
}  // namespace vcpulse::tools
