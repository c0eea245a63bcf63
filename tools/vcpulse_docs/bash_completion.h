#pragma once

#include <string>

#include "tools/vcpulse_docs/command_tree.h"

namespace vcpulse::docs {

// A completion script for bash: commands, options, words to choose from and names of files. It
// needs no function of the package bash-completion, which only loads it.
std::string BashCompletion(const Command& root);

}  // namespace vcpulse::docs
