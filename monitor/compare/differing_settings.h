#pragma once

// What else than the guests may make two recordings differ. Pure.

#include <string>
#include <vector>

#include "monitor/compare/comparison.h"
#include "monitor/compare/recording.h"

namespace vcpulse::compare {

Described Describe(const Recording& recording, const Measured& measured);

// One line each: settings and hosts that differ so that numbers may differ for it.
std::vector<std::string> DifferingSettings(const Recording& a, const Measured& of_a,
                                           const Recording& b, const Measured& of_b);

}  // namespace vcpulse::compare
