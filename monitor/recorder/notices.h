#pragma once

#include <string>
#include <vector>

namespace vcpulse::recorder {

// Lines for people that came up since they were last taken. What is said of several VMs at once is
// one line: "VMs a, b, c and 6 more: ...".
class Notices {
 public:
  // Of one VM, by its label.
  void Add(const std::string& vm, const std::string& text);
  void Add(const std::string& text) { Add("", text); }

  // In the sequence in which they came up.
  std::vector<std::string> Take();

 private:
  struct Notice {
    std::string text;
    std::vector<std::string> vms;
  };
  std::vector<Notice> notices_;
};

}  // namespace vcpulse::recorder
