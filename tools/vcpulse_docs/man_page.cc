#include <algorithm>
#include <cctype>
#include <optional>
#include <ranges>

#include "tools/vcpulse_docs/pages.h"

namespace vcpulse::docs {
namespace {

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string Bold(std::string_view text) { return "\\fB" + EscapeRoff(text) + "\\fR"; }

std::string Italic(std::string_view text) { return "\\fI" + EscapeRoff(text) + "\\fR"; }

std::string OptionItem(const Option& option, bool is_positional) {
  std::string names;
  for (const std::string& name : option.names) {
    if (!names.empty()) names += ", ";
    names += is_positional ? Italic(name) : Bold(name);
  }
  std::string item = ".TP\n" + names;
  if (!option.after_names.empty()) item += " " + EscapeRoff(option.after_names);
  return item + "\n" + EscapeRoff(option.description) + "\n";
}

std::string OptionSection(const Command& command) {
  std::string text = ".SH OPTIONS\n";
  for (const Option& positional : command.positionals) text += OptionItem(positional, true);
  for (const Group& group : command.groups) {
    if (group.title != "Options") text += ".SS " + EscapeRoff(group.title) + "\n";
    for (const Option& option : group.options) text += OptionItem(option, false);
  }
  return text;
}

std::string CommandSection(const Command& command) {
  std::string text = ".SH COMMANDS\n";
  for (const Command& below : command.subcommands) {
    text += ".TP\n" + Bold(JoinPath(below, '-')) + "(1)\n" + EscapeRoff(below.description) + "\n";
  }
  return text;
}

std::string SectionText(const Section& section) {
  using Kind = Paragraph::Kind;
  std::string text = ".SH " + (section.title.empty() ? "DESCRIPTION" : Upper(section.title)) + "\n";
  std::optional<Kind> before;
  for (const Paragraph& paragraph : section.paragraphs) {
    const bool was_literal = before == Kind::kLiteral;
    const bool is_literal = paragraph.kind == Kind::kLiteral;
    if (was_literal && !is_literal) text += ".fi\n";
    if (paragraph.kind == Kind::kText && before) text += ".PP\n";
    if (is_literal && !was_literal) text += ".nf\n";
    if (paragraph.kind == Kind::kItem) text += ".TP\n" + Bold(paragraph.term) + "\n";
    text += EscapeRoff(paragraph.text) + "\n";
    before = paragraph.kind;
  }
  return text + (before == Kind::kLiteral ? ".fi\n" : "");
}

std::string SeeAlso(const Command& root, const Command& command) {
  std::string text = ".SH SEE ALSO\n";
  std::string names;
  for (const Command* other : Flatten(root)) {
    if (other == &command) continue;
    if (!names.empty()) names += ",\n";
    names += Bold(JoinPath(*other, '-')) + "(1)";
  }
  return text + names + "\n";
}

}  // namespace

std::string EscapeRoff(std::string_view text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '"':
        escaped += "\\(dq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += c;
    }
    line_begins = c == '\n';
  }
  return escaped;
}

std::string ManPage(const Command& root, const Command& command, const ManPageHead& head) {
  const std::string name = JoinPath(command, '-');
  std::string page = ".\\\" Made from the options of the program: change those.\n";
  page += ".TH " + EscapeRoff(Upper(name)) + " 1 " + head.date + " \"" +
          EscapeRoff(root.path.front() + " " + head.version) + "\" \"" +
          EscapeRoff(root.path.front() + " manual") + "\"\n";
  page += ".SH NAME\n" + EscapeRoff(name) + " \\- " + EscapeRoff(command.description) + "\n";
  page += ".SH SYNOPSIS\n" + Bold(JoinPath(command, ' ')) +
          EscapeRoff(command.usage.substr(JoinPath(command, ' ').size())) + "\n";
  const auto is_notes = [](const Section& section) { return section.title.empty(); };
  for (const Section& section : command.sections | std::views::filter(is_notes)) {
    page += SectionText(section);
  }
  if (!command.subcommands.empty()) page += CommandSection(command);
  page += OptionSection(command);
  for (const Section& section : command.sections) {
    if (!is_notes(section)) page += SectionText(section);
  }
  return page + SeeAlso(root, command);
}

}  // namespace vcpulse::docs
