#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vcpulse::tools {

// Adds an option that may be given several times, one value each: an option that is a vector would
// take "[a,b]" apart, and the words after its value. `values` must live as long as `command`.
CLI::Option* AddRepeatable(CLI::App& command, const std::string& name,
                           std::vector<std::string>& values, const std::string& help);

}  // namespace vcpulse::tools
