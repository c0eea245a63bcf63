#pragma once

// The thresholds of a profile: one table for reading, writing and checking them.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "monitor/core/profile.h"

namespace vcpulse::profile {

// The values that a field may have, both ends inclusive.
struct Limits {
  double lowest = 0;
  double highest = 0;
  std::string_view text;  // "a share, 0 to 1"

  // What is wrong with a value: "2 is not a share, 0 to 1". Empty where nothing is.
  std::string Fault(double value) const;
};

struct Field {
  std::string_view name;
  // Where it lies. One that is optional may be off.
  std::variant<double core::PresenceThresholds::*, double core::IpcBandsThresholds::*,
               double core::EvidenceThresholds::*,
               std::optional<double> core::EvidenceThresholds::*>
      member;
  const Limits* limits = nullptr;
  std::string_view at_most = {};  // the field that it may not be above

  bool MayBeOff() const;
  // Nothing where it is off.
  std::optional<double> Get(const core::Profile& profile) const;
  // Nothing is for a field that may be off, and leaves others as they are.
  void Set(core::Profile& profile, std::optional<double> value) const;
};

// In the order of core::Profile.
std::span<const Field> Fields();

// Limits of both ends of a spin's IPC.
const Limits& SpinIpcLimits();

// A number as the shortest text that is read as the same number again.
std::string NumberText(double value);

}  // namespace vcpulse::profile
