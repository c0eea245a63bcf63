// Limits of `compare --fail-if`.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "monitor/compare/comparison.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using vcpulse::compare::ParseLimit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto limit = ParseLimit(text);
  if (!limit.ok()) {
    // What people read is one short line without what a terminal obeys.
    const std::string_view message(limit.status().message().data(),
                                   limit.status().message().size());
    Check(message.starts_with("column ") && message.size() < 300);
    for (const char c : message) Check(static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
    return 0;
  }
  Check(std::isfinite(limit->value));
  Check(!limit->phase || !limit->phase->empty());
  const auto again = ParseLimit(limit->text);
  Check(again.ok() && *again == *limit);
  return 0;
}
