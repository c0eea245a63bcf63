#pragma once

// Errors of a command line and of the file of --config, one line each.

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace vcpulse::tools {

// For a command line that `app` could not parse: the argument that is wrong, as it was typed, with
// the name that was meant where one is close. `arguments` are those of the program, in order.
std::string UsageError(const CLI::App& app, const std::vector<std::string>& arguments,
                       const CLI::ParseError& error);

// What is wrong where a flag is given a value, as in --json=no: CLI11 takes it and does as it
// likes.
std::optional<std::string> FlagWithValue(const CLI::App& app,
                                         const std::vector<std::string>& arguments);

// Why `words` are not a command of `app`, one of its commands, and so on: `help import csv`.
std::optional<std::string> WrongCommandPath(const CLI::App& app,
                                            const std::vector<std::string>& words);

// For a first argument that is not a command.
std::string UnknownCommand(const CLI::App& app, const std::string& name);

// Reads the file of `app`'s --config, and refuses it at its first line that is not a [COMMAND] or
// an OPTION = VALUE of the command above it, as "--config: FILE:LINE: ...". `app` must outlive it.
class ConfigReader : public CLI::ConfigTOML {
 public:
  explicit ConfigReader(const CLI::App& app) : app_(app) {}
  // Throws CLI::ConfigError.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  const CLI::App& app_;
};

}  // namespace vcpulse::tools
