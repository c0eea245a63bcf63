// Three recordings in the lab: two of one guest, and one of a guest that spins 10 points more. Busy
// vCPUs have an IPC of 0.5 there, which ipc-bands calls SPINNING.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "boost/json.hpp"
#include "tests/kvm/run_program.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

namespace json = boost::json;
using kvm_tests::Finished;

Finished Compare(const std::string& b, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"compare", OutputPath("pair-1", "base.vpt"),
                                        OutputPath("pair-1", b)};
  if (!more.empty() && more.front() == "--fail-if") arguments.emplace_back("--single-run");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return kvm_tests::RunProgram(kvm_tests::Vcpulse(arguments));
}

json::value CompareJson(const std::string& b) {
  const Finished finished = Compare(b, {"--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return json::parse(finished.out);
}

json::value RowOf(const json::value& comparison, const std::string& quantity) {
  for (const json::value& row : comparison.at("rows").as_array()) {
    if (row.at("quantity").as_string() == quantity) return row;
  }
  ADD_FAILURE() << quantity << " is missing";
  return {};
}

TEST(Pair, TenPointsMoreSpinningAreFound) {
  const json::value comparison = CompareJson("more.vpt");
  const json::value row = RowOf(comparison, "spinning");
  EXPECT_EQ(row.at("verdict"), "differs") << row;
  EXPECT_NEAR(row.at("difference").to_number<double>(), 0.1, 0.05) << row;
  EXPECT_LT(row.at("low").to_number<double>(), 0.1) << row;
  EXPECT_GT(row.at("high").to_number<double>(), 0.1) << row;
  EXPECT_GT(row.at("low").to_number<double>(), 0) << row;
  EXPECT_EQ(comparison.at("warnings").as_array().size(), 0u) << comparison;
  EXPECT_EQ(Compare("more.vpt", {"--fail-if", "spinning > +2pt"}).exit_code, 1);
  EXPECT_EQ(Compare("more.vpt", {"--fail-if", "spinning > +30pt"}).exit_code, 0);
}

// By chance one comparison in twenty has a row that differs at the level of 0.05; none has one that
// does so clearly.
TEST(Pair, TwoRunsOfOneGuestAreNotToldApart) {
  const json::value comparison = CompareJson("again.vpt");
  for (const json::value& row : comparison.at("rows").as_array()) {
    const json::value& p = row.at("p_adjusted");
    EXPECT_TRUE(p.is_null() || p.to_number<double>() > 0.001) << row;
  }
  EXPECT_NE(RowOf(comparison, "spinning").at("verdict"), "insufficient-data");
  EXPECT_EQ(Compare("again.vpt", {"--fail-if", "spinning > +10pt"}).exit_code, 0);
}

}  // namespace
}  // namespace vcpulse::lab
