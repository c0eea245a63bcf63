#include "kvm/base/text.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/utf8.h"

namespace vcpulse {

std::string Plural(uint64_t n, std::string_view word) {
  return absl::StrFormat("%d %s%s", n, std::string(word), n == 1 ? "" : "s");
}

std::string Printable(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    if (byte < 0x20 || byte == 0x7f) out[i] = '?';
    // U+0080 to U+009F, two bytes of UTF-8, are control characters too.
    if (byte == 0xc2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xa0) {
      out.replace(i, 2, "?");
    }
  }
  return out;
}

std::string Quoted(std::string_view text, size_t max_bytes) {
  std::string shown(CutUtf8(text, max_bytes));
  const bool is_cut = shown.size() < text.size();
  MakeUtf8(&shown);
  return absl::StrCat("'", Printable(shown), is_cut ? "..." : "", "'");
}

std::string SizeText(uint64_t bytes) {
  if (bytes < 1024) return Plural(bytes, "byte");
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  auto number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; number >= 1023.95 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  std::string text = absl::StrFormat("%.1f", number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  text += ' ';
  text += kUnits[unit];
  return text;
}

std::string Listed(const std::vector<std::string>& items, size_t at_most) {
  std::string out;
  for (size_t i = 0; i < std::min(items.size(), at_most); ++i) {
    if (i > 0) out += ", ";
    out += items[i];
  }
  if (items.size() > at_most) out += absl::StrFormat(" and %d more", items.size() - at_most);
  return out;
}

}  // namespace vcpulse
