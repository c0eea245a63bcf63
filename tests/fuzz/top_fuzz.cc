// `vcpulse top`: what is typed, and a damaged recording under it. The first byte says how many keys
// follow; the rest is the content of a chunk, stored plainly behind a header with good checksums,
// whose instants are its first bytes. What was typed is also a filter, a time to jump to and a file
// of keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvm/base/bytes.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/top/filter.h"
#include "monitor/top/view.h"
#include "tests/fuzz/checks.h"

namespace {

using namespace vcpulse;
using fuzz::Check;

std::vector<uint8_t> AsChunk(std::span<const uint8_t> content) {
  const auto length = static_cast<uint32_t>(content.size());
  const auto head =
      timeline::EncodeChunkHeader({.payload_bytes = length,
                                   .content_bytes = length,
                                   .first_sequence = 1,
                                   .last_sequence = 200,
                                   .first_mono_ns = ReadAt<int64_t>(content, 0).value_or(0),
                                   .last_mono_ns = ReadAt<int64_t>(content, 8).value_or(0),
                                   .payload_crc = timeline::Crc32c(content)});
  std::vector<uint8_t> chunk(head.begin(), head.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  return chunk;
}

std::string KeyOf(uint8_t byte) {
  static const std::vector<std::string> kNamed = {
      "enter", "escape", "up",    "down",      "left",   "right",    "home",
      "end",   "tab",    "space", "backspace", "pageup", "pagedown", "ctrl-u"};
  if (byte > ' ' && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  return kNamed[byte % kNamed.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> bytes(data, size);
  if (bytes.empty()) return 0;
  const size_t keys = std::min<size_t>(bytes[0], bytes.size() - 1);
  const auto typed = bytes.subspan(1, keys);
  const std::string text(typed.begin(), typed.end());
  (void)top::Filter::Parse(text);
  (void)top::Keymap::Parse(text);
  (void)top::ParseJump(text, 0, 0, -1);

  top::ChunkStore store{top::ChunkStore::Limits()};
  (void)store.Add("", AsChunk(bytes.subspan(1 + keys)));
  top::View view(store, {.source = {.name = "x", .is_live = true},
                         .keymap = {},
                         .size = {.columns = 90, .rows = 25}});
  const auto draw = [&] {
    view.Load([] { return false; });
    const top::Cells cells = view.Draw();
    Check(cells.size() == view.state().size);
    for (size_t row = 0; row < cells.size().rows; ++row) {
      for (size_t column = 0; column < cells.size().columns; ++column) {
        Check(top::WidthOf(cells.At(row, column).glyph) == 1);
      }
    }
  };
  draw();
  for (const uint8_t byte : typed) view.Take(top::KeyEvent{KeyOf(byte)});
  draw();
  return 0;
}
