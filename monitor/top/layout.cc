#include "monitor/top/layout.h"

#include "monitor/top/columns.h"

namespace vcpulse::top {
namespace {

constexpr size_t kLeastBodyRows = 4;
constexpr size_t kMostDetailsRows = 10;
constexpr size_t kLeastStrip = 12;

}  // namespace

Layout LayoutOf(const Size& size, const std::set<size_t>& hidden_columns, size_t chosen_column) {
  Layout layout;
  layout.footer = size.rows > 0 ? size.rows - 1 : 0;
  const size_t below_head = layout.footer > layout.body ? layout.footer - layout.body : 0;
  const size_t wanted = std::min(below_head * 2 / 5, kMostDetailsRows);
  layout.details_rows = below_head >= kLeastBodyRows + wanted && wanted >= 3 ? wanted : 0;
  layout.body_rows = below_head - layout.details_rows;
  layout.details = layout.footer - layout.details_rows;

  layout.name_columns = std::clamp<size_t>(size.columns / 6, 10, 24);
  layout.strip = layout.name_columns + 1;
  size_t rest = size.columns > layout.strip ? size.columns - layout.strip : 0;
  const size_t least_strip = std::min(std::max(kLeastStrip, size.columns * 2 / 5), kMostSlots);
  const auto all = Columns();
  std::set<size_t> taken;
  // False where it does not fit.
  const auto take = [&](size_t index) {
    if (hidden_columns.contains(index) || taken.contains(index)) return true;
    const size_t width = all[index].width + 1;
    if (rest < least_strip + width) return false;
    rest -= width;
    taken.insert(index);
    return true;
  };
  if (chosen_column < all.size()) take(chosen_column);
  for (size_t i = 0; i < all.size() && take(i); ++i) continue;
  layout.columns.assign(taken.begin(), taken.end());
  layout.strip_columns = std::min(rest, kMostSlots);
  return layout;
}

}  // namespace vcpulse::top
