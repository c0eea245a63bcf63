#pragma once

// perf's event modifiers (man perf-list, "EVENT MODIFIERS"). vcpulse counts guests and nothing
// else, so all but one would change what its numbers mean.

#include <string>
#include <string_view>

namespace vcpulse::kvm {

// Whether `text` consists of the letters of perf's modifiers.
bool AreModifierLetters(std::string_view text);

// Why vcpulse does not take `modifiers`: of the first refused letter, for people. Empty where there
// is none: `G` (guest only) says what vcpulse does anyway.
std::string ModifierRefusal(std::string_view modifiers);

}  // namespace vcpulse::kvm
