#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/metric/metric.h"

namespace vcpulse::exporting {

// Gathers text and hands it over in large pieces. Appending allocates only while it grows.
class TextOutput {
 public:
  explicit TextOutput(Sink sink) : sink_(std::move(sink)) {}

  void Add(std::string_view text) {
    if (text.empty()) return;  // may have no address
    std::memcpy(Room(text.size()), text.data(), text.size());
    size_ += text.size();
  }
  template <std::integral Number>
  void AddNumber(Number value) {
    char* const to = Room(kLongestNumber);
    size_ += static_cast<size_t>(std::to_chars(to, to + kLongestNumber, value).ptr - to);
  }
  // The number with at most `decimals` (up to 12) decimals, none of them a 0 at the end; one too
  // large for that in its shortest form. It is finite.
  void AddDecimal(double value, int decimals);
  // A duration in seconds, exact to the ns.
  void AddSeconds(int64_t ns);

  // After a row: hands over what was gathered where it is much.
  absl::Status EndRow() { return size_ < kHandedOver ? absl::OkStatus() : Flush(); }
  absl::Status Flush();

  // Space for `bytes` more, which Use() then takes. Valid until the next call of anything.
  char* Room(size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return memory_.get() + size_;
  }
  void Use(size_t bytes) { size_ += bytes; }

 private:
  static constexpr size_t kLongestNumber = 32;
  static constexpr size_t kHandedOver = size_t{1} << 16;

  void AddFraction(uint64_t whole, uint64_t fraction, int decimals);
  void Grow(size_t bytes);

  Sink sink_;
  std::unique_ptr<char[]> memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// What rows have in common, of whatever format.

// The number that TextOutput::AddDecimal writes of this one.
double Rounded(double value, int decimals);

inline constexpr int kShareDecimals = 9;  // of the share in which an event was counted

// Calls `add` with each metric that is a column, in their order.
template <typename Add>
void ForEachRowMetric(const Add& add) {
  for (const metric::Info& info : metric::Table()) {
    if (info.row_decimals > 0) add(info);
  }
}

}  // namespace vcpulse::exporting
