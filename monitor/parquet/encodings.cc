#include "monitor/parquet/encodings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "monitor/parquet/thrift_compact.h"

namespace vcpulse::parquet {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr size_t kGroup = 8;         // bit-packed numbers come in groups of so many
constexpr size_t kShortestRun = 16;  // shorter ones are bit-packed: they would end a packed run
constexpr size_t kBlock = 128;
constexpr size_t kMiniblock = 32;

template <typename Number>
void AppendBytesOf(std::string& out, Number number, size_t bytes = sizeof(Number)) {
  char raw[sizeof(Number)];
  std::memcpy(raw, &number, sizeof(Number));
  out.append(raw, bytes);
}

// Grows `out` by `bytes` and gives the place of the first.
char* Grow(std::string& out, size_t bytes) {
  const size_t before = out.size();
  out.resize(before + bytes);
  return out.data() + before;
}

// Packs `count` numbers of `width` bits (1 to 64), the first in the lowest bits, into
// ceil(count * width / 8) bytes at `to`.
template <typename Number>
void PackBits(char* to, const Number* numbers, size_t count, int width) {
  uint64_t waiting = 0;
  int bits = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t number = numbers[i];
    waiting |= number << bits;
    bits += width;
    if (bits < 64) continue;
    std::memcpy(to, &waiting, 8);
    to += 8;
    bits -= 64;
    // The bits of it that did not fit; a shift by 64 is undefined.
    waiting = bits == 0 ? 0 : number >> (width - bits);
  }
  std::memcpy(to, &waiting, static_cast<size_t>(bits + 7) / 8);
}

// Bit-packed groups of all `numbers`; the last one is filled up with zeros.
template <typename Number>
void AppendGroups(std::string& out, std::span<const Number> numbers, int width) {
  if (numbers.empty()) return;
  const size_t groups = (numbers.size() + kGroup - 1) / kGroup;
  AppendVarint(out, groups << 1 | 1);
  char* const to = Grow(out, groups * static_cast<size_t>(width));
  PackBits(to, numbers.data(), numbers.size(), width);
}

template <typename Number>
void AppendRun(std::string& out, Number number, size_t count, int width) {
  AppendVarint(out, count << 1);
  AppendBytesOf(out, number, static_cast<size_t>(width + 7) / 8);
}

// `Word` is uint32_t or uint64_t: the arithmetic of deltas wraps around at its width.
template <typename Word>
void AppendDelta(std::string& out, std::span<const uint64_t> numbers) {
  using SignedWord = std::make_signed_t<Word>;
  AppendVarint(out, kBlock);
  AppendVarint(out, kBlock / kMiniblock);
  AppendVarint(out, numbers.size());
  Word before = numbers.empty() ? 0 : static_cast<Word>(numbers[0]);
  AppendVarint(out, ZigZagOf(static_cast<SignedWord>(before)));
  std::array<Word, kBlock> deltas;
  for (size_t begin = 1; begin < numbers.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, numbers.size() - begin);
    SignedWord least = std::numeric_limits<SignedWord>::max();
    for (size_t i = 0; i < count; ++i) {
      const Word now = static_cast<Word>(numbers[begin + i]);
      deltas[i] = now - before;
      before = now;
      least = std::min(least, static_cast<SignedWord>(deltas[i]));
    }
    AppendVarint(out, ZigZagOf(least));
    for (size_t i = 0; i < count; ++i) deltas[i] -= static_cast<Word>(least);
    std::fill(deltas.begin() + static_cast<ptrdiff_t>(count), deltas.end(), Word{0});
    std::array<int, kBlock / kMiniblock> widths{};
    size_t bytes = 0;
    const size_t used = (count + kMiniblock - 1) / kMiniblock;
    for (size_t m = 0; m < used; ++m) {
      Word all = 0;
      for (size_t i = 0; i < kMiniblock; ++i) all |= deltas[m * kMiniblock + i];
      widths[m] = static_cast<int>(std::bit_width(all));
      bytes += static_cast<size_t>(widths[m]) * kMiniblock / 8;
    }
    for (const int width : widths) out.push_back(static_cast<char>(width));
    char* to = Grow(out, bytes);
    for (size_t m = 0; m < used; ++m) {
      if (widths[m] == 0) continue;
      PackBits(to, &deltas[m * kMiniblock], kMiniblock, widths[m]);
      to += static_cast<size_t>(widths[m]) * kMiniblock / 8;
    }
  }
}

}  // namespace

void AppendPlain(std::string& out, std::span<const uint64_t> numbers, size_t bytes) {
  char* to = Grow(out, numbers.size() * bytes);
  if (bytes == sizeof(uint64_t)) {
    if (!numbers.empty()) std::memcpy(to, numbers.data(), numbers.size() * bytes);
    return;
  }
  for (const uint64_t number : numbers) {
    std::memcpy(to, &number, bytes);
    to += bytes;
  }
}

void AppendPlainBits(std::string& out, std::span<const uint64_t> bits) {
  char* const to = Grow(out, (bits.size() + 7) / 8);
  PackBits(to, bits.data(), bits.size(), 1);
}

void AppendPlain(std::string& out, std::string_view text) {
  AppendBytesOf(out, static_cast<uint32_t>(text.size()));
  out += text;
}

void AppendByteStreamSplit(std::string& out, std::span<const uint64_t> numbers) {
  char* to = Grow(out, numbers.size() * sizeof(uint64_t));
  for (int shift = 0; shift < 64; shift += 8) {
    for (const uint64_t number : numbers) *to++ = static_cast<char>(number >> shift);
  }
}

template <typename Number>
void AppendRleBitPacked(std::string& out, std::span<const Number> numbers, int width) {
  size_t packed_from = 0;
  size_t i = 0;
  while (i < numbers.size()) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    // Packed numbers before the run are filled up to whole groups with its first ones.
    const size_t fill = (kGroup - (i - packed_from) % kGroup) % kGroup;
    if (end - i >= kShortestRun + fill) {
      AppendGroups(out, numbers.subspan(packed_from, i + fill - packed_from), width);
      AppendRun(out, numbers[i], end - i - fill, width);
      packed_from = end;
    }
    i = end;
  }
  AppendGroups(out, numbers.subspan(packed_from), width);
}

template void AppendRleBitPacked(std::string&, std::span<const uint8_t>, int);
template void AppendRleBitPacked(std::string&, std::span<const uint32_t>, int);

void AppendDelta32(std::string& out, std::span<const uint64_t> numbers) {
  AppendDelta<uint32_t>(out, numbers);
}

void AppendDelta64(std::string& out, std::span<const uint64_t> numbers) {
  AppendDelta<uint64_t>(out, numbers);
}

}  // namespace vcpulse::parquet
