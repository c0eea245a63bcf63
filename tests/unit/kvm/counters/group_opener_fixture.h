#pragma once

// The groups of a VM of three vCPUs whose kernel is a fake.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/counters/group_opener.h"
#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {

inline std::vector<Event> SomeEvents(std::initializer_list<uint64_t> configs) {
  std::vector<Event> events;
  for (const uint64_t config : configs) {
    events.push_back(
        {.name = absl::StrCat("hw", config), .type = PERF_TYPE_HARDWARE, .config = config});
  }
  return events;
}

class GroupOpenerFixture : public ::testing::Test {
 protected:
  absl::StatusOr<OpenedGroups> Open(const OpenOptions& options = {}) {
    return OpenGroups(perf_, proc_.root(), vm_, options);
  }

  static std::vector<std::string> Names(const OpenedGroups& opened) {
    std::vector<std::string> names;
    for (const Event& event : opened.layout.front().events) names.emplace_back(event.name);
    return names;
  }

  static std::vector<std::string> Absent(const OpenedGroups& opened) {
    std::vector<std::string> names;
    for (const AbsentEvent& event : opened.absent) names.push_back(event.name);
    return names;
  }

  void Refuse(uint64_t config, int error) { perf_.refused[{PERF_TYPE_HARDWARE, config}] = error; }

  fakes::ProcDir proc_;
  fakes::FakePerfEvents perf_;
  Vm vm_{.pid = 10,
         .name = "web",
         .vcpus = {{.index = 0, .tid = 11}, {.index = 1, .tid = 12}, {.index = 2, .tid = 13}}};
};

}  // namespace vcpulse::kvm
