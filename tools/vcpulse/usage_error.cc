#include "tools/vcpulse/usage_error.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kvm/base/closest_name.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/command_tree.h"

namespace vcpulse::tools {
namespace {

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> commands = CommandsOf(app);
  const auto found = std::ranges::find(commands, name, &CLI::App::get_name);
  return found == commands.end() ? nullptr : *found;
}

// "list.events", as the file of --config names it.
const CLI::App* FindSection(const CLI::App& app, const std::string& section) {
  const CLI::App* command = &app;
  for (const absl::string_view name : absl::StrSplit(section, '.')) {
    command = command == nullptr ? nullptr : FindCommand(*command, std::string(name));
  }
  return command;
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

std::string HelpOf(const CLI::App& app) { return "`" + Joined(PathOf(app)) + " --help`"; }

// What to do with a second timeline where one is read.
std::string TwoTimelinesAdvice(const CLI::App& command, const std::string& extra) {
  constexpr auto kReadOne =
      std::to_array<std::string_view>({"check", "classify", "hotspots", "replay", "symbolize"});
  if (std::ranges::find(kReadOne, command.get_name()) == kReadOne.end()) return "";
  if (!extra.ends_with(".vpt")) return "";
  return ": one timeline is read here; `vcpulse merge` joins parts of one recording, `vcpulse "
         "compare` compares two";
}

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
  const CLI::App* command;                 // that the options belong to
  std::optional<std::string> unknown;      // the first option that it does not have
  const CLI::Option* valueless = nullptr;  // the first that another option follows, not a value
  std::optional<std::string> valued_flag;  // the first flag with a value: "--json" of "--json=no"
  std::vector<std::string> words;          // neither option, value nor command
};

Scan ScanArguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  Scan scan{.command = &app, .unknown = std::nullopt, .valued_flag = std::nullopt, .words = {}};
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
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag && argument.starts_with(name + "=") && !scan.valued_flag) scan.valued_flag = name;
    if (is_flag || argument != name) continue;
    ++i;  // its value
    const bool is_option = i < arguments.size() && IsOption(arguments[i]) &&
                           FindOption(scan.command, NameOf(arguments[i])) != nullptr;
    if (is_option && scan.valueless == nullptr) scan.valueless = option;
  }
  return scan;
}

std::string Missing(const CLI::Option& option) {
  return absl::StrCat(option.get_name(), " needs a value (", option.get_type_name(), ")");
}

// What the parser says, in words of ours. Errors are distinguished by their type; of the rest only
// the name of the option is taken from the text, which is the same in all releases of CLI11 that we
// build with.
std::string ParserMessage(const CLI::App& command, const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string first_word = text.substr(0, text.find_first_of(": "));
  const CLI::Option* option = FindOption(&command, first_word);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return absl::StrCat(first_word, " and ", text.substr(text.rfind(' ') + 1),
                        " cannot be used together");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && option != nullptr) {
    return option->count() > 1 ? absl::StrCat(first_word, " is given more than once")
                               : Missing(*option);
  }
  constexpr std::string_view kConversion = "Could not convert: ";  // "--flag = value"
  if (text.starts_with(kConversion)) {
    const std::string rest = text.substr(kConversion.size());
    const size_t equals = std::min(rest.find(" = "), rest.size());
    return absl::StrCat(rest.substr(0, equals), ": ",
                        Quoted(rest.substr(std::min(equals + 3, rest.size()))), " is not a number");
  }
  const bool has_commands = !CommandsOf(command).empty();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && has_commands) {
    return "no command given";
  }
  return text;
}

std::string_view WithoutBlanks(std::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(ToAbsl(text));
  return {stripped.data(), stripped.size()};
}

