#include <string_view>

#include "tools/vcpulse_docs/pages.h"

namespace vcpulse::docs {
namespace {

// Text inside single quotes.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string Escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// What _arguments is to do for a value; one blank only shows the value's name.
std::string ActionOf(const Completion& completion) {
  const std::string words = Joined(completion.words);
  if (completion.vms) return " _vcpulse_vms";
  if (completion.files.empty()) return words.empty() ? " " : "(" + words + ")";
  if (!words.empty()) return " _vcpulse_words_or_files " + words;
  if (completion.files == "/") return "_files -/";
  if (completion.files == "*") return "_files";
  return "_files -g \"" + completion.files + "(-.)\"";
}

// One specification per name; the names of one option exclude each other unless it repeats.
std::string OptionLines(const Option& option) {
  std::string lines;
  for (const std::string& name : option.names) {
    std::string line = option.repeats ? "*" : "(" + Joined(option.names) + ")";
    line += name;
    if (option.takes_value && name.starts_with("--")) line += '=';
    line += "[" + Escaped(option.description, "[]") + "]";
    if (option.takes_value) {
      line += ":" + Escaped(option.value_name, ":") + ":" + ActionOf(option.completion);
    }
    lines += "    " + Quoted(line) + "\n";
  }
  return lines;
}

std::string PositionalLine(const Option& positional, size_t place) {
  const std::string spec = (positional.repeats ? "*" : std::to_string(place)) + ":" +
                           Escaped(positional.names.front(), ":") + ":" +
                           ActionOf(positional.completion);
  return "    " + Quoted(spec) + "\n";
}

std::string FunctionName(const Command& command) { return "_" + JoinPath(command, '_'); }

std::string ListOfCommands(const Command& command) {
  std::string text = "  local -a commands=(\n";
  for (const Command& below : command.subcommands) {
    text += "    " + Quoted(Escaped(below.path.back(), ":") + ":" + below.description) + "\n";
  }
  return text + "  )\n";
}

std::string Dispatch(const Command& command) {
  std::string text =
      "  case $state in\n"
      "  command) _describe command commands && ret=0 ;;\n"
      "  arguments)\n"
      "    case $line[1] in\n";
  for (const Command& below : command.subcommands) {
    text += "    " + below.path.back() + ") " + FunctionName(below) + " && ret=0 ;;\n";
  }
  return text + "    esac ;;\n  esac\n";
}

std::string FunctionOf(const Command& command) {
  const bool has_commands = !command.subcommands.empty();
  std::string text = FunctionName(command) +
                     "() {\n  local curcontext=$curcontext state line ret=1\n"
                     "  local -A opt_args\n";
  if (has_commands) text += ListOfCommands(command);
  // _arguments shortens `words`.
  if (command.runs_command) text += "  local -a given=(\"${words[@]}\")\n";
  std::string specs;
  for (const Group& group : command.groups) {
    for (const Option& option : group.options) specs += OptionLines(option);
  }
  if (has_commands) {
    specs += "    '1: :->command'\n    '*:: :->arguments'\n";
  } else if (command.runs_command) {
    specs += "    '*:: :->other'\n";
  } else {
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      specs += PositionalLine(command.positionals[i], i + 1);
    }
  }
  text += "  local -a specs=(\n" + specs + "  )\n  _arguments -C $specs && ret=0\n";
  if (has_commands) text += Dispatch(command);
  if (command.runs_command) {
    text += "  [[ $state == other ]] && (( ${given[(I)--]} )) && _normal && ret=0\n";
  }
  return text + "  return ret\n}\n\n";
}

}  // namespace

std::string ZshCompletion(const Command& root) {
  std::string script =
      "#compdef vcpulse\n"
      "# Completion of vcpulse for zsh. Made from the options of the program: change those.\n\n"
      "_vcpulse_words_or_files() {\n"
      "  _alternative \"words:name:($*)\" 'files:file:_files'\n"
      "}\n\n"
      "_vcpulse_vms() {\n"
      "  local -a vms=(${(f)\"$($service list --json 2>/dev/null |\n"
      "    grep -oE '^.?\\{\"name\":\"[[:alnum:]._:@+-]+\"' | cut -d '\"' -f 4)\"})\n"
      "  compadd -a vms\n"
      "}\n\n";
  for (const Command* command : Flatten(root)) script += FunctionOf(*command);
  return script + "_vcpulse \"$@\"\n";
}

}  // namespace vcpulse::docs
