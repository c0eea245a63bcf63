#include "monitor/core/verdict.h"

namespace vcpulse::core {

std::string_view ToString(Band band) {
  switch (band) {
    case Band::kNone:
      return "-";
    case Band::kHalted:
      return "HALTED";
    case Band::kSpinning:
      return "SPINNING";
    case Band::kProductive:
      return "PRODUCTIVE";
    case Band::kUnknown:
      return "UNKNOWN";
  }
  return "-";
}

std::string_view ToString(Rule rule) {
  const auto i = static_cast<size_t>(rule);
  return kRuleTable[i < kRules ? i : 0].name;
}

}  // namespace vcpulse::core
