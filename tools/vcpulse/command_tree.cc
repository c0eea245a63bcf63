#include "tools/vcpulse/command_tree.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

namespace vcpulse::tools {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string Trimmed(const std::string& text) {
  constexpr std::string_view kBlanks = " \t\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsWord(const std::string& text) {
  constexpr std::string_view kOfWords = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  return !text.empty() && text.front() != '-' &&
         text.find_first_not_of(kOfWords) == std::string::npos;
}

void Offer(const std::string& name, const std::vector<std::string>& profiles,
           Completion& completion) {
  if (name == "PROFILE") {
    completion.words.insert(completion.words.end(), profiles.begin(), profiles.end());
  } else if (name == "FILE" || name == "OUT" || name == "PATH") {
    completion.files = "*";
  } else if (name == "TIMELINE") {
    completion.files = "*.vpt";
  } else if (name == "CSV") {
    completion.files = "*.csv";
  } else if (name == "VM") {
    completion.vms = true;
  } else if (name == "DIR") {
    completion.files = "/";
  } else if (IsWord(name)) {
    completion.words.push_back(name);
  }
}

Option ReadOption(const CLI::Option& option, bool is_positional,
                  const std::vector<std::string>& profiles) {
  const CLI::Formatter formatter;
  Option read;
  read.names = Split(formatter.make_option_name(&option, is_positional), ',');
  read.description = formatter.make_option_desc(&option);
  if (option.get_required()) read.description += " (required)";
  const std::string initial = option.get_default_str();
  if (!initial.empty()) read.description += " [" + initial + "]";
  read.takes_value = option.get_items_expected_max() != 0;
  read.repeats = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  if (!read.takes_value) return read;
  const std::string type = option.get_type_name();
  read.value_name = is_positional ? read.names.front() : type;
  if (!is_positional) read.after_names = type;
  read.completion = CompletionOf(type, profiles);
  // A positional FILE of which its type says no more is a timeline: that is what commands read.
  const bool says_more = !read.completion.words.empty() || !read.completion.files.empty();
  if (is_positional && !says_more) {
    read.completion = CompletionOf(read.value_name == "FILE" ? "TIMELINE" : "", profiles);
  }
  return read;
}

// By the groups that they were added to; those without one come last.
std::vector<Group> ReadGroups(const CLI::App& app, const std::vector<std::string>& profiles) {
  std::vector<Group> groups;
  for (const std::string& title : app.get_groups()) {
    Group group{.title = title, .options = {}};
    for (const CLI::Option* option : app.get_options()) {
      if (title.empty() || option->get_group() != title || !option->nonpositional()) continue;
      group.options.push_back(ReadOption(*option, false, profiles));
    }
    if (!group.options.empty()) groups.push_back(std::move(group));
  }
  std::ranges::stable_partition(groups,
                                [](const Group& group) { return group.title != "Options"; });
  return groups;
}

std::string UsageOf(const CLI::App& app, const std::string& path) {
  const std::string usage = Trimmed(CLI::Formatter().make_usage(&app, path));
  return usage.substr(usage.find(path));
}

// Sections from the lines of a footer (how they are written: command_tree.h).
class FooterReader {
 public:
  void Add(const std::string& line) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string text = line.substr(indent);
    if (text.empty()) {
      continues_ = nullptr;
    } else if (indent == 0) {
      AddText(text);
    } else if (IsContinuation(indent)) {
      continues_->text += " " + text;
    } else if (indent >= kLiteralIndent || IsOfExamples()) {
      AddParagraph({.kind = Paragraph::Kind::kLiteral, .text = text});
      continues_ = nullptr;
    } else {
      const size_t end = std::min(text.find("  "), text.size());
      AddParagraph({.kind = Paragraph::Kind::kItem,
                    .term = text.substr(0, end),
                    .text = Trimmed(text.substr(end))});
    }
  }

  std::vector<Section> Take() { return std::move(sections_); }

 private:
  static constexpr size_t kLiteralIndent = 4;

  bool IsOfExamples() const { return !sections_.empty() && sections_.back().title == "Examples"; }

  bool IsContinuation(size_t indent) const {
    return continues_ != nullptr && continues_->kind == Paragraph::Kind::kItem &&
           indent >= kLiteralIndent;
  }

  void AddText(const std::string& text) {
    const bool continues = continues_ != nullptr && continues_->kind == Paragraph::Kind::kText;
    if (continues) {
      continues_->text += " " + text;
    } else if (text.back() == ':' && text.find_first_of(".,:;") == text.size() - 1) {
      sections_.push_back({.title = text.substr(0, text.size() - 1), .paragraphs = {}});
      continues_ = nullptr;
    } else {
      AddParagraph({.text = text});
    }
  }

  void AddParagraph(Paragraph paragraph) {
    if (sections_.empty()) sections_.emplace_back();
    sections_.back().paragraphs.push_back(std::move(paragraph));
    continues_ = &sections_.back().paragraphs.back();
  }

  std::vector<Section> sections_;
  Paragraph* continues_ = nullptr;  // what the next line may continue
};

void ReadFooter(const std::string& footer, Command& command) {
  constexpr std::string_view kUsage = "Usage: ";
  FooterReader reader;
  for (const std::string& line : Split(footer, '\n')) {
    if (line.starts_with(kUsage)) {
      command.usage = JoinPath(command, ' ') + " " + line.substr(kUsage.size());
      command.runs_command = line.find("[-- CMD") != std::string::npos;
    } else {
      reader.Add(line);
    }
  }
  command.sections = reader.Take();
}

Command Read(const CLI::App& app, std::vector<std::string> path,
             const std::vector<std::string>& profiles) {
  Command command;
  path.push_back(app.get_name());
  command.path = std::move(path);
  command.description = app.get_description();
  command.usage = UsageOf(app, JoinPath(command, ' '));
  ReadFooter(app.get_footer(), command);
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    command.positionals.push_back(ReadOption(*option, true, profiles));
  }
  command.groups = ReadGroups(app, profiles);
  for (const CLI::App* below : app.get_subcommands({})) {
    if (below->get_group().empty()) continue;  // hidden
    command.subcommands.push_back(Read(*below, command.path, profiles));
  }
  return command;
}

}  // namespace

Completion CompletionOf(const std::string& value_name, const std::vector<std::string>& profiles) {
  Completion completion;
  const size_t open = value_name.find('{');
  const size_t close = value_name.find('}', open);
  if (open != std::string::npos && close != std::string::npos) {
    completion.words = Split(value_name.substr(open + 1, close - open - 1), ',');
    std::erase_if(completion.words, [](const std::string& word) { return !IsWord(word); });
    return completion;
  }
  for (const std::string& name : Split(value_name, '|')) Offer(name, profiles, completion);
  return completion;
}

Command ReadCommandTree(const CLI::App& app, const std::vector<std::string>& profiles) {
  return Read(app, {}, profiles);
}

std::vector<std::string> PathOf(const CLI::App& app) {
  std::vector<std::string> path;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    path.push_back(at->get_name());
  }
  std::ranges::reverse(path);
  return path;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

std::string JoinPath(const Command& command, char separator) {
  std::string joined;
  for (const std::string& name : command.path) {
    if (!joined.empty()) joined += separator;
    joined += name;
  }
  return joined;
}

std::vector<const Command*> Flatten(const Command& command) {
  std::vector<const Command*> all = {&command};
  for (const Command& below : command.subcommands) {
    const std::vector<const Command*> some = Flatten(below);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace vcpulse::tools
