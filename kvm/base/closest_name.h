#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vcpulse {

// The name that a person who wrote `text` may have meant: of `names`, the first with the fewest
// letters to insert, delete or replace, upper or lower case all the same. Empty where none is close
// (a third of the letters at most).
std::string ClosestName(std::string_view text, std::span<const std::string> names);

// "; did you mean 'cycles'?", to end an error with; empty where no name is close.
std::string DidYouMean(std::string_view text, std::span<const std::string> names);

}  // namespace vcpulse
