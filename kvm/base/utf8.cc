#include "kvm/base/utf8.h"

#include <cstdint>

namespace vcpulse {

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
