#include "kvm/vm.h"

namespace vcpulse::kvm {

std::string_view ToString(FoundBy found_by) {
  switch (found_by) {
    case FoundBy::kGiven:
      return "given";
    case FoundBy::kQmp:
      return "qmp";
    case FoundBy::kDebugfs:
      return "debugfs";
    case FoundBy::kThreadName:
      return "thread-name";
    case FoundBy::kCgroup:
      return "cgroup";
    case FoundBy::kGuestTime:
      return "guest-time";
  }
  return "?";
}

std::string_view ToString(Proof proof) {
  switch (proof) {
    case Proof::kFd:
      return "fd";
    case Proof::kQmp:
      return "qmp";
    case Proof::kDebugfs:
      return "debugfs";
    case Proof::kName:
      return "name";
    case Proof::kNone:
      return "none";
  }
  return "?";
}

std::string_view ToString(Accelerator accelerator) {
  switch (accelerator) {
    case Accelerator::kKvm:
      return "kvm";
    case Accelerator::kTcg:
      return "tcg";
    case Accelerator::kUnknown:
      return "unknown";
  }
  return "?";
}

}  // namespace vcpulse::kvm
