#include "monitor/export/text_output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace vcpulse::exporting {
namespace {

constexpr std::array<uint64_t, 13> kPowers = {1,
                                              10,
                                              100,
                                              1'000,
                                              10'000,
                                              100'000,
                                              1'000'000,
                                              10'000'000,
                                              100'000'000,
                                              1'000'000'000,
                                              10'000'000'000,
                                              100'000'000'000,
                                              1'000'000'000'000};
// Whole numbers up to here are doubles.
constexpr double kLargestScaled = 9e15;

// |value| times 10^decimals, rounded. Nothing where that is too large to be rounded.
std::optional<uint64_t> Scaled(double value, int decimals) {
  const double scaled =
      std::abs(value) * static_cast<double>(kPowers[static_cast<size_t>(decimals)]);
  if (!(scaled < kLargestScaled)) return std::nullopt;
  return static_cast<uint64_t>(scaled + 0.5);
}

}  // namespace

double Rounded(double value, int decimals) {
  const std::optional<uint64_t> number = Scaled(value, decimals);
  if (!number) return value;
  // Both are exact doubles, so this is the double nearest to the decimal text.
  const double rounded =
      static_cast<double>(*number) / static_cast<double>(kPowers[static_cast<size_t>(decimals)]);
  return value < 0 && *number > 0 ? -rounded : rounded;
}

void TextOutput::AddDecimal(double value, int decimals) {
  const std::optional<uint64_t> number = Scaled(value, decimals);
  if (!number) {
    char* const to = Room(kLongestNumber);
    size_ += static_cast<size_t>(std::to_chars(to, to + kLongestNumber, value).ptr - to);
    return;
  }
  if (value < 0 && *number > 0) Add("-");
  const uint64_t power = kPowers[static_cast<size_t>(decimals)];
  AddFraction(*number / power, *number % power, decimals);
}

void TextOutput::AddSeconds(int64_t ns) {
  if (ns < 0) Add("-");
  const uint64_t length = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  AddFraction(length / kPowers[9], length % kPowers[9], 9);
}

void TextOutput::AddFraction(uint64_t whole, uint64_t fraction, int decimals) {
  AddNumber(whole);
  if (fraction == 0) return;
  while (fraction % 10 == 0) {
    fraction /= 10;
    --decimals;
  }
  char* const to = Room(kLongestNumber);
  to[0] = '.';
  for (int i = decimals; i > 0; --i) {
    to[i] = static_cast<char>('0' + fraction % 10);
    fraction /= 10;
  }
  size_ += 1 + static_cast<size_t>(decimals);
}

absl::Status TextOutput::Flush() {
  if (size_ == 0) return absl::OkStatus();
  const size_t gathered = std::exchange(size_, 0);
  return sink_(std::string_view(memory_.get(), gathered));
}

void TextOutput::Grow(size_t bytes) {
  const size_t wanted = std::max(2 * kHandedOver, 2 * (size_ + bytes));
  std::unique_ptr<char[]> larger(new char[wanted]);
  if (size_ > 0) std::memcpy(larger.get(), memory_.get(), size_);
  memory_ = std::move(larger);
  capacity_ = wanted;
}

}  // namespace vcpulse::exporting
