#pragma once

// The names in the output of `perf list --no-desc hw sw cache`.

#include <sstream>
#include <string>
#include <vector>

namespace vcpulse {

// Every name and alternative ("cpu-cycles OR cycles") of a hardware, software or cache event; what
// is of another kind, such as the tool events that no kernel counts, is passed over.
inline std::vector<std::string> NamesInPerfList(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t kind = line.rfind('[');
    if (kind == std::string::npos ||
        (line.compare(kind, std::string::npos, "[Hardware event]") != 0 &&
         line.compare(kind, std::string::npos, "[Software event]") != 0 &&
         line.compare(kind, std::string::npos, "[Hardware cache event]") != 0)) {
      continue;
    }
    std::istringstream words(line.substr(0, kind));
    for (std::string word; words >> word;) {
      if (word != "OR") names.push_back(word);
    }
  }
  return names;
}

}  // namespace vcpulse
