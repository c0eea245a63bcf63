#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace vcpulse::importing {

// Finds which events of an export take their turn on the PMU together: neighbours that were on it
// for the same share of the time in every row.
class Turns {
 public:
  // The events of one row that take turns, in their order, and their shares (below 0: the thread
  // never ran).
  void Add(std::span<const std::pair<uint32_t, double>> shares);

  // Table::turns, from what all rows said.
  void Number(std::vector<uint32_t>& turns) const;

 private:
  struct Turn {
    std::optional<uint32_t> before;  // the event before it
    bool alone = false;              // it is not together with that one
  };
  std::map<uint32_t, Turn> events_;
};

}  // namespace vcpulse::importing
