// KVM's statistics as vcpulse has them, between two readings of the sums in KVM's debugfs
// (tests/lab/inside/read_statistics.cc).

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

void ExpectWithin(const std::string& step, const std::string& source) {
  std::istringstream lines(ReadText(OutputPath("statistics-none", step + ".out")));
  std::set<std::string> names;
  std::set<std::string> moving;
  std::map<std::string, uint64_t> first;
  int readings = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string from, name;
    uint64_t before = 0, ours = 0, after = 0;
    ASSERT_TRUE(words >> from >> name >> before >> ours >> after) << line;
    EXPECT_EQ(from, source);
    EXPECT_GE(ours, before) << name;
    EXPECT_LE(ours, after) << name;
    names.insert(name);
    if (ours != first.try_emplace(name, ours).first->second) moving.insert(name);
    ++readings;
  }
  EXPECT_GE(names.size(), 8u);
  EXPECT_GE(readings, 40);
  // A guest that its timer wakes exits and halts.
  EXPECT_TRUE(moving.contains("exits"));
  EXPECT_TRUE(moving.contains("wfi_exit_stat"));
}

TEST(Statistics, QemusSumsAreDebugfss) { ExpectWithin("two", "kvm-qmp"); }

TEST(Statistics, OfOneVcpuDebugfsTellsThem) { ExpectWithin("one", "kvm-debugfs"); }

}  // namespace
}  // namespace vcpulse::lab
