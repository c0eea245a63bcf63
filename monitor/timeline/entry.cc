#include "monitor/timeline/entry.h"

#include <type_traits>

namespace vcpulse::timeline {

std::optional<int64_t> InstantOf(const Entry& entry) {
  return std::visit(
      [](const auto& record) -> std::optional<int64_t> {
        using Record = std::decay_t<decltype(record)>;
        if constexpr (std::is_same_v<Record, TickEntry>) {
          return record.sample.wake_ns;
        } else if constexpr (std::is_same_v<Record, v1::Session> ||
                             std::is_same_v<Record, v1::Profile> ||
                             std::is_same_v<Record, v1::Summary>) {
          return std::nullopt;
        } else {
          return record.mono_ns();
        }
      },
      entry.record);
}

}  // namespace vcpulse::timeline
