#include "tools/vcpulse_docs/pages.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/test_app.h"

namespace vcpulse::docs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tools::TestApp;

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
  EXPECT_THAT(page, HasSubstr(".SS Limits\n"));
  EXPECT_THAT(page, HasSubstr("\\fBtool\\fR(1)"));
}

TEST(ManPage, SectionsOfTheFooterAreSections) {
  TestApp tool;
  tool.below->footer(
      "It runs.\n\nColumns:\n  vcpu    its number\n          from 0\nThe rest is text.\n\n"
      "Examples:\n  tool run -f a   # so\nExit status:\n  0  done");
  const Command root = tool.Read();
  const std::string page =
      ManPage(root, root.subcommands[0], {.version = "1", .date = "2024-05-01"});
  EXPECT_THAT(page, HasSubstr(".SH DESCRIPTION\nIt runs.\n.SH OPTIONS\n"));
  EXPECT_THAT(page, HasSubstr(".SH COLUMNS\n.TP\n\\fBvcpu\\fR\nits number from 0\n"
                              ".PP\nThe rest is text.\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES\n.nf\ntool run \\-f a   # so\n.fi\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n.TP\n\\fB0\\fR\ndone\n"));
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
  EXPECT_THAT(script, HasSubstr("options='--after -h --help -f --format --quiet --'"));
  EXPECT_THAT(script,
              HasSubstr("'tool run -f' | 'tool run --format') words='json csv' files='' ;;"));
  EXPECT_THAT(script, HasSubstr("'tool run '1) words='' files='*.vpt' ;;"));
  EXPECT_THAT(script, Not(HasSubstr("tool run --quiet'")));
}

}  // namespace
}  // namespace vcpulse::docs
