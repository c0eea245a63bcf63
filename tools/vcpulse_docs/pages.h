#pragma once

// Man pages and shell completion, made from the commands of a program.

#include <string>
#include <string_view>

#include "tools/vcpulse/command_tree.h"

namespace vcpulse::docs {

using tools::Command;
using tools::Completion;
using tools::Flatten;
using tools::Group;
using tools::Joined;
using tools::JoinPath;
using tools::Option;
using tools::Paragraph;
using tools::Section;

// A completion script for bash: commands, options, words to choose from and names of files. It
// needs no function of the package bash-completion, which only loads it.
std::string BashCompletion(const Command& root);

// A completion function for zsh, a file of its $fpath: commands and options with what --help says
// of them, words to choose from and names of files.
std::string ZshCompletion(const Command& root);

// Text as roff shows it: backslashes, hyphens (which roff would make typographic), quotes and the
// dots and apostrophes that begin a request at the start of a line.
std::string EscapeRoff(std::string_view text);

struct ManPageHead {
  std::string version;
  std::string date;  // "2024-05-01"
};

// The page of `command`, one of those of `root`, in section 1. It names all other pages.
std::string ManPage(const Command& root, const Command& command, const ManPageHead& head);

}  // namespace vcpulse::docs
