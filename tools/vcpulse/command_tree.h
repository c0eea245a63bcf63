#pragma once

// The commands of a program as CLI11 knows them: what --help, man pages and shell completion are
// made from, so that they say the same.

#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"

namespace vcpulse::tools {

// What a shell can offer for a value. Nothing where all is empty.
struct Completion {
  std::vector<std::string> words;
  std::string files;  // a pattern for names of files, "/" for directories only, empty for none
  bool vms = false;   // names of the VMs that run
};

struct Option {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its one name
  std::string after_names;         // "FILE"; empty for a flag and a positional
  std::string description;         // ends with "(required)" or the default in brackets
  bool takes_value = false;
  bool repeats = false;
  std::string value_name;  // "FILE"
  Completion completion;   // of the value
};

struct Group {
  std::string title;
  std::vector<Option> options;
};

// Text to wrap, a term with its explanation, or a line to keep as it is.
struct Paragraph {
  enum class Kind { kText, kItem, kLiteral };
  Kind kind = Kind::kText;
  std::string term{};  // of an item
  std::string text;
};

// A part of a command's footer.
struct Section {
  std::string title;  // "Examples"; empty for the notes before the first title
  std::vector<Paragraph> paragraphs;
};

struct Command {
  std::vector<std::string> path;  // "vcpulse", "list", "events"
  std::string description;        // one line
  std::string usage;              // without the word "Usage: "
  bool runs_command = false;      // takes `-- CMD [ARGS...]`
  std::vector<Option> positionals;
  std::vector<Group> groups;
  std::vector<Section> sections;
  std::vector<Command> subcommands;
};

// What the shell offers for a value, from its name in --help: `a|b` or {a,b} are words to choose
// from; FILE, OUT, PATH, DIR, TIMELINE, CSV, PROFILE and VM stand for files, profiles and VMs.
Completion CompletionOf(const std::string& value_name, const std::vector<std::string>& profiles);

// How a footer is written:
//   Usage: [OPTIONS] FILE   what follows the command's name
//   Exit status:            a title, alone on its line, begins a section
//   A paragraph             lasts until an empty line, a title or an indented line
//     term  text            two blanks begin an item; deeper lines below it continue its text
//       a line as it is     four blanks, or two under "Examples", keep a line as it is
// `profiles` are the names that PROFILE stands for. Hidden options and commands are left out, as in
// --help.
Command ReadCommandTree(const CLI::App& app, const std::vector<std::string>& profiles);

// From the program down: {"vcpulse", "list", "events"}.
std::vector<std::string> PathOf(const CLI::App& app);

// "vcpulse-list-events" with '-', "vcpulse list events" with ' '.
std::string JoinPath(const Command& command, char separator);

// "one two three".
std::string Joined(const std::vector<std::string>& words);

// The command and all below it.
std::vector<const Command*> Flatten(const Command& command);

}  // namespace vcpulse::tools
