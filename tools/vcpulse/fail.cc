#include <cstdio>
#include <string>

#include "kvm/base/text.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {

int Fail(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fprintf(stderr, "vcpulse: %s\n", line.c_str());
  return kExitError;
}

int Fail(const absl::Status& status) { return Fail(ToStd(status.message())); }

}  // namespace vcpulse::tools
