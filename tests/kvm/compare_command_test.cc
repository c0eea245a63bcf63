// `vcpulse compare` and the strips of `vcpulse report`, on imported timelines. Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "boost/json.hpp"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Compare : public ::testing::Test {
 protected:
  // A timeline of 300 ticks of 100 ms: of 10 in turn, `spinning` spin and the rest works.
  std::string Timeline(const std::string& name, int spinning) {
    const std::string csv = folder_.Path(name + ".csv");
    {
      std::ofstream out(csv);
      out << "dt_ns,cycles,instructions,time_enabled_ns,time_running_ns\n";
      for (int i = 0; i < 300; ++i) {
        // Scattered, and not the same in each ten.
        const bool spins = (i * 7 + i / 10) % 10 < spinning;
        out << "100000000,300000000," << (spins ? "60000000" : "600000000")
            << ",100000000,100000000\n";
      }
    }
    const std::string path = folder_.Path(name + ".vpt");
    const Finished imported = RunProgram(Vcpulse(
        {"import", "csv", csv, "-o", path, "--max-hz", "3e9", "--classifier", "ipc-bands"}));
    EXPECT_EQ(imported.exit_code, 0) << imported.err;
    return path;
  }

  static Finished Run(const std::vector<std::string>& arguments) {
    return RunProgram(Vcpulse(arguments));
  }

  static void ExpectRefused(const std::vector<std::string>& arguments,
                            const ::testing::Matcher<std::string>& line) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, AllOf(::testing::StartsWith("vcpulse: "), line));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  }

  fakes::ProcDir folder_;
};

TEST_F(Compare, ATextAndAJsonOfAShift) {
  const std::string a = Timeline("a", 2);
  const std::string b = Timeline("b", 4);
  const Finished text = Run({"compare", a, b});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("spinning  20.0%  40.0%"), HasSubstr("differs"),
                              Not(HasSubstr("\x1b["))));
  const Finished finished = Run({"compare", a, b, "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const json::value result = json::parse(finished.out);
  EXPECT_EQ(result.at("rows").at(0).at("verdict"), "differs");
  EXPECT_EQ(result.at("rows").as_array().size(), 22u);
  EXPECT_EQ(Run({"compare", a, b, "--json"}).out, finished.out);  // the same numbers each time
}

TEST_F(Compare, ExitCodesOfLimits) {
  const std::string a = Timeline("a", 2);
  const std::string b = Timeline("b", 4);
  const auto code = [&](const std::vector<std::string>& limits) {
    std::vector<std::string> arguments = {"compare", a, b, "--single-run"};
    for (const std::string& limit : limits) {
      arguments.insert(arguments.end(), {"--fail-if", limit});
    }
    return Run(arguments).exit_code;
  };
  EXPECT_EQ(code({"spinning > +5pt"}), 1);
  EXPECT_EQ(code({"spinning > +50pt"}), 0);
  EXPECT_EQ(code({"spinning > +50pt", "productive < -10%"}), 1);
  EXPECT_EQ(code({"vcpu=7: spinning > +5pt"}), 3);
  EXPECT_EQ(code({"vm=nobody: spinning > +5pt", "spinning > +5pt"}), 1);
}

TEST_F(Compare, OneRunPerSideIsInconclusiveUnlessAccepted) {
  const std::string a = Timeline("a", 2);
  const std::string b = Timeline("b", 4);
  for (const std::string limit : {"spinning > +5pt", "spinning > +50pt"}) {
    const Finished finished = Run({"compare", a, b, "--fail-if", limit});
    EXPECT_EQ(finished.exit_code, 3) << finished.err;
    EXPECT_THAT(finished.out, AllOf(HasSubstr("INCONCLUSIVE"), HasSubstr("--before")));
  }
  ExpectRefused({"compare", a, b, "--single-run"}, HasSubstr("--single-run is about --fail-if"));
}

TEST_F(Compare, SeveralRunsPerSide) {
  std::vector<std::string> arguments = {"compare", "--before"};
  for (int i = 0; i < 3; ++i) arguments.push_back(Timeline("a" + std::to_string(i), 1 + i % 2));
  arguments.emplace_back("--after");
  for (int i = 0; i < 3; ++i) arguments.push_back(Timeline("b" + std::to_string(i), 7 + i % 2));
  arguments.insert(arguments.end(), {"--fail-if", "spinning > +20pt"});
  const Finished finished = Run(arguments);
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("A3: "), HasSubstr("spinning  13.3%  73.3%")));
  arguments.emplace_back("--single-run");
  ExpectRefused(arguments, HasSubstr("one recording per side"));
  const std::string a = folder_.Path("a0.vpt");
  ExpectRefused({"compare", "--before", a}, HasSubstr("--before needs --after"));
  ExpectRefused({"compare", a, "--after", a}, HasSubstr("--before and --after"));
  ExpectRefused({"compare", "--before", a, "--after", a, a}, HasSubstr("at least 2"));
}

TEST_F(Compare, StandardInputForOneOfThem) {
  const std::string a = Timeline("a", 2);
  const Finished finished =
      RunProgram({"/bin/sh", "-c", "exec \"$0\" compare - \"$1\" <\"$1\"", Vcpulse({}).front(), a});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out,
              AllOf(HasSubstr("A: standard input"), HasSubstr("both are the same recording"),
                    HasSubstr("differs 0")));
  ExpectRefused({"compare", "-", "-"}, HasSubstr("name files for the others"));
}

TEST_F(Compare, WhatCannotBeCompared) {
  const std::string a = Timeline("a", 2);
  ExpectRefused({"compare", a, folder_.Path("none.vpt")}, HasSubstr("none.vpt"));
  ExpectRefused({"compare", a, folder_.Path("a.csv")}, HasSubstr("a.csv"));
  ExpectRefused({"compare", a, a, "--phase", "x"}, HasSubstr("no phase 'x'"));
  ExpectRefused({"compare", a, a, "--vm", "x"}, HasSubstr("no VM is called 'x'"));
  ExpectRefused({"compare", a, a, "--fail-if", "spinning > 5"}, HasSubstr("column 12"));
  EXPECT_EQ(Run({"compare", a}).exit_code, 2);
  EXPECT_EQ(Run({"compare", a, a, a}).exit_code, 2);
}

TEST_F(Compare, StripsOfTheReport) {
  const std::string a = Timeline("a", 0);
  const auto strip = [&](const std::string& settings, const std::string& more) {
    const Finished finished = RunProgram(
        {"/bin/sh", "-c", settings + " exec \"$0\" report \"$1\" " + more, Vcpulse({}).front(), a});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const size_t begin = finished.out.find("   0 |");
    return begin == std::string::npos
               ? std::string()
               : finished.out.substr(begin, finished.out.find('\n', begin) - begin);
  };
  EXPECT_EQ(strip("COLUMNS=40", ""), "   0 |" + std::string(33, '#') + "|");
  EXPECT_EQ(strip("COLUMNS=1", "").size(), 40u);
  EXPECT_EQ(strip("unset COLUMNS;", "").size(), 100u);
  EXPECT_THAT(strip("COLUMNS=60", "--color always"), HasSubstr("\x1b[32m####"));
  EXPECT_THAT(strip("NO_COLOR=1", "--color always"), HasSubstr("\x1b["));
  EXPECT_EQ(Run({"report", a, "--color", "blue"}).exit_code, 2);
}

}  // namespace
}  // namespace vcpulse::kvm_tests
