#include <string_view>
#include <vector>

#include "tools/vcpulse_docs/pages.h"

namespace vcpulse::docs {
namespace {

// What is the same for every command. `of` and `value` are the functions that are made below.
constexpr std::string_view kEngine = R"bash(
# Fills COMPREPLY with those of $words and of the files like $files that begin with $cur.
_vcpulse_offer() {
    local -a found=()
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    [ -n "$files" ] || return 0
    compopt -o filenames 2>/dev/null
    [ "$files" = / ] || mapfile -t found < <(compgen -f -X "!$files" -- "$cur")
    [ "$files" = / ] || [ ${#found[@]} -gt 0 ] || mapfile -t found < <(compgen -f -- "$cur")
    COMPREPLY+=("${found[@]}")
    mapfile -t found < <(compgen -d -- "$cur")
    COMPREPLY+=("${found[@]}")
}

# The names of the VMs that run. Only plain ones: compgen -W expands words, and a name may be $(anything).
_vcpulse_vms() {
    "${COMP_WORDS[0]}" list --json 2>/dev/null | grep -oE '^.?\{"name":"[[:alnum:]._:@+-]+"' | cut -d '"' -f 4
}

# What follows `--` in word $1 is another command.
_vcpulse_other_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset $(($1 + 1))
    elif [ "$COMP_CWORD" -eq $(($1 + 1)) ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}

_vcpulse() {
    local cur=${COMP_WORDS[COMP_CWORD]} command=vcpulse option= place=0 i word
    local commands options words files runs_command
    COMPREPLY=()
    _vcpulse_of "$command"
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        # To bash unix:PATH, --option=VALUE and vcpu=0 are three words each.
        if [ "$word" = : ]; then
            ((i++))
        elif [ "$word" = = ]; then
            [ -n "$option" ] || ((i++))
        elif [ -n "$option" ]; then
            option=
        elif [ "$word" = -- ] && [ -n "$runs_command" ]; then
            _vcpulse_other_command "$i"
            return
        elif [[ $word == -?* ]]; then
            ! _vcpulse_value "$command" "$word" || option=$word
        elif [ "$place" -eq 0 ] && [[ " $commands " == *" $word "* ]]; then
            command="$command $word"
            _vcpulse_of "$command"
        else
            ((place++))
        fi
    done
    if [ "$cur" = : ] || [ "${COMP_WORDS[COMP_CWORD - 1]}" = : ]; then
        words= files='*'
        cur=${cur#:}
        _vcpulse_offer
        return
    fi
    cur=${cur#=}
    if [ -n "$option" ]; then
        ! _vcpulse_value "$command" "$option" || _vcpulse_offer
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    else
        _vcpulse_value "$command" $((place + 1)) || words= files=
        [ "$place" -gt 0 ] || words="$commands $words"
        _vcpulse_offer
        [ ${#COMPREPLY[@]} -gt 0 ] || [ -n "$cur" ] ||
            mapfile -t COMPREPLY < <(compgen -W "$options")
    fi
}

complete -F _vcpulse vcpulse
)bash";

// One case of _vcpulse_of: what the command knows.
std::string CaseOf(const Command& command) {
  std::vector<std::string> commands;
  commands.reserve(command.subcommands.size());
  for (const Command& below : command.subcommands) commands.push_back(below.path.back());
  std::vector<std::string> options;
  for (const Group& group : command.groups) {
    for (const Option& option : group.options) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
  }
  if (command.runs_command) options.push_back("--");
  return "    '" + JoinPath(command, ' ') + "')\n        commands='" + Joined(commands) +
         "'\n        options='" + Joined(options) +
         "'\n        runs_command=" + (command.runs_command ? "yes" : "") + "\n        ;;\n";
}

std::string ValueCase(const std::string& pattern, const Completion& completion) {
  const std::string words =
      completion.vms ? "\"$(_vcpulse_vms)\"" : "'" + Joined(completion.words) + "'";
  return "    " + pattern + ") words=" + words + " files='" + completion.files + "' ;;\n";
}

// The cases of _vcpulse_value: an option's value by the option, a positional by its place from 1.
std::string ValueCases(const Command& command) {
  const std::string path = JoinPath(command, ' ');
  std::string cases;
  for (const Group& group : command.groups) {
    for (const Option& option : group.options) {
      if (!option.takes_value) continue;
      std::string pattern;
      for (const std::string& name : option.names) {
        pattern += pattern.empty() ? "'" : " | '";
        pattern.append(path).append(" ").append(name).append("'");
      }
      cases += ValueCase(pattern, option.completion);
    }
  }
  for (size_t i = 0; i < command.positionals.size(); ++i) {
    const Option& positional = command.positionals[i];
    const std::string place = positional.repeats ? "[0-9]*" : std::to_string(i + 1);
    std::string pattern = "'";
    pattern.append(path).append(" '").append(place);
    cases += ValueCase(pattern, positional.completion);
  }
  return cases;
}

}  // namespace

std::string BashCompletion(const Command& root) {
  std::string script =
      "# Completion of vcpulse for bash. Made from the options of the program: change those.\n\n"
      "# Sets what the command $1 knows.\n"
      "_vcpulse_of() {\n    case $1 in\n";
  for (const Command* command : Flatten(root)) script += CaseOf(*command);
  script +=
      "    esac\n}\n\n"
      "# Sets what the value of option $2 (or the argument in place $2) of the command $1 can be.\n"
      "# Fails where there is no such value.\n"
      "_vcpulse_value() {\n    case \"$1 $2\" in\n";
  for (const Command* command : Flatten(root)) script += ValueCases(*command);
  script += "    *) return 1 ;;\n    esac\n}\n";
  return script.append(kEngine);
}

}  // namespace vcpulse::docs
