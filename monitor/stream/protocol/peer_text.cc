#include "monitor/stream/protocol/peer_text.h"

#include "monitor/reading/phrases.h"
#include "monitor/timeline/utf8_texts.h"

namespace vcpulse::stream {

std::string OneLine(std::string text, size_t max_bytes) {
  timeline::MakeUtf8(&text);
  text = reading::Printable(text);
  if (text.size() <= max_bytes) return text;
  size_t length = max_bytes;
  // Bytes 10xxxxxx belong to the character before.
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  text.resize(length);
  return text;
}

}  // namespace vcpulse::stream