// The first line of `text` that is not a [COMMAND] of `app` or an OPTION = VALUE of the command
// above it, as "FILE:LINE: ...". Nothing where each line is one.
std::optional<std::string> FirstWrongLine(const CLI::App& app, const std::string& name,
                                          const std::string& text) {
  std::istringstream lines(text);
  const CLI::App* command = nullptr;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = absl::StrCat(name, ":", ++number, ": ");
    const std::string content(WithoutBlanks(line));
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[') {
      const std::string section = content.substr(1, content.find(']') - 1);
      command = FindSection(app, section);
      if (command != nullptr) continue;
      return absl::StrCat(where, Quoted(section), " is not a command",
                          DidYouMean(section, CommandNamesOf(app)));
    }
    const size_t equals = content.find('=');
    const std::string option(WithoutBlanks(content.substr(0, equals)));
    if (equals == std::string::npos) {
      return absl::StrCat(where, Quoted(content), " is not OPTION = VALUE");
    }
    const size_t dot = option.rfind('.');  // "record.interval"
    const bool is_dotted = command == nullptr && dot != std::string::npos;
    const CLI::App* const of = is_dotted ? FindSection(app, option.substr(0, dot)) : command;
    const std::string name_of_option = is_dotted ? option.substr(dot + 1) : option;
    if (of == nullptr) {
      return absl::StrCat(where, Quoted(option), " is above the first [COMMAND]");
    }
    if (of->get_option_no_throw("--" + name_of_option) == nullptr) {
      std::vector<std::string> names;
      AddOptionNames(*of, names);
      for (std::string& each : names) each.erase(0, 2);
      return absl::StrCat(where, Quoted(name_of_option), " is not an option of ", of->get_name(),
                          DidYouMean(name_of_option, names));
    }
    // A list may go on over several lines.
    std::string value(WithoutBlanks(content.substr(equals + 1)));
    const bool is_quoted = value.starts_with('"') || value.starts_with('\'');
    if (is_quoted && value.find(value.front(), 1) == std::string::npos) {
      return absl::StrCat(where, "the value of ", Quoted(name_of_option),
                          " has no closing quotation mark");
    }
    while (value.starts_with('[') && !value.ends_with(']') && std::getline(lines, line)) {
      ++number;
      value = absl::StrCat("[", std::string(WithoutBlanks(line)));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string UnknownCommand(const CLI::App& app, const std::string& name) {
  constexpr size_t kFew = 5;
  const std::vector<std::string> known = CommandNamesOf(app);
  const std::string unknown = "unknown command " + Quoted(name);
  if (app.get_parent() != nullptr && known.size() <= kFew) {
    return absl::StrCat(unknown, DidYouMean(name, known), " (`", Joined(PathOf(app)),
                        "` is followed by ", absl::StrJoin(known, ", "), ")");
  }
  return absl::StrCat(unknown, DidYouMean(name, known), " (", HelpOf(app), " lists the commands)");
}

std::string UsageError(const CLI::App& app, const std::vector<std::string>& arguments,
                       const CLI::ParseError& error) {
  const Scan scan = ScanArguments(app, arguments);
  const std::vector<std::string> below = CommandNamesOf(*scan.command);
  if (!below.empty() && !scan.words.empty()) return UnknownCommand(*scan.command, scan.words[0]);
  if (scan.unknown) {
    std::vector<std::string> names;
    for (const CLI::App* at = scan.command; at != nullptr; at = at->get_parent()) {
      AddOptionNames(*at, names);
    }
    return absl::StrCat("unknown option ", Quoted(*scan.unknown), DidYouMean(*scan.unknown, names),
                        " (", HelpOf(*scan.command), " lists the options)");
  }
  std::string what = ParserMessage(*scan.command, error);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);
    const auto first = std::ranges::find_first_of(scan.words, extras);
    if (first != scan.words.end()) what = "unexpected argument " + Quoted(*first);
    if (scan.valueless != nullptr) {
      what = Missing(*scan.valueless);
    } else if (first != scan.words.end()) {
      const std::string advice = TwoTimelinesAdvice(*scan.command, *first);
      if (!advice.empty()) return what + advice;
    }
  }
  const bool wants_command = !below.empty() && dynamic_cast<const CLI::RequiredError*>(&error);
  return absl::StrCat(what, " (", HelpOf(*scan.command),
                      wants_command ? " lists the commands)" : " shows the usage)");
}

std::optional<std::string> FlagWithValue(const CLI::App& app,
                                         const std::vector<std::string>& arguments) {
  const Scan scan = ScanArguments(app, arguments);
  if (!scan.valued_flag) return std::nullopt;
  return absl::StrCat(*scan.valued_flag, " takes no value (", HelpOf(*scan.command),
                      " shows the usage)");
}

std::optional<std::string> WrongCommandPath(const CLI::App& app,
                                            const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    if (word == "-h" || word == "--help") continue;
    const std::vector<const CLI::App*> below =
        at->get_subcommands([&word](const CLI::App* one) { return one->get_name() == word; });
    if (below.empty() && word.starts_with('-')) return "help takes no option " + Quoted(word);
    if (below.empty() && CommandNamesOf(*at).empty()) {
      return absl::StrCat("unexpected argument ", Quoted(word), " (`vcpulse help ", at->get_name(),
                          "` is enough)");
    }
    if (below.empty()) return UnknownCommand(*at, word);
    at = below.front();
  }
  return std::nullopt;
}

std::vector<CLI::ConfigItem> ConfigReader::from_config(std::istream& input) const {
  constexpr size_t kMost = size_t{1} << 20;  // more is not a file that a person wrote
  std::string text(kMost, '\0');
  input.read(text.data(), kMost);
  text.resize(static_cast<size_t>(input.gcount()));
  const std::string name = app_.get_config_ptr()->as<std::string>();
  if (const auto wrong = FirstWrongLine(app_, name, text)) {
    throw CLI::ConfigError("--config: " + *wrong, CLI::ExitCodes::ConfigError);
  }
  std::istringstream again(text);
  return CLI::ConfigTOML::from_config(again);
}

}  // namespace vcpulse::tools
