#include "kvm/base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace vcpulse {

std::string WithThousands(uint64_t value) {
  std::string text = absl::StrCat(value);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

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

size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto in = [&](size_t i, uint8_t low, uint8_t high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const auto tail = [&](size_t i) { return in(i, 0x80, 0xBF); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = lead == 0xE0   ? in(1, 0xA0, 0xBF)
                        : lead == 0xED ? in(1, 0x80, 0x9F)  // no surrogates
                                       : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = lead == 0xF0   ? in(1, 0x90, 0xBF)
                        : lead == 0xF4 ? in(1, 0x80, 0x8F)
                                       : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

void MakeUtf8(std::string* text) {
  for (size_t i = 0; i < text->size();) {
    const size_t length = Utf8SequenceLength(std::string_view(*text).substr(i));
    if (length == 0) (*text)[i] = '?';
    i += length == 0 ? 1 : length;
  }
}

std::string_view CutUtf8(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t length = max_bytes;
  // Bytes 10xxxxxx belong to the character before.
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return text.substr(0, length);
}

}  // namespace vcpulse
