#include "tools/vcpulse/explain_option.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

using Part = std::pair<std::string, std::string>;  // key, value

absl::Status Malformed(const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("--explain: '", text,
                   "' is not vcpu=N[,vm=VM][,at=T], VM as name, UUID, PID or number, T as 12.3s "
                   "after the start"));
}

// The parts, or nothing for text of another form.
std::optional<std::vector<Part>> Split(std::string_view text) {
  std::vector<Part> parts;
  while (true) {
    const size_t end = text.find(',');
    const std::string_view piece = text.substr(0, end);
    const size_t equals = piece.find('=');
    const std::string_view key = piece.substr(0, equals);
    if (key == "vcpu" || key == "vm" || key == "at") {
      if (equals == std::string_view::npos) return std::nullopt;
      parts.emplace_back(key, piece.substr(equals + 1));
    } else if (!parts.empty() && parts.back().first == "vm") {
      parts.back().second.append(",").append(piece);
    } else {
      return std::nullopt;
    }
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

absl::StatusOr<report::ExplainTarget> ParseExplainTarget(const std::string& text) {
  const auto parts = Split(text);
  if (!parts) return Malformed(text);
  report::ExplainTarget target;
  std::optional<uint32_t> vcpu;
  for (const auto& [key, value] : *parts) {
    if (key == "vcpu") {
      if (vcpu) return Malformed(text);
      vcpu = ParseNumber<uint32_t>(value);
      if (!vcpu) return Malformed(text);
    } else if (key == "vm") {
      if (target.vm || value.empty()) return Malformed(text);
      target.vm = value;
    } else {
      if (target.at_ns) return Malformed(text);
      const auto at = ParseDurationOption("--explain: at", value);
      if (!at.ok()) return at.status();
      target.at_ns = absl::ToInt64Nanoseconds(*at);
    }
  }
  if (!vcpu) return Malformed(text);
  target.vcpu = *vcpu;
  return target;
}

}  // namespace vcpulse::tools
