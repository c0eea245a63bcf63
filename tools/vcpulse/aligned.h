#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vcpulse::tools {

// Rows of cells as lines, each column as wide as its widest cell, indented.
std::string Aligned(const std::vector<std::vector<std::string>>& rows, size_t indent);

}  // namespace vcpulse::tools
