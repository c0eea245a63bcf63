#pragma once

// What is drawn, before any terminal knows of it: a grid of characters with colours.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vcpulse::top {

// What a cell means; a terminal gives it a colour as it can (palette.h).
enum class Ink : uint8_t {
  kPlain,
  kDim,
  kTitle,
  kHalted,
  kSpinning,
  kProductive,
  kUnknown,
  kStarved,  // the overlay: of the letter's own band, but marked
  kAlarm,    // DEGRADED, lost data
  kMarker,
  kEnd,  // none: how many there are
};

struct Cell {
  std::string glyph = " ";  // one character of one column, UTF-8
  Ink ink = Ink::kPlain;
  bool reversed = false;
  bool bold = false;

  bool operator==(const Cell&) const = default;
};

struct Size {
  size_t columns = 80;
  size_t rows = 24;

  bool operator==(const Size&) const = default;
};

struct Place {
  size_t row = 0;
  size_t column = 0;
};

struct Style {
  Ink ink = Ink::kPlain;
  bool reversed = false;
  bool bold = false;
};

// A grid that nothing is drawn beyond: what does not fit is cut.
class Cells {
 public:
  explicit Cells(const Size& size) : size_(size), cells_(size.columns * size.rows) {}

  const Size& size() const { return size_; }
  const Cell& At(size_t row, size_t column) const { return cells_[row * size_.columns + column]; }

  // Puts `text` from there on, at most `width` columns of it; gives the column behind it. Control
  // characters, what is no UTF-8 and characters that take no column or two become '?'.
  size_t Put(const Place& at, std::string_view text, const Style& style = {},
             size_t width = SIZE_MAX);
  // The same so that it ends before `end`.
  void PutRight(size_t row, size_t end, std::string_view text, const Style& style = {});
  // A row as text, without spaces at its end.
  std::string Line(size_t row) const;
  // All rows, for tests and for a terminal that cannot move its cursor.
  std::string Text() const;

 private:
  Size size_;
  std::vector<Cell> cells_;
};

// How many columns Put takes for it.
size_t WidthOf(std::string_view text);
// The text in lines of at most so many columns, broken at spaces where there is one; at least one.
std::vector<std::string_view> Wrapped(std::string_view text, size_t columns);

}  // namespace vcpulse::top
