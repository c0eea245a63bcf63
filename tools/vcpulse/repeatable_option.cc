#include "tools/vcpulse/repeatable_option.h"

#include "CLI/CLI.hpp"

namespace vcpulse::tools {

CLI::Option* AddRepeatable(CLI::App& command, const std::string& name,
                           std::vector<std::string>& values, const std::string& help) {
  return command
      .add_option(
          name,
          [&values](const std::vector<std::string>& given) {
            values = given;
            return true;
          },
          help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace vcpulse::tools
