#pragma once

// The commands of a program as CLI11 knows them, flattened for man pages and shell completion. The
// texts are those of CLI11's own formatter, so they say what --help says.

#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"

namespace vcpulse::docs {

// What a shell can offer for a value. Nothing where all is empty.
struct Completion {
  std::vector<std::string> words;
  std::string files;  // a pattern for names of files, "/" for directories only, empty for none
};

struct Option {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its one name
  std::string after_names;         // as in --help: "FILE REQUIRED Excludes: --events"; may be empty
  std::string description;
  bool takes_value = false;
  bool repeats = false;
  std::string value_name;  // "FILE"
  Completion completion;   // of the value
};

struct Group {
  std::string title;
  std::string description;  // may be empty
  std::vector<Option> options;
};

struct Command {
  std::vector<std::string> path;  // "vcpulse", "list", "events"
  std::string description;        // one line
  std::string usage;              // without the word "Usage: "
  bool runs_command = false;      // takes `-- CMD ARGS...`
  std::vector<Option> positionals;
  std::vector<Group> groups;
  std::string footer;
  std::vector<Command> subcommands;
};

// What the shell offers for a value, from its name in --help: `a|b` or {a,b} are words to choose
// from; FILE, OUT, PATH, DIR, TIMELINE, CSV and PROFILE stand for files and names of profiles.
Completion CompletionOf(const std::string& value_name, const std::vector<std::string>& profiles);

// `profiles` are the names that PROFILE stands for. Hidden options and commands are left out, as in
// --help.
Command ReadCommandTree(const CLI::App& app, const std::vector<std::string>& profiles);

// "vcpulse-list-events" with '-', "vcpulse list events" with ' '.
std::string JoinPath(const Command& command, char separator);

// "one two three".
std::string Joined(const std::vector<std::string>& words);

// The command and all below it.
std::vector<const Command*> Flatten(const Command& command);

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
