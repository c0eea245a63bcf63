#include "tools/vcpulse/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "kvm/base/closest_name.h"
#include "kvm/base/text.h"

namespace vcpulse::tools {
namespace {

constexpr size_t kNarrowest = 60;
constexpr size_t kWidest = 99;
constexpr size_t kNoTerminal = 80;
// Where descriptions begin.
constexpr size_t kDescriptionColumn = 28;

size_t TerminalWidth() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return kNoTerminal;
  return std::clamp<size_t>(window.ws_col, kNarrowest, kWidest);
}

// Appends `text` to a line that has `column` columns already; the lines that follow are indented.
void Wrap(std::string_view text, size_t column, size_t indent, size_t width, std::string& out) {
  std::istringstream words{std::string(text)};
  bool begins = true;
  for (std::string word; words >> word;) {
    if (!begins && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
      begins = true;
    }
    if (!begins) out += ' ';
    column += word.size() + (begins ? 0 : 1);
    out += word;
    begins = false;
  }
  out += '\n';
}

void AddItem(const std::string& term, const std::string& description, size_t width,
             std::string& out) {
  out += "  " + term;
  size_t column = 2 + term.size();
  if (column + 2 > kDescriptionColumn) {
    out += '\n';
    column = 0;
  }
  if (!description.empty()) out.append(kDescriptionColumn - column, ' ');
  Wrap(description, kDescriptionColumn, kDescriptionColumn, width, out);
}

void AddOption(const Option& option, size_t width, std::string& out) {
  std::string term;
  for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + name;
  if (!option.after_names.empty()) term += " " + option.after_names;
  AddItem(term, option.description, width, out);
}

void AddSection(const Section& section, size_t width, std::string& out) {
  out += '\n';
  if (!section.title.empty()) out += section.title + ":\n";
  for (const std::string& line : section.lines) {
    const bool stays = line.empty() || line.starts_with(' ');
    stays ? static_cast<void>(out += line + "\n") : Wrap(line, 0, 0, width, out);
  }
}

// From the program down: {"vcpulse", "list", "events"}.
std::vector<std::string> PathOf(const CLI::App* app) {
  std::vector<std::string> path;
  for (; app != nullptr; app = app->get_parent()) path.push_back(app->get_name());
  std::ranges::reverse(path);
  return path;
}

const Command* Find(const Command& command, const std::vector<std::string>& path) {
  const std::vector<const Command*> all = Flatten(command);
  const auto found = std::ranges::find(all, path, &Command::path);
  return found == all.end() ? nullptr : *found;
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> commands = CommandsOf(app);
  const auto found = std::ranges::find(commands, name, &CLI::App::get_name);
  return found == commands.end() ? nullptr : *found;
}

std::vector<std::string> CommandNamesOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(app)) names.push_back(command->get_name());
  return names;
}

// The option of `app` or, as they may stand behind a command too, of those above it.
const CLI::Option* FindOption(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

void AddOptionNames(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
}

std::string HelpOf(const CLI::App* app) { return "`" + Joined(PathOf(app)) + " --help`"; }

bool IsOption(const std::string& argument) {
  const bool is_number = argument.find_first_of("0123456789.") == 1;
  return argument.size() > 1 && argument.front() == '-' && !is_number;
}

// "--name" of "--name=value", "-n" of "-nvalue".
std::string NameOf(const std::string& argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('='))
                                    : argument.substr(0, 2);
}

// What the arguments mean as far as this can be said without parsing them.
struct Scan {
  const CLI::App* command;             // that the options belong to
  std::optional<std::string> unknown;  // the first option that it does not have
  std::vector<std::string> words;      // neither option, value nor command
};

Scan ScanArguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  Scan scan{.command = &app, .unknown = std::nullopt, .words = {}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!IsOption(argument)) {
      const CLI::App* below = scan.words.empty() ? FindCommand(*scan.command, argument) : nullptr;
      below != nullptr ? static_cast<void>(scan.command = below) : scan.words.push_back(argument);
      continue;
    }
    const std::string name = NameOf(argument);
    const CLI::Option* option = FindOption(scan.command, name);
    if (option == nullptr) {
      scan.unknown = name;
      return scan;
    }
    if (option->get_items_expected_max() > 0 && argument == name) ++i;  // its value
  }
  return scan;
}

}  // namespace

std::string HelpText(const Command& command, size_t width) {
  std::string text;
  Wrap(command.description, 0, 0, width, text);
  text += '\n';
  Wrap("Usage: " + command.usage, 0, 4, width, text);
  const auto is_examples = [](const Section& section) { return section.title == "Examples"; };
  for (const Section& section : command.sections) {
    if (is_examples(section)) AddSection(section, width, text);
  }
  if (!command.positionals.empty()) text += "\nArguments:\n";
  for (const Option& positional : command.positionals) AddOption(positional, width, text);
  for (const Group& group : command.groups) {
    text += "\n" + group.title + ":\n";
    for (const Option& option : group.options) AddOption(option, width, text);
  }
  if (!command.subcommands.empty()) text += "\nCommands:\n";
  for (const Command& below : command.subcommands) {
    AddItem(below.path.back(), below.description, width, text);
  }
  for (const Section& section : command.sections) {
    if (!is_examples(section)) AddSection(section, width, text);
  }
  return text;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  const CLI::App* root = app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  const Command tree = ReadCommandTree(*root, {});
  const Command* command = Find(tree, PathOf(app));
  return command == nullptr ? "" : HelpText(*command, TerminalWidth());
}

std::string UnknownCommand(const CLI::App& app, const std::string& name) {
  return "unknown command " + Quoted(name) + DidYouMean(name, CommandNamesOf(app)) + " (" +
         HelpOf(&app) + " lists the commands)";
}

std::string UsageError(const CLI::App& app, const std::vector<std::string>& arguments,
                       const CLI::ParseError& error) {
  const Scan scan = ScanArguments(app, arguments);
  if (scan.unknown) {
    std::vector<std::string> names;
    for (const CLI::App* at = scan.command; at != nullptr; at = at->get_parent()) {
      AddOptionNames(*at, names);
    }
    return "unknown option " + Quoted(*scan.unknown) + DidYouMean(*scan.unknown, names) + " (" +
           HelpOf(scan.command) + " lists the options)";
  }
  const std::vector<std::string> below = CommandNamesOf(*scan.command);
  if (!below.empty() && !scan.words.empty()) return UnknownCommand(*scan.command, scan.words[0]);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);
    const auto first = std::ranges::find_first_of(scan.words, extras);
    if (first != scan.words.end()) {
      return "unexpected argument " + Quoted(*first) + " (" + HelpOf(scan.command) +
             " shows the usage)";
    }
  }
  return std::string(error.what()) + " (" + HelpOf(scan.command) + " shows the usage)";
}

}  // namespace vcpulse::tools
