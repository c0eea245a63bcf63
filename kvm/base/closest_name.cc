#include "kvm/base/closest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "kvm/base/text.h"

namespace vcpulse {
namespace {

// The distance of optimal string alignment, row by row.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> above;
  std::vector<size_t> two_above;
  for (size_t i = 0; i < a.size(); ++i) {
    two_above = std::exchange(above, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, row[j] + 1, above[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], two_above[j - 1] + 1);
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
  if (!closest.empty()) return closest;
  const auto is_begun = [&](const std::string& name) {
    return absl::StartsWithIgnoreCase(name, wanted);
  };
  constexpr size_t kShortest = 3;
  const bool is_prefix = wanted.size() >= kShortest && std::ranges::count_if(names, is_begun) == 1;
  return is_prefix ? *std::ranges::find_if(names, is_begun) : "";
}

std::string DidYouMean(std::string_view text, std::span<const std::string> names) {
  const std::string closest = ClosestName(text, names);
  return closest.empty() ? "" : "; did you mean '" + closest + "'?";
}

}  // namespace vcpulse
