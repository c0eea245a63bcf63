#include "tools/vcpulse/exit_code.h"

#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {

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
