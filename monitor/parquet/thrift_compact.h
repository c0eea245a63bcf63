#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vcpulse::parquet {

// Writes structs in Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift), as far
// as the metadata of Parquet needs it: i8, i16, i32, i64, bool, binary, lists and structs. Fields
// of a struct are written in the order of their ids. Pure; one thread.
class ThriftCompact {
 public:
  void Bool(int16_t id, bool value);
  void Byte(int16_t id, int8_t value);
  void I16(int16_t id, int16_t value);
  void I32(int16_t id, int32_t value);
  void I64(int16_t id, int64_t value);
  void Binary(int16_t id, std::string_view value);

  // A field that is a struct: its fields follow, then EndStruct.
  void BeginStruct(int16_t id);
  // The outermost struct, and each element of a list of structs, begins with BeginStruct() and ends
  // with EndStruct as well.
  void BeginStruct();
  void EndStruct();

  // A field that is a list of `size` elements, which follow.
  void BeginStructs(int16_t id, size_t size);
  void BeginI32s(int16_t id, size_t size);
  void BeginBinaries(int16_t id, size_t size);
  void I32Element(int32_t value);
  void BinaryElement(std::string_view value);

  // What was written so far.
  const std::string& bytes() const { return bytes_; }
  std::string Take() && { return std::move(bytes_); }

 private:
  void Field(int16_t id, uint8_t type);
  void List(int16_t id, uint8_t element_type, size_t size);
  void ZigZag(int64_t value);

  std::string bytes_;
  std::vector<int16_t> open_;  // per open struct: the id of its latest field
};

// Appends a ULEB128 number: 7 bits per byte, the low ones first. Parquet's encodings use it too.
void AppendVarint(std::string& out, uint64_t value);
// The number whose small magnitudes of either sign are small: 0, -1, 1, -2 are 0, 1, 2, 3.
constexpr uint64_t ZigZagOf(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

}  // namespace vcpulse::parquet
