#include "kvm/counters/read_format.h"

namespace vcpulse::kvm {
namespace {

std::optional<uint64_t> FindById(std::span<const uint64_t> pairs, uint64_t id) {
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i + 1] == id) return pairs[i];
  }
  return std::nullopt;
}

}  // namespace

std::optional<GroupValues> ParseGroupRead(std::span<const uint64_t> words,
                                          std::span<const uint64_t> ids) {
  if (words.size() < 3 || ids.size() > kMaxGroupEvents) return std::nullopt;
  const uint64_t members = words[0];
  if (members > (words.size() - 3) / 2) return std::nullopt;

  GroupValues values{.time_enabled_ns = words[1], .time_running_ns = words[2]};
  const auto pairs = words.subspan(3, 2 * members);
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    const std::optional<uint64_t> count = FindById(pairs, ids[slot]);
    if (!count) return std::nullopt;
    values.counts[slot] = *count;
  }
  return values;
}

}  // namespace vcpulse::kvm
