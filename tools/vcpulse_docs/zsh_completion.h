#pragma once

#include <string>

#include "tools/vcpulse_docs/command_tree.h"

namespace vcpulse::docs {

// A completion function for zsh, a file of its $fpath: commands and options with what --help says
// of them, words to choose from and names of files.
std::string ZshCompletion(const Command& root);

}  // namespace vcpulse::docs
