#include "monitor/stream/protocol/peer_text.h"

#include "kvm/base/text.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::stream {

std::string OneLine(std::string text, size_t max_bytes) {
  MakeUtf8(&text);
  text = Printable(text);
  text.resize(CutUtf8(text, max_bytes).size());
  return text;
}

}  // namespace vcpulse::stream
