#include "monitor/top/cells.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::top {
namespace {

uint32_t CodeOf(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  switch (sequence.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
    case 3:
      return (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
    default:
      return (byte(0) & 0x07u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 |
             (byte(3) & 0x3fu);
  }
}

// Whether every terminal shows it in one column. Scripts that combine or are written wide are left
// out rather than reckoned: names of VMs are what comes here.
bool TakesOneColumn(uint32_t code) {
  if (code < 0x20 || code == 0x7f) return false;
  if (code < 0x7f) return true;
  if (code < 0xa0 || code == 0xad) return false;
  return code < 0x300 || (code >= 0x370 && code < 0x483) || (code >= 0x48a && code < 0x530) ||
         (code >= 0x2010 && code <= 0x2027) || (code >= 0x2190 && code <= 0x21ff) ||
         (code >= 0x2500 && code <= 0x25ff) || (code >= 0x2800 && code <= 0x28ff);
}

// The first character of `text`, as it is shown, and its bytes taken away.
std::string_view TakeGlyph(std::string_view& text) {
  const size_t length = Utf8SequenceLength(text);
  const std::string_view sequence = text.substr(0, std::max<size_t>(length, 1));
  text.remove_prefix(sequence.size());
  return length > 0 && TakesOneColumn(CodeOf(sequence)) ? sequence : std::string_view("?");
}

}  // namespace

size_t Cells::Put(const Place& at, std::string_view text, const Style& style, size_t width) {
  size_t column = at.column;
  if (at.row >= size_.rows) return column;
  const size_t end =
      width > size_.columns ? size_.columns : std::min(size_.columns, at.column + width);
  while (!text.empty() && column < end) {
    cells_[at.row * size_.columns + column] = {.glyph = std::string(TakeGlyph(text)),
                                               .ink = style.ink,
                                               .reversed = style.reversed,
                                               .bold = style.bold};
    ++column;
  }
  return column;
}

void Cells::PutRight(size_t row, size_t end, std::string_view text, const Style& style) {
  const size_t width = WidthOf(text);
  Put({.row = row, .column = end > width ? end - width : 0}, text, style, std::min(width, end));
}

std::string Cells::Line(size_t row) const {
  std::string line;
  for (size_t i = 0; i < size_.columns; ++i) line += At(row, i).glyph;
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string Cells::Text() const {
  std::string text;
  for (size_t row = 0; row < size_.rows; ++row) absl::StrAppend(&text, Line(row), "\n");
  return text;
}

size_t WidthOf(std::string_view text) {
  size_t width = 0;
  for (; !text.empty(); ++width) TakeGlyph(text);
  return width;
}

std::vector<std::string_view> Wrapped(std::string_view text, size_t columns) {
  std::vector<std::string_view> lines;
  while (columns > 0 && WidthOf(text) > columns) {
    std::string_view rest = text;
    for (size_t i = 0; i < columns; ++i) TakeGlyph(rest);
    size_t end = text.size() - rest.size();
    const size_t space = text.substr(0, end).rfind(' ');
    if (space != std::string_view::npos && space > text.find_first_not_of(' ')) end = space + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  lines.push_back(text);
  return lines;
}

}  // namespace vcpulse::top
