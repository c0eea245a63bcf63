#include "monitor/parquet/dictionary.h"

#include <algorithm>
#include <bit>

namespace vcpulse::parquet {
namespace {

constexpr size_t kFewestPlaces = 1024;
// At most so many entries, and one per kNumbersPerEntry numbers seen so far.
constexpr size_t kFreeEntries = 512;
constexpr size_t kNumbersPerEntry = 4;

}  // namespace

uint32_t& NumberDictionary::PlaceOf(uint64_t number) {
  const size_t mask = places_.size() - 1;
  const uint64_t mixed = (number ^ number >> 32) * 0x9E3779B97F4A7C15;
  size_t place = mixed >> shift_;
  while (places_[place] != 0 && entries_[places_[place] - 1] != number) place = (place + 1) & mask;
  return places_[place];
}

void NumberDictionary::Grow() {
  const size_t size = std::max(kFewestPlaces, places_.size() * 2);
  places_.assign(size, 0);
  shift_ = 64 - std::countr_zero(size);
  for (uint32_t i = 0; i < entries_.size(); ++i) PlaceOf(entries_[i]) = i + 1;
}

bool NumberDictionary::Make(std::span<const uint64_t> numbers) {
  entries_.clear();
  places_.clear();
  Grow();
  indices_.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && numbers[i] == numbers[i - 1]) {
      indices_[i] = indices_[i - 1];
      continue;
    }
    uint32_t& place = PlaceOf(numbers[i]);
    if (place != 0) {
      indices_[i] = place - 1;
      continue;
    }
    if (entries_.size() >= kFreeEntries + i / kNumbersPerEntry) return false;
    indices_[i] = static_cast<uint32_t>(entries_.size());
    entries_.push_back(numbers[i]);
    place = static_cast<uint32_t>(entries_.size());
    if (entries_.size() * 2 > places_.size()) Grow();
  }
  return true;
}

uint32_t TextDictionary::Find(std::string_view text) {
  const auto known = indices_.find(text);
  if (known != indices_.end()) return known->second;
  const auto index = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  bytes_ += text.size();
  indices_.emplace(texts_.back(), index);
  return index;
}

void TextDictionary::Clear() {
  indices_.clear();
  texts_.clear();
  latest_ = 0;
  bytes_ = 0;
}

}  // namespace vcpulse::parquet
