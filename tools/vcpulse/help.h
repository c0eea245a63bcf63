#pragma once

// How the command explains itself: --help, and errors of a command line.

#include <cstddef>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/vcpulse/command_tree.h"

namespace vcpulse::tools {

// The help of one command, in lines of at most `width` columns where a word allows it. Examples
// come first.
std::string HelpText(const Command& command, size_t width);

// Makes CLI11 print HelpText, as wide as the terminal (60 to 99 columns; 80 where there is none).
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// One line for a command line that `app` could not parse: the argument that is wrong, as it was
// typed, with the name that was meant where one is close. `arguments` are those of the program, in
// order.
std::string UsageError(const CLI::App& app, const std::vector<std::string>& arguments,
                       const CLI::ParseError& error);

// The same for a first argument that is not a command.
std::string UnknownCommand(const CLI::App& app, const std::string& name);

}  // namespace vcpulse::tools
