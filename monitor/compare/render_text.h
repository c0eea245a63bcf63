#pragma once

#include <string>

#include "monitor/compare/comparison.h"

namespace vcpulse::compare {

struct TextOptions {
  bool colour = false;  // ANSI sequences, for a terminal
};

// The comparison for people: both recordings, what makes differences doubtful, a table by effect,
// limits. Pure.
std::string RenderText(const Comparison& comparison, const TextOptions& options = {});

}  // namespace vcpulse::compare
