#pragma once

// How the command explains itself.

#include <cstddef>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/vcpulse/command_tree.h"

namespace vcpulse::tools {

// The help of one command, in lines of at most `width` columns where a word allows it. Examples
// come first.
std::string HelpText(const Command& command, size_t width);

// Makes CLI11 print HelpText, as wide as the terminal (60 to 99 columns; 80 where that is
// unknown).
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace vcpulse::tools
