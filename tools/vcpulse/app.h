#pragma once

// The whole command line of vcpulse, for the program and for what is made from it: man pages and
// shell completion (tools/vcpulse_docs).

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace vcpulse::tools {

// Every subcommand with its options and help. `command` is what followed `--` on the command line.
// Parsing runs the subcommand that was given, which sets `exit_code`; it must outlive the result.
std::unique_ptr<CLI::App> BuildApp(std::vector<std::string> command, int& exit_code);

}  // namespace vcpulse::tools
