#include "monitor/import/turns.h"

namespace vcpulse::importing {

void Turns::Add(std::span<const std::pair<uint32_t, double>> shares) {
  std::optional<uint32_t> before;
  double share_before = 0;
  for (const auto& [event, share] : shares) {
    Turn& turn = events_.try_emplace(event, Turn{.before = before, .alone = !before}).first->second;
    if (turn.before != before || share != share_before) turn.alone = true;
    before = event;
    share_before = share;
  }
}

void Turns::Number(std::vector<uint32_t>& turns) const {
  uint32_t number = 0;
  for (const auto& [event, turn] : events_) {
    const bool joins = !turn.alone && turn.before && *turn.before < event;
    turns[event] = joins ? turns[*turn.before] : ++number;
  }
}

}  // namespace vcpulse::importing
