#include "monitor/check/expression.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace vcpulse::check {
namespace {

Expectation Parsed(const std::string& text) {
  const auto expectation = ParseExpectation(text);
  EXPECT_TRUE(expectation.ok()) << text << ": " << expectation.status();
  return expectation.ok() ? *expectation : Expectation();
}

std::string ErrorOf(const std::string& text) {
  const auto expectation = ParseExpectation(text);
  EXPECT_FALSE(expectation.ok()) << text;
  EXPECT_EQ(expectation.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(expectation.status().message());
}

TEST(ParseExpectation, ReadsTheExamplesOfTheManual) {
  EXPECT_EQ(Parsed("vcpu=*: productive >= 80%"),
            (Expectation{.text = "vcpu=*: productive >= 80%",
                         .quantity = {.metric = Metric::kProductive},
                         .comparison = Comparison::kAtLeast,
                         .limit = 0.8}));
  EXPECT_EQ(Parsed("vm=web vcpu=0-3: spinning <= 5%"),
            (Expectation{.text = "vm=web vcpu=0-3: spinning <= 5%",
                         .selector = {.vm = "web", .vcpus = {{0, 3}}},
                         .quantity = {.metric = Metric::kSpinning},
                         .comparison = Comparison::kAtMost,
                         .limit = 0.05}));
  EXPECT_EQ(Parsed("vcpu=1: ipc.p50 >= 0.9"),
            (Expectation{.text = "vcpu=1: ipc.p50 >= 0.9",
                         .selector = {.vcpus = {{1, 1}}},
                         .quantity = {.kind = Quantity::Kind::kPercentile,
                                      .metric = Metric::kIpc,
                                      .percentile = 50},
                         .comparison = Comparison::kAtLeast,
                         .limit = 0.9}));
  EXPECT_EQ(Parsed("gaps <= 1%"), (Expectation{.text = "gaps <= 1%",
                                               .quantity = kGaps,
                                               .comparison = Comparison::kAtMost,
                                               .limit = 0.01}));
  EXPECT_EQ(
      Parsed("vcpu=2: longest(spinning) <= 200ms"),
      (Expectation{.text = "vcpu=2: longest(spinning) <= 200ms",
                   .selector = {.vcpus = {{2, 2}}},
                   .quantity = {.kind = Quantity::Kind::kLongest, .metric = Metric::kSpinning},
                   .comparison = Comparison::kAtMost,
                   .limit = 200e6}));
}

TEST(ParseExpectation, TakesSpacesAnywhereBetweenWordsAndNone) {
  Expectation spaced = Parsed("  vm = \"my vm\"\tvcpu = 0-1,4  :  longest ( starved )  <  1.5s  ");
  EXPECT_EQ(spaced.text, "vm = \"my vm\"\tvcpu = 0-1,4  :  longest ( starved )  <  1.5s");
  Expectation dense = Parsed("vm=\"my vm\"vcpu=0-1,4:longest(starved)<1.5s");
  spaced.text = dense.text;
  EXPECT_EQ(spaced, dense);
  EXPECT_EQ(dense.selector, (Selector{.vm = "my vm", .vcpus = {{0, 1}, {4, 4}}}));
  EXPECT_EQ(dense.limit, 1.5e9);
  EXPECT_EQ(Parsed("spinning > 5 %").limit, 0.05);
}

TEST(ParseExpectation, KnowsEveryQuantity) {
  for (const std::string name :
       {"halted", "spinning", "productive", "unknown", "starved", "residency", "gaps",
        "longest(halted)", "longest(spinning)", "longest(productive)", "longest(unknown)",
        "longest(starved)", "ipc.p1", "ipc.p99", "run", "run_delay", "hot(\"*spin*\")"}) {
    const bool longest = name.starts_with("longest");
    const std::string limit = longest ? "1s" : name.starts_with("ipc") ? "1" : "1%";
    EXPECT_EQ(ToString(Parsed(name + " < " + limit).quantity), name);
  }
}

TEST(ParseExpectation, TrustsIpcBandsWhereItSaysSo) {
  for (const std::string name : {"spinning", "productive", "unknown", "longest(spinning)",
                                 "longest(productive)", "longest(unknown)"}) {
    const Quantity quantity =
        Parsed(name + " by ipc-bands < " + (name.starts_with("l") ? "1s" : "1%")).quantity;
    EXPECT_TRUE(quantity.by_ipc_bands);
    EXPECT_EQ(ToString(quantity), name + " by ipc-bands");
  }
  EXPECT_FALSE(Parsed("spinning < 1%").quantity.by_ipc_bands);
  EXPECT_EQ(Parsed("longest(spinning)by ipc-bands<1s").quantity,
            Parsed("longest(spinning)  by  ipc-bands  < 1s").quantity);
}

TEST(ParseExpectation, KnowsEveryComparison) {
  for (const std::string sign : {"<", "<=", "==", ">=", ">"}) {
    EXPECT_EQ(ToString(Parsed("gaps" + sign + "1%").comparison), sign);
  }
}

TEST(ParseExpectation, KnowsEveryLimit) {
  EXPECT_EQ(Parsed("gaps < 0%").limit, 0);
  EXPECT_EQ(Parsed("gaps < 100%").limit, 1);
  EXPECT_EQ(Parsed("gaps < 12.5%").limit, 0.125);
  // The very numbers that shares of whole nanoseconds come to: 0.1 / 100 is not 1 / 1000.
  EXPECT_EQ(Parsed("gaps < 0.1%").limit, 0.001);
  EXPECT_EQ(Parsed("gaps < 0.7%").limit, 0.007);
  EXPECT_EQ(Parsed("ipc.p5 < 12").limit, 12);
  for (const auto& [text, ns] : std::vector<std::pair<std::string, double>>{{"0", 0},
                                                                            {"5ns", 5},
                                                                            {"5us", 5e3},
                                                                            {"5ms", 5e6},
                                                                            {"5s", 5e9},
                                                                            {"5m", 300e9},
                                                                            {"1m30s", 90e9}}) {
    EXPECT_EQ(Parsed("longest(halted) < " + text).limit, ns);
  }
}

TEST(ParseExpectation, StarIsEveryOne) {
  EXPECT_EQ(Parsed("vm=* vcpu=*: halted < 1%").selector, Selector());
  EXPECT_EQ(Parsed("vm=\"*\": halted < 1%").selector, (Selector{.vm = "*"}));
}

TEST(ParseExpectation, KnowsEveryQuantifier) {
  EXPECT_EQ(Parsed("halted < 1%").quantifier, Quantifier::kEach);
  EXPECT_EQ(Parsed("each vcpu=*: halted < 1%").quantifier, Quantifier::kEach);
  EXPECT_EQ(Parsed("  any vm=web : gaps < 1%").quantifier, Quantifier::kAny);
  const Expectation sum = Parsed("sum vm=web vcpu=0-3: run_delay <= 150%");
  EXPECT_EQ(sum.quantifier, Quantifier::kSum);
  EXPECT_EQ(sum.selector, (Selector{.vm = "web", .vcpus = {{0, 3}}}));
  EXPECT_EQ(sum.quantity, (Quantity{.metric = Metric::kRunDelay}));
  EXPECT_EQ(sum.limit, 1.5);
  // A VM may be called as one of them.
  EXPECT_EQ(Parsed("vm=any: halted < 1%").selector.vm, "any");
}

TEST(ParseExpectation, TakesAPhase) {
  EXPECT_EQ(Parsed("halted < 1%").phase, std::nullopt);
  EXPECT_EQ(Parsed("phase=boot: halted < 1%").phase, "boot");
  const Expectation all = Parsed("sum phase=\"a: b\" vcpu=1 vm=web: halted < 1%");
  EXPECT_EQ(all.phase, "a: b");
  EXPECT_EQ(all.selector, (Selector{.vm = "web", .vcpus = {{1, 1}}}));
  EXPECT_EQ(Parsed("phase=\"*\": halted < 1%").phase, "*");
}

TEST(ParseExpectation, TakesALimitRelativeToABaseline) {
  const auto limit = [](const std::string& text) {
    const Expectation expectation = Parsed(text);
    return std::pair(expectation.baseline_factor, expectation.limit);
  };
  using Limit = std::pair<double, double>;
  EXPECT_EQ(limit("halted < 1%"), (Limit{0, 0.01}));
  EXPECT_EQ(limit("halted < baseline"), (Limit{1, 0}));
  EXPECT_EQ(limit("halted >= baseline - 5pt"), (Limit{1, -0.05}));
  EXPECT_EQ(limit("halted<=baseline+0.5pt"), (Limit{1, 0.005}));
  EXPECT_EQ(limit("sum vcpu=*: halted <= baseline + 150pt"), (Limit{1, 1.5}));
  EXPECT_EQ(limit("halted >= baseline * 0.95"), (Limit{0.95, 0}));
  EXPECT_EQ(limit("ipc.p50 >= baseline - 0.2"), (Limit{1, -0.2}));
  EXPECT_EQ(limit("longest(spinning) <= baseline + 50ms"), (Limit{1, 50e6}));
  EXPECT_EQ(limit("gaps <= baseline*2"), (Limit{2, 0}));
  EXPECT_TRUE(Parsed("halted < baseline").UsesBaseline());
  EXPECT_FALSE(Parsed("halted < 1%").UsesBaseline());
}

struct Wrong {
  std::string text;
  std::string error;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.text; }

class ParseExpectationErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(ParseExpectationErrors, PointAtTheColumn) {
  EXPECT_EQ(ErrorOf(GetParam().text), GetParam().error);
}

// Each with ", " behind it.
std::string AllShares() {
  std::string shares;
  for (const metric::Info& info : metric::Table()) {
    if (info.asked && info.IsShare()) shares += std::string(info.key) + ", ";
  }
  return shares;
}

// The shares, gaps, the numbers, longest().
std::string AllQuantities() {
  std::string numbers;
  for (const metric::Info& info : metric::Table()) {
    if (info.asked && !info.IsShare()) numbers += std::string(info.key) + ".pNN, ";
  }
  return AllShares() + "gaps, " + numbers + "longest(...), hot(\"...\")";
}

const Wrong kWrong[] = {
    {"", "column 1: there is no expectation, as in 'vcpu=*: spinning <= 5%'"},
    {"   ", "column 1: there is no expectation, as in 'vcpu=*: spinning <= 5%'"},
    {"hot <= 5%", "column 5: hot needs the name of a function, as in hot(\"*spin*\")"},
    {"hot(spin) <= 5%", "column 5: hot needs the name of a function, as in hot(\"*spin*\")"},
    {"hot(\"\") <= 5%", "column 5: hot needs the name of a function, as in hot(\"*spin*\")"},
    {"hot(\"spin) <= 5%", "column 5: this '\"' is never closed"},
    {"hot(\"spin\" <= 5%", "column 12: ')' is missing here"},
    {"hot(\"spin\") <= 5", "column 16: '5' needs a %: hot(\"spin\") is a share (for example 80%)"},
    {"sum vcpu=*: hot(\"spin\") <= 5%",
     "column 13: hot(\"spin\") does not add up; sum takes one of " +
         AllShares().substr(0, AllShares().size() - 2)},
    {"spinning by evidence < 1%", "column 13: 'evidence' is none of ipc-bands"},
    {"spinning by < 1%", "column 13: '<' is none of ipc-bands"},
    {"halted by ipc-bands < 1%",
     "column 8: halted does not depend on ipc-bands: leave out 'by ipc-bands'"},
    {"gaps by ipc-bands < 1%",
     "column 6: gaps does not depend on ipc-bands: leave out 'by ipc-bands'"},
    {"ipc.p50 by ipc-bands < 1",
     "column 9: ipc.p50 does not depend on ipc-bands: leave out 'by ipc-bands'"},
    // The selector.
    {"cpu=1: halted < 1%", "column 1: 'cpu=' is none of vm=, vcpu=, phase=; did you mean 'vcpu='?"},
    {"vm=a cpu=1: halted < 1%",
     "column 6: 'cpu=' is none of vm=, vcpu=, phase=; did you mean 'vcpu='?"},
    {"vm=a halted < 1%", "column 6: 'halted' is none of vm=, vcpu=, phase=, ':'"},
    {"vm=a", "column 5: expected ':' after the selector"},
    {"vm=a vm=b: halted < 1%", "column 6: vm= was given before"},
    {"vm=* vm=*: halted < 1%", "column 6: vm= was given before"},
    {"vcpu=1 vcpu=2: halted < 1%", "column 8: vcpu= was given before"},
    {": halted < 1%", "column 1: there is none of vm=, vcpu=, phase= before this ':'"},
    {"vm=: halted < 1%", "column 4: vm= needs a name, a UUID, a PID or *"},
    {"vm=\"\": halted < 1%", "column 4: vm=\"\" names nothing"},
    {"vm=\"web: halted < 1%", "column 4: this '\"' is never closed"},
    {"vcpu=: halted < 1%", "column 6: vcpu= needs *, N or N-M, or several with commas between"},
    {"vcpu=0,x: halted < 1%", "column 8: 'x' is none of *, N, N-M"},
    {"vcpu=0,*: halted < 1%", "column 8: '*' is none of *, N, N-M"},
    {"vcpu=0,,2: halted < 1%", "column 8: the number of a vCPU is missing here"},
    {"vcpu=0,: halted < 1%", "column 8: the number of a vCPU is missing here"},
    {"vcpu=-1: halted < 1%", "column 6: '-1' is none of *, N, N-M"},
    {"vcpu=1-: halted < 1%", "column 6: '1-' is none of *, N, N-M"},
    {"vcpu=1-2-3: halted < 1%", "column 6: '1-2-3' is none of *, N, N-M"},
    {"vcpu=4294967296: halted < 1%", "column 6: '4294967296' is none of *, N, N-M"},
    {"vcpu=0,3-1: halted < 1%", "column 8: '3-1' is a range with its larger end first"},
    {"phase=: halted < 1%", "column 7: phase= needs a name or *"},
    {"phase=*: halted < 1%", "column 1: phase= takes the name of one phase, not *"},
    {"vcpu=1 phase=a phase=b: halted < 1%", "column 16: phase= was given before"},
    {"vcp=1: halted < 1%", "column 1: 'vcp=' is none of vm=, vcpu=, phase=; did you mean 'vcpu='?"},
    // The quantifier.
    {"any: halted < 1%",
     "column 4: any needs vm= or vcpu=, as in 'any vcpu=*: spinning > 50%' "
     "(of gaps vm=, as in 'any vm=*: gaps <= 1%')"},
    {"any sum: halted < 1%",
     "column 5: only one of each, any, sum can be given; any is there already"},
    {"any halted < 1%",
     "column 5: any needs vm= or vcpu=, as in 'any vcpu=*: spinning > 50%' "
     "(of gaps vm=, as in 'any vm=*: gaps <= 1%')"},
    {"sum phase=a: halted < 1%",
     "column 5: sum needs vm= or vcpu=, as in 'sum vcpu=*: spinning > 50%' "
     "(of gaps vm=, as in 'sum vm=*: gaps <= 1%')"},
    {"all vcpu=*: halted < 1%", "column 1: 'all' is none of each, any, sum"},
    {"all vcpu: halted < 1%", "column 1: 'all' is none of " + AllQuantities()},
    {"sum vcpu=*: ipc.p50 < 1", "column 13: ipc.p50 does not add up; sum takes one of " +
                                    AllShares().substr(0, AllShares().size() - 2)},
    {"sum vm=*: gaps < 1%", "column 11: gaps does not add up; sum takes one of " +
                                AllShares().substr(0, AllShares().size() - 2)},
    {"any vcpu=*: halted < 101%", "column 22: '101%' is beyond 0% to 100%"},
    // The quantity.
    {"idle < 1%", "column 1: 'idle' is none of " + AllQuantities()},
    {"Halted < 1%",
     "column 1: 'Halted' is none of " + AllQuantities() + "; did you mean 'halted'?"},
    {"run-delay < 1%",
     "column 1: 'run-delay' is none of " + AllQuantities() + "; did you mean 'run_delay'?"},
    {"vm=a: < 1%", "column 7: '<' is none of " + AllQuantities()},
    {"vm=a:", "column 6: something is missing here, one of " + AllQuantities()},
    {"ipc >= 1", "column 1: 'ipc' needs a percentile from ipc.p1 to ipc.p99"},
    {"ipc.p0 >= 1", "column 1: 'ipc.p0' needs a percentile from ipc.p1 to ipc.p99"},
    {"ipc.p100 >= 1", "column 1: 'ipc.p100' needs a percentile from ipc.p1 to ipc.p99"},
    {"ipc.50 >= 1", "column 1: 'ipc.50' needs a percentile from ipc.p1 to ipc.p99"},
    {"ipc.p9.5 >= 1", "column 1: 'ipc.p9.5' needs a percentile from ipc.p1 to ipc.p99"},
    {"ipcs >= 1", "column 1: 'ipcs' is none of " + AllQuantities()},
    {"longest <= 1s", "column 9: longest needs a band, as in longest(spinning)"},
    {"longest() <= 1s", "column 9: ')' is none of halted, spinning, productive, unknown, starved"},
    {"longest(gaps) <= 1s",
     "column 9: 'gaps' is none of halted, spinning, productive, unknown, starved"},
    {"longest(residency) <= 1s",
     "column 9: 'residency' is none of halted, spinning, productive, unknown, starved"},
    {"longest(ipc) <= 1s",
     "column 9: 'ipc' is none of halted, spinning, productive, unknown, starved"},
    {"longest(halted <= 1s", "column 16: ')' is missing here"},
    {"vm=a vcpu=0: gaps <= 1%", "column 6: gaps are those of a whole VM: they take no vcpu="},
    {"vcpu=*: gaps <= 1%", "column 1: gaps are those of a whole VM: they take no vcpu="},
    // The comparison.
    {"halted 1%", "column 8: '1%' is none of <, <=, ==, >=, >"},
    {"halted = 1%", "column 8: '=' is none of <, <=, ==, >=, >"},
    {"halted === 1%", "column 8: '===' is none of <, <=, ==, >=, >"},
    {"ipc.p50=1", "column 8: '=' is none of <, <=, ==, >=, >"},
    {"halted", "column 7: something is missing here, one of <, <=, ==, >=, >"},
    // The limit.
    {"halted <", "column 9: a percentage (for example 80%) is missing here"},
    {"halted < x%", "column 10: 'x%' is not a percentage (for example 80%)"},
    {"halted < %", "column 10: '%' is not a percentage (for example 80%)"},
    {"halted < -1%", "column 10: '-1%' is not a percentage (for example 80%)"},
    {"halted < 1.2.3%", "column 10: '1.2.3%' is not a percentage (for example 80%)"},
    {"halted < 1e1%", "column 10: '1e1%' is not a percentage (for example 80%)"},
    {"halted < nan%", "column 10: 'nan%' is not a percentage (for example 80%)"},
    {"halted < 80", "column 10: '80' needs a %: halted is a share of the time (for example 80%)"},
    {"halted < 80 x", "column 10: '80' needs a %: halted is a share of the time (for example 80%)"},
    {"halted < 101%", "column 10: '101%' is beyond 0% to 100%"},
    {"ipc.p50 >= 80%",
     "column 12: '80%' is not a number of instructions per cycle (for example 0.9)"},
    {"ipc.p50 >=",
     "column 11: a number of instructions per cycle (for example 0.9) is missing here"},
    {"longest(halted) < 5",
     "column 19: '5' is not a duration (for example 200ms or 1.5s; units ns us ms s m h)"},
    {"longest(halted) < -5s",
     "column 19: '-5s' is not a duration (for example 200ms or 1.5s; units ns us ms s m h)"},
    {"longest(halted) < inf",
     "column 19: 'inf' is not a duration (for example 200ms or 1.5s; units ns us ms s m h)"},
    {"longest(halted) < 5%",
     "column 19: '5%' is not a duration (for example 200ms or 1.5s; units ns us ms s m h)"},
    {"halted < baseline - 5%",
     "column 21: '5%' is not a number of percentage points (for example 5pt; relative: baseline * "
     "0.95)"},
    {"halted < baseline - pt",
     "column 21: 'pt' is not a number of percentage points (for example 5pt; relative: baseline * "
     "0.95)"},
    {"halted < baseline -",
     "column 20: a number of percentage points (for example 5pt; relative: baseline * 0.95) is "
     "missing here"},
    {"halted < baseline 5pt", "column 19: '5pt' is none of +, -, *"},
    {"halted < baseline * 0", "column 21: '0' is not a factor above 0 (for example 0.95)"},
    {"halted < baseline * 95%", "column 21: '95%' is not a factor above 0 (for example 0.95)"},
    {"ipc.p50 < baseline + 5pt",
     "column 22: '5pt' is not a number of instructions per cycle (for example 0.9)"},
    {"longest(halted) < baseline + 5",
     "column 30: '5' is not a duration (for example 200ms or 1.5s; units ns us ms s m h)"},
    {"halted < baseline - 5pt x", "column 25: 'x' is more than one expectation"},
    {"halted < baselines", "column 10: 'baselines' is not a percentage (for example 80%)"},
    {"halted < 1% and", "column 13: 'and' is more than one expectation"},
    {"halted < 1% %", "column 13: '%' is more than one expectation"},
    {"ipc.p50 >= 1 %", "column 14: '%' is more than one expectation"},
    // What is shown of the text is short, and safe for a terminal.
    {"\x1b[31m < 1%", "column 1: '?[31m' is none of " + AllQuantities()},
    {std::string(50, 'x') + " < 1%",
     "column 1: '" + std::string(40, 'x') + "...' is none of " + AllQuantities()},
    {"x" + std::string(39, '.') + "\xc3\xa4 < 1%",
     "column 1: 'x" + std::string(39, '.') + "' is none of " + AllQuantities()},
    {"halted < " + std::string(39, '\'') + "\xc3\xa4",
     "column 10: '" + std::string(39, '\'') + "...' is not a percentage (for example 80%)"},
};

INSTANTIATE_TEST_SUITE_P(All, ParseExpectationErrors, ::testing::ValuesIn(kWrong));

TEST(ExpectationsFromText, TakesALineEach) {
  const auto all = ExpectationsFromText(
      "# what this guest must do\n"
      "\n"
      "vcpu=*: productive >= 80%\r\n"
      "  gaps <= 1%   # of the whole VM\n"
      "vm=\"a # b\": halted < 1%\n"
      "vm=c#d: halted < 1%");
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ((*all)[0].text, "vcpu=*: productive >= 80%");
  EXPECT_EQ((*all)[1].text, "gaps <= 1%");
  EXPECT_EQ((*all)[2].selector.vm, "a # b");
  EXPECT_EQ((*all)[3].selector.vm, "c#d");
}

TEST(ExpectationsFromText, SaysWhichLineIsWrong) {
  const auto wrong = ExpectationsFromText("# one\n\n  halted < 80\n");
  EXPECT_EQ(wrong.status().message(),
            "3:12: '80' needs a %: halted is a share of the time (for example 80%)");
}

TEST(ExpectationsFromText, NoneIsAnError) {
  for (const char* text : {"", "\n\n", "# nothing\n", " \t\r\n#"}) {
    EXPECT_EQ(ExpectationsFromText(text).status().message(), "no expectation in it");
  }
}

}  // namespace
}  // namespace vcpulse::check
