#pragma once

#include <string>
#include <string_view>

#include "tools/vcpulse_docs/command_tree.h"

namespace vcpulse::docs {

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
