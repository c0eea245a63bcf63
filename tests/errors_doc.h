#pragma once

// docs/errors.md as data: each message is a fenced block below a line with its name in backquotes.

#include <fstream>
#include <map>
#include <string>

namespace vcpulse::tests {

// The messages by name, with their blanks.
inline std::map<std::string, std::string> ReadErrorsDoc(const std::string& path) {
  std::map<std::string, std::string> messages;
  std::ifstream in(path);
  std::string name;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "```") {
      inside = !inside && !name.empty();
      if (!inside) name.clear();
    } else if (inside) {
      messages[name] += line;
    } else {
      const bool is_name =
          line.size() > 2 && line.front() == '`' && line.find('`', 1) == line.size() - 1;
      name = is_name ? line.substr(1, line.size() - 2) : "";
    }
  }
  return messages;
}

// The message `name` of the page with its blanks replaced; "" where the page has none.
inline std::string Documented(const std::string& path, const std::string& name,
                              const std::map<std::string, std::string>& values) {
  std::string text = ReadErrorsDoc(path)[name];
  for (const auto& [blank, value] : values) {
    for (size_t at = text.find(blank); at != std::string::npos;
         at = text.find(blank, at + value.size())) {
      text.replace(at, blank.size(), value);
    }
  }
  return text;
}

}  // namespace vcpulse::tests
