#include "tools/vcpulse/help.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "tools/vcpulse/output.h"

namespace vcpulse::tools {
namespace {

constexpr size_t kNarrowest = 60;
constexpr size_t kWidest = 99;
constexpr size_t kOfNoTerminal = 80;
constexpr size_t kIndent = 2;
// Where descriptions of options begin.
constexpr size_t kDescriptionColumn = 28;

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

// The text begins at `text_column`, on the next line where the term is too long.
void AddItem(const std::string& term, const std::string& text, size_t text_column, size_t width,
             std::string& out) {
  out.append(kIndent, ' ') += term;
  size_t column = kIndent + term.size();
  if (column + 2 > text_column) {
    out += '\n';
    column = 0;
  }
  if (!text.empty()) out.append(text_column - column, ' ');
  Wrap(text, text_column, text_column, width, out);
}

void AddOption(const Option& option, size_t width, std::string& out) {
  std::string term;
  for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + name;
  if (!option.after_names.empty()) term += " " + option.after_names;
  AddItem(term, option.description, kDescriptionColumn, width, out);
}

// Behind the longest term, or where descriptions of options begin.
size_t TextColumnOf(const Section& section) {
  size_t longest = 0;
  for (const Paragraph& paragraph : section.paragraphs) {
    longest = std::max(longest, paragraph.term.size());
  }
  return std::min(kIndent + longest + 2, kDescriptionColumn);
}

void AddSection(const Section& section, size_t width, std::string& out) {
  using Kind = Paragraph::Kind;
  const size_t indent = section.title.empty() ? 0 : kIndent;
  const size_t text_column = TextColumnOf(section);
  if (!section.title.empty()) out += "\n" + section.title + ":\n";
  std::optional<Kind> before;
  for (const Paragraph& paragraph : section.paragraphs) {
    const bool is_text = paragraph.kind == Kind::kText;
    const bool apart = before ? is_text || *before == Kind::kText : section.title.empty();
    if (apart) out += '\n';
    before = paragraph.kind;
    switch (paragraph.kind) {
      case Kind::kText:
        out.append(indent, ' ');
        Wrap(paragraph.text, indent, indent, width, out);
        break;
      case Kind::kItem:
        AddItem(paragraph.term, paragraph.text, text_column, width, out);
        break;
      case Kind::kLiteral:
        out.append(kIndent, ' ') += paragraph.text + "\n";
        break;
    }
  }
}

const Command* Find(const Command& command, const std::vector<std::string>& path) {
  const std::vector<const Command*> all = Flatten(command);
  const auto found = std::ranges::find(all, path, &Command::path);
  return found == all.end() ? nullptr : *found;
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
    AddItem(below.path.back(), below.description, kDescriptionColumn, width, text);
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
  const Command* command = Find(tree, PathOf(*app));
  const size_t width = std::clamp(WidthOfStdout().value_or(kOfNoTerminal), kNarrowest, kWidest);
  return command == nullptr ? "" : HelpText(*command, width);
}

}  // namespace vcpulse::tools
