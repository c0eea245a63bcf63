#include "tools/vcpulse/commands.h"

#include <cstdio>
#include <string>

#include "kvm/base/text.h"

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

int ExitCodeOf(check::Outcome outcome) {
  switch (outcome) {
    case check::Outcome::kPass:
      return kExitOk;
    case check::Outcome::kFail:
      return kExitFailed;
    case check::Outcome::kInconclusive:
      return kExitInconclusive;
    case check::Outcome::kSkip:
      break;
  }
  return kExitSkipped;
}

}  // namespace vcpulse::tools
