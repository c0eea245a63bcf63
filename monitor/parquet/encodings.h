#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vcpulse::parquet {

// Encodings.md of the Parquet format. Each function appends to `out`. Numbers come as 64 bits: a
// signed one extended, a double as its bits. Pure.

// PLAIN: the low `bytes` (4 or 8) bytes of each number, the lowest first.
void AppendPlain(std::string& out, std::span<const uint64_t> numbers, size_t bytes);
// PLAIN of a boolean: a bit each, the first in the lowest bit of a byte.
void AppendPlainBits(std::string& out, std::span<const uint64_t> bits);
// PLAIN of a byte array: its length in 4 bytes, then its bytes.
void AppendPlain(std::string& out, std::string_view text);

// BYTE_STREAM_SPLIT of 8 bytes each: the lowest byte of every number, then the next one of every
// number, and so on.
void AppendByteStreamSplit(std::string& out, std::span<const uint64_t> numbers);

// The hybrid of run lengths and bit packing, without a length in front: what RLE_DICTIONARY's
// indices have behind the byte of their width, and RLE's levels behind their length. Each number
// fits into `width` bits, 1 to 32.
template <typename Number>
void AppendRleBitPacked(std::string& out, std::span<const Number> numbers, int width);
extern template void AppendRleBitPacked(std::string&, std::span<const uint8_t>, int);
extern template void AppendRleBitPacked(std::string&, std::span<const uint32_t>, int);

// DELTA_BINARY_PACKED of int32 or int64, in blocks of 128 and miniblocks of 32 numbers.
void AppendDelta32(std::string& out, std::span<const uint64_t> numbers);
void AppendDelta64(std::string& out, std::span<const uint64_t> numbers);

}  // namespace vcpulse::parquet
