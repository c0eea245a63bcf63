#include "kvm/base/closest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"
#include "kvm/base/text.h"

namespace vcpulse {
namespace {

// Levenshtein's distance, row by row.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string ClosestName(std::string_view text, std::span<const std::string> names) {
  constexpr size_t kLongest = 64;  // what is longer is no misspelt name, and costs time
  if (text.size() > kLongest) return "";
  const std::string wanted = absl::AsciiStrToLower(ToAbsl(text));
  std::string closest;
  size_t fewest = std::max<size_t>(text.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    if (name.size() > kLongest) continue;
    const size_t distance = Distance(wanted, absl::AsciiStrToLower(name));
    if (distance >= fewest) continue;
    fewest = distance;
    closest = name;
  }
  return closest;
}

std::string DidYouMean(std::string_view text, std::span<const std::string> names) {
  const std::string closest = ClosestName(text, names);
  return closest.empty() ? "" : "; did you mean '" + closest + "'?";
}

}  // namespace vcpulse
