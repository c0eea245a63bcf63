#include "monitor/parquet/thrift_compact.h"

#include "monitor/core/check.h"

namespace vcpulse::parquet {
namespace {

// Types of fields and of elements.
constexpr uint8_t kTrue = 1;
constexpr uint8_t kFalse = 2;
constexpr uint8_t kByte = 3;
constexpr uint8_t kI16 = 4;
constexpr uint8_t kI32 = 5;
constexpr uint8_t kI64 = 6;
constexpr uint8_t kBinary = 8;
constexpr uint8_t kList = 9;
constexpr uint8_t kStruct = 12;
constexpr size_t kLongestShortList = 14;  // longer ones have their size in a varint
constexpr int kLargestShortStep = 15;     // of field ids

}  // namespace

void AppendVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void ThriftCompact::ZigZag(int64_t value) { AppendVarint(bytes_, ZigZagOf(value)); }

void ThriftCompact::Field(int16_t id, uint8_t type) {
  VCPULSE_CHECK(!open_.empty() && id > open_.back(), "fields of a struct come by ascending ids");
  const int step = id - open_.back();
  if (step <= kLargestShortStep) {
    bytes_.push_back(static_cast<char>(step << 4 | type));
  } else {
    bytes_.push_back(static_cast<char>(type));
    ZigZag(id);
  }
  open_.back() = id;
}

void ThriftCompact::Bool(int16_t id, bool value) { Field(id, value ? kTrue : kFalse); }

void ThriftCompact::Byte(int16_t id, int8_t value) {
  Field(id, kByte);
  bytes_.push_back(static_cast<char>(value));
}

void ThriftCompact::I16(int16_t id, int16_t value) {
  Field(id, kI16);
  ZigZag(value);
}

void ThriftCompact::I32(int16_t id, int32_t value) {
  Field(id, kI32);
  ZigZag(value);
}

void ThriftCompact::I64(int16_t id, int64_t value) {
  Field(id, kI64);
  ZigZag(value);
}

void ThriftCompact::Binary(int16_t id, std::string_view value) {
  Field(id, kBinary);
  BinaryElement(value);
}

void ThriftCompact::BeginStruct(int16_t id) {
  Field(id, kStruct);
  BeginStruct();
}

void ThriftCompact::BeginStruct() { open_.push_back(0); }

void ThriftCompact::EndStruct() {
  bytes_.push_back(0);
  open_.pop_back();
}

void ThriftCompact::List(int16_t id, uint8_t element_type, size_t size) {
  Field(id, kList);
  if (size <= kLongestShortList) {
    bytes_.push_back(static_cast<char>(size << 4 | element_type));
  } else {
    bytes_.push_back(static_cast<char>(0xF0 | element_type));
    AppendVarint(bytes_, size);
  }
}

void ThriftCompact::BeginStructs(int16_t id, size_t size) { List(id, kStruct, size); }
void ThriftCompact::BeginI32s(int16_t id, size_t size) { List(id, kI32, size); }
void ThriftCompact::BeginBinaries(int16_t id, size_t size) { List(id, kBinary, size); }
void ThriftCompact::I32Element(int32_t value) { ZigZag(value); }

void ThriftCompact::BinaryElement(std::string_view value) {
  AppendVarint(bytes_, value.size());
  bytes_ += value;
}

}  // namespace vcpulse::parquet
