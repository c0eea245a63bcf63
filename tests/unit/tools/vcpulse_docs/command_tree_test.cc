#include "tools/vcpulse_docs/command_tree.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::docs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct TestApp {
  TestApp() : app("Does one thing", "tool") {
    below = app.add_subcommand("run", "runs it: [-- CMD ARGS...]");
    below->add_option("FILE", text, "what to read")->required();
    below->add_option("-f,--format", text, "how to write [a]")->type_name("json|csv");
    below->add_flag("--quiet", flag, "say nothing");
    group = below->add_option_group("LIMITS", "when to end");
    group->add_option("--after", text, "a time")->type_name("DURATION");
  }

  Command Read() const { return ReadCommandTree(app, {"profile-a", "profile-b"}); }

  CLI::App app;
  CLI::App* below;
  CLI::App* group;
  std::string text;
  bool flag = false;
};

std::vector<std::string> NamesOf(const Group& group) {
  std::vector<std::string> names;
  names.reserve(group.options.size());
  for (const Option& option : group.options) names.push_back(option.names.back());
  return names;
}

TEST(CompletionOf, LowerCaseAlternativesAreWordsToChooseFrom) {
  EXPECT_THAT(CompletionOf("ipc-bands|auto", {}).words, ElementsAre("ipc-bands", "auto"));
  EXPECT_THAT(CompletionOf("TEXT:{json,csv}", {}).words, ElementsAre("json", "csv"));
  EXPECT_EQ(CompletionOf("ipc-bands|auto", {}).files, "");
}

TEST(CompletionOf, NamesOfKindsStandForFilesAndProfiles) {
  EXPECT_EQ(CompletionOf("TIMELINE", {}).files, "*.vpt");
  EXPECT_EQ(CompletionOf("CSV", {}).files, "*.csv");
  EXPECT_EQ(CompletionOf("DIR", {}).files, "/");
  EXPECT_EQ(CompletionOf("OUT", {}).files, "*");
  const Completion both = CompletionOf("PROFILE|FILE", {"generic"});
  EXPECT_THAT(both.words, ElementsAre("generic"));
  EXPECT_EQ(both.files, "*");
}

TEST(CompletionOf, PatternsOfTextOfferNothing) {
  for (const char* name : {"DURATION", "unix:PATH|tcp:HOST:PORT", "vcpu=N[,vm=VM][,at=T]",
                           "TID[,TID...]:INT in [1 - 4194304]", ""}) {
    EXPECT_THAT(CompletionOf(name, {"generic"}).words, IsEmpty()) << name;
    EXPECT_EQ(CompletionOf(name, {}).files, "") << name;
  }
}

TEST(CommandTree, HasWhatHelpShows) {
  const TestApp tool;
  const Command root = tool.Read();
  ASSERT_EQ(root.subcommands.size(), 1);
  const Command& run = root.subcommands[0];
  EXPECT_EQ(JoinPath(run, '-'), "tool-run");
  EXPECT_EQ(run.usage, "tool run [OPTIONS] FILE [-- CMD ARGS...]");
  EXPECT_TRUE(run.runs_command);
  EXPECT_FALSE(root.runs_command);
  ASSERT_EQ(run.groups.size(), 2);
  EXPECT_THAT(NamesOf(run.groups[0]), ElementsAre("--help", "--format", "--quiet"));
  EXPECT_TRUE(run.groups[0].options[1].takes_value);
  EXPECT_FALSE(run.groups[0].options[2].takes_value);
  EXPECT_EQ(run.groups[1].title, "LIMITS");
  EXPECT_EQ(run.groups[1].description, "when to end");
  EXPECT_THAT(NamesOf(run.groups[1]), ElementsAre("--after"));  // and no second --help
}

TEST(CommandTree, LeavesOutWhatHelpHides) {
  TestApp tool;
  tool.below->add_flag("--secret", tool.flag, "for us")->group("");
  tool.app.add_subcommand("inner", "for us")->group("");
  const Command root = tool.Read();
  ASSERT_EQ(root.subcommands.size(), 1);
  EXPECT_THAT(NamesOf(root.subcommands[0].groups[0]), ElementsAre("--help", "--format", "--quiet"));
}

TEST(CommandTree, APositionalFileIsATimelineUnlessItsTypeSaysMore) {
  TestApp tool;
  EXPECT_EQ(tool.Read().subcommands[0].positionals[0].completion.files, "*.vpt");
  tool.below->get_option("FILE")->type_name("CSV");
  EXPECT_EQ(tool.Read().subcommands[0].positionals[0].completion.files, "*.csv");
}

TEST(ManPage, EscapesWhatRoffWouldTakeForItself) {
  EXPECT_EQ(EscapeRoff(".dot"), "\\&.dot");
  EXPECT_EQ(EscapeRoff("'tis"), "\\&\\(aqtis");
  EXPECT_EQ(EscapeRoff("a.b\n.c"), "a.b\n\\&.c");
  EXPECT_EQ(EscapeRoff("C:\\new --x"), "C:\\enew \\-\\-x");
  EXPECT_EQ(EscapeRoff("`~^\""), "\\(ga\\(ti\\(ha\\(dq");
}

TEST(ManPage, SaysWhatHelpSaysOfAnOption) {
  const TestApp tool;
  const Command root = tool.Read();
  const std::string page =
      ManPage(root, root.subcommands[0], {.version = "1.2", .date = "2024-05-01"});
  EXPECT_THAT(page, HasSubstr(".TH TOOL\\-RUN 1 2024-05-01 \"tool 1.2\""));
  EXPECT_THAT(page,
              HasSubstr(".TP\n\\fB\\-f\\fR, \\fB\\-\\-format\\fR json|csv\nhow to write [a]\n"));
  EXPECT_THAT(page, HasSubstr(".SS LIMITS\nwhen to end\n"));
  EXPECT_THAT(page, HasSubstr("\\fBtool\\fR(1)"));
}

TEST(ManPage, TablesOfTheFooterBecomeLists) {
  TestApp tool;
  tool.below->footer("Columns:\n  vcpu    its number\n          from 0\nThe rest is text.");
  const Command root = tool.Read();
  const std::string page =
      ManPage(root, root.subcommands[0], {.version = "1", .date = "2024-05-01"});
  EXPECT_THAT(page, HasSubstr("Columns:\n.TP\n\\fBvcpu\\fR\nits number\nfrom 0\n.PP\nThe rest"));
}

TEST(ZshCompletion, QuotesWhatHelpMaySay) {
  TestApp tool;
  tool.below->add_option("--odd", tool.text, "it's [odd]: so")->type_name("a:b");
  const std::string script = ZshCompletion(tool.Read());
  EXPECT_THAT(script, HasSubstr("'(--odd)--odd=[it'\\''s \\[odd\\]: so]:a\\:b: '"));
}

TEST(BashCompletion, KnowsCommandsOptionsAndValues) {
  const std::string script = BashCompletion(TestApp().Read());
  EXPECT_THAT(script, HasSubstr("commands='run'"));
  EXPECT_THAT(script, HasSubstr("options='-h --help -f --format --quiet --after --'"));
  EXPECT_THAT(script,
              HasSubstr("'tool run -f' | 'tool run --format') words='json csv' files='' ;;"));
  EXPECT_THAT(script, HasSubstr("'tool run '1) words='' files='*.vpt' ;;"));
  EXPECT_THAT(script, Not(HasSubstr("tool run --quiet'")));
}

}  // namespace
}  // namespace vcpulse::docs
