#pragma once

// Where things stand on a screen of that size: pure.

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "monitor/top/cells.h"

namespace vcpulse::top {

struct Layout {
  // Rows of the screen.
  static constexpr size_t kHeadRows = 2;
  size_t axis = kHeadRows;       // times, and the heads of columns
  size_t marks = kHeadRows + 1;  // markers, below the times
  size_t body = kHeadRows + 2;   // the first row
  size_t body_rows = 0;
  size_t details = 0;  // the first of them
  size_t details_rows = 0;
  size_t footer = 0;
  // Columns of the screen.
  size_t name_columns = 0;
  size_t strip = 0;  // its first column
  size_t strip_columns = 0;
  std::vector<size_t> columns;  // those of Columns() that fit, from left to right
};

// A strip is no wider than this, so that the memory of a board is bounded.
inline constexpr size_t kMostSlots = 160;

// `chosen_column` is shown before the others; it may be hidden.
Layout LayoutOf(const Size& size, const std::set<size_t>& hidden_columns, size_t chosen_column);

}  // namespace vcpulse::top
