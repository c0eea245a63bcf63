#include "tools/vcpulse/command_tree.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/test_app.h"

namespace vcpulse::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const Group& group) {
  std::vector<std::string> names;
  names.reserve(group.options.size());
  for (const Option& option : group.options) names.push_back(option.names.back());
  return names;
}

// "KIND: text", or "TERM: text" of an item.
std::vector<std::string> TextsOf(const Section& section) {
  std::vector<std::string> texts;
  for (const Paragraph& paragraph : section.paragraphs) {
    const bool is_text = paragraph.kind == Paragraph::Kind::kText;
    const bool is_item = paragraph.kind == Paragraph::Kind::kItem;
    texts.push_back((is_item   ? paragraph.term
                     : is_text ? "text"
                               : "literal") +
                    ": " + paragraph.text);
  }
  return texts;
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

TEST(CommandTree, HasTheGroupsOfTheOptionsWithThoseOfNoGroupLast) {
  const TestApp tool;
  const Command root = tool.Read();
  ASSERT_EQ(root.subcommands.size(), 1);
  const Command& run = root.subcommands[0];
  EXPECT_EQ(JoinPath(run, '-'), "tool-run");
  ASSERT_EQ(run.groups.size(), 2);
  EXPECT_EQ(run.groups[0].title, "Limits");
  EXPECT_THAT(NamesOf(run.groups[0]), ElementsAre("--after"));
  EXPECT_THAT(NamesOf(run.groups[1]), ElementsAre("--help", "--format", "--quiet"));
  EXPECT_TRUE(run.groups[1].options[1].takes_value);
  EXPECT_FALSE(run.groups[1].options[2].takes_value);
}

TEST(CommandTree, ReadsUsageAndSectionsOfTheFooter) {
  TestApp tool;
  EXPECT_EQ(tool.Read().subcommands[0].usage, "tool run [OPTIONS] FILE [-- CMD [ARGS...]]");
  EXPECT_TRUE(tool.Read().subcommands[0].runs_command);
  const Command run = tool.ReadRun("A note.\n\nExamples:\n  tool run a\nExit status:\n  0  done");
  EXPECT_EQ(run.usage, "tool run [OPTIONS] FILE");
  EXPECT_FALSE(run.runs_command);
  ASSERT_EQ(run.sections.size(), 3);
  EXPECT_EQ(run.sections[0].title, "");
  EXPECT_THAT(TextsOf(run.sections[0]), ElementsAre("text: A note."));
  EXPECT_EQ(run.sections[1].title, "Examples");
  EXPECT_THAT(TextsOf(run.sections[1]), ElementsAre("literal: tool run a"));
  EXPECT_EQ(run.sections[2].title, "Exit status");
  EXPECT_THAT(TextsOf(run.sections[2]), ElementsAre("0: done"));
}

TEST(CommandTree, JoinsTheLinesOfParagraphsAndItems) {
  TestApp tool;
  const Command run = tool.ReadRun(
      "A note of\ntwo lines:\nit ends.\n\nAnother one.\n    as it  is\n"
      "Exit status with `-- CMD`:\n  0, 1  done, or\n        not done\n  2\n      term "
      "alone\nText.");
  ASSERT_EQ(run.sections.size(), 2);
  EXPECT_THAT(TextsOf(run.sections[0]), ElementsAre("text: A note of two lines: it ends.",
                                                    "text: Another one.", "literal: as it  is"));
  EXPECT_EQ(run.sections[1].title, "Exit status with `-- CMD`");
  EXPECT_THAT(TextsOf(run.sections[1]),
              ElementsAre("0, 1: done, or not done", "2:  term alone", "text: Text."));
}

TEST(CommandTree, DescriptionsSayWhatIsRequiredAndTheDefault) {
  TestApp tool;
  tool.below->get_option("--after")->default_str("5s");
  const Command run = tool.Read().subcommands[0];
  EXPECT_EQ(run.positionals[0].description, "what to read (required)");
  EXPECT_EQ(run.positionals[0].after_names, "");
  EXPECT_EQ(run.groups[0].options[0].description, "a time [5s]");
  EXPECT_EQ(run.groups[0].options[0].after_names, "DURATION");
}

TEST(CommandTree, LeavesOutWhatHelpHides) {
  TestApp tool;
  tool.below->add_flag("--secret", tool.flag, "for us")->group("");
  tool.app.add_subcommand("inner", "for us")->group("");
  const Command root = tool.Read();
  ASSERT_EQ(root.subcommands.size(), 1);
  EXPECT_THAT(NamesOf(root.subcommands[0].groups[1]), ElementsAre("--help", "--format", "--quiet"));
}

TEST(CommandTree, APositionalFileIsATimelineUnlessItsTypeSaysMore) {
  TestApp tool;
  EXPECT_EQ(tool.Read().subcommands[0].positionals[0].completion.files, "*.vpt");
  tool.below->get_option("FILE")->type_name("CSV");
  EXPECT_EQ(tool.Read().subcommands[0].positionals[0].completion.files, "*.csv");
}

}  // namespace
}  // namespace vcpulse::tools
