#pragma once

// The thresholds of a profile: one table for reading, writing and checking them.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "monitor/core/profile.h"

namespace vcpulse::profile {

// The values that a field may have.
struct Limits {
  double lowest = 0;
  bool above = false;  // more than `lowest`, not equal to it: a logarithm is taken
  double highest = 0;
  std::string_view text;  // "a share, 0 to 1"

  bool Allow(double value) const;
};

// Where a field lies: one of the two. A field that is optional may be off.
struct Place {
  double* number = nullptr;
  std::optional<double>* optional = nullptr;
};

struct Field {
  std::string_view name;
  Place (*at)(core::Profile&) = nullptr;
  const Limits* limits = nullptr;

  bool MayBeOff() const;
  // Nothing where it is off.
  std::optional<double> Get(const core::Profile& profile) const;
  // `value` is there, or the field may be off.
  void Set(core::Profile& profile, std::optional<double> value) const;
};

// In the order of core::Profile.
std::span<const Field> Fields();
const Field* FindField(std::string_view name);  // null where there is none

// Limits of both ends of a spin's IPC.
const Limits& SpinIpcLimits();

// A number as the shortest text that is read as the same number again.
std::string NumberText(double value);

// What is wrong with a field, and with which; an empty text where nothing is.
struct Fault {
  std::string field;
  std::string text;
};

// Of all fields: their limits, and what they must be to each other.
Fault FindFault(const core::Profile& profile);

}  // namespace vcpulse::profile
