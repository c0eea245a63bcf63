#include "monitor/prometheus/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

namespace vcpulse::prometheus {
namespace {

std::string LineWith(const Exposition::Labels& labels) {
  Exposition out;
  out.Begin("x", Exposition::Type::kGauge, "help");
  const size_t before = out.text().size();
  out.Add(labels, uint64_t{7});
  return out.text().substr(before);
}

std::string Escaped(std::string_view value) { return LineWith({{"l", value}}); }

TEST(Exposition, AFamilyAndItsSeries) {
  Exposition out;
  out.Begin("a_total", Exposition::Type::kCounter, "How many.");
  out.Add({{"vm", "one"}, {"vcpu", "0"}}, std::numeric_limits<uint64_t>::max());
  out.Add({}, 0.25);
  out.Begin("b_seconds", Exposition::Type::kHistogram, "How long.");
  out.Add({{"le", "+Inf"}}, uint64_t{3}, "_bucket");
  out.Add({}, 1.5, "_sum");
  EXPECT_EQ(out.text(),
            "# HELP a_total How many.\n# TYPE a_total counter\n"
            "a_total{vm=\"one\",vcpu=\"0\"} 18446744073709551615\na_total 0.25\n"
            "# HELP b_seconds How long.\n# TYPE b_seconds histogram\n"
            "b_seconds_bucket{le=\"+Inf\"} 3\nb_seconds_sum 1.5\n");
}

TEST(Exposition, AnyBytesAreAValueOfALabel) {
  EXPECT_EQ(Escaped("back\\slash \"quoted\"\nline"),
            "x{l=\"back\\\\slash \\\"quoted\\\"\\nline\"} 7\n");
  EXPECT_EQ(Escaped("gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\xA7"),
            "x{l=\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\xA7\"} 7\n");
  // No UTF-8: a stray byte, a surrogate, a sequence that is cut off; and a zero.
  EXPECT_EQ(Escaped("a\xFF"
                    "b"),
            "x{l=\"a\xEF\xBF\xBD"
            "b\"} 7\n");
  EXPECT_EQ(Escaped("\xED\xA0\x80"), "x{l=\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"} 7\n");
  EXPECT_EQ(Escaped("\xC3"), "x{l=\"\xEF\xBF\xBD\"} 7\n");
  EXPECT_EQ(Escaped(std::string_view("\0", 1)), "x{l=\"\xEF\xBF\xBD\"} 7\n");
}

TEST(Exposition, ALabelWithoutAValueIsLeftOut) {
  EXPECT_EQ(LineWith({{"a", ""}, {"b", "1"}, {"c", ""}}), "x{b=\"1\"} 7\n");
  EXPECT_EQ(LineWith({{"a", ""}}), "x 7\n");
}

TEST(Exposition, NumbersAreShortAndWithoutExponent) {
  EXPECT_EQ(NumberText(5e-5), "0.00005");
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(1e21), "1000000000000000000000");
  EXPECT_EQ(std::strtod(NumberText(std::numeric_limits<double>::denorm_min()).c_str(), nullptr),
            std::numeric_limits<double>::denorm_min());
}

}  // namespace
}  // namespace vcpulse::prometheus
