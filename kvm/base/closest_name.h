#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vcpulse {

// The name that a person who wrote `text` may have meant: of `names`, the first with the fewest
// letters to insert, delete, replace or swap with the next (a third of the letters at most), upper
// or lower case all the same; else the only one that `text`, of 3 letters or more, begins. Empty
// where there is none.
std::string ClosestName(std::string_view text, std::span<const std::string> names);

// "; did you mean 'cycles'?", to end an error with; empty where no name is close.
std::string DidYouMean(std::string_view text, std::span<const std::string> names);

}  // namespace vcpulse
