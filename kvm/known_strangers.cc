#include "kvm/known_strangers.h"

#include <utility>

namespace vcpulse::kvm {
namespace {

constexpr absl::Duration kNew = absl::Seconds(10);
// Spread by PID, so that not all are due in the same round.
constexpr int kSoonest_s = 15;
constexpr int kSpread_s = 16;

}  // namespace

void KnownStrangers::BeginRound(absl::Duration now) {
  now_ = now;
  ++round_;
}

bool KnownStrangers::MayBePassedOver(pid_t pid, const TaskStat& stat, std::string_view name) {
  const auto known = known_.find(pid);
  if (known == known_.end()) return false;
  Stranger& stranger = known->second;
  if (stranger.start_time_ticks != stat.start_time_ticks || stranger.name != name) {
    known_.erase(known);
    return false;
  }
  stranger.round = round_;
  return now_ < stranger.look_again;
}

void KnownStrangers::Remember(pid_t pid, const TaskStat& stat, std::string_view name) {
  const auto [known, is_new] = known_.try_emplace(pid);
  Stranger& stranger = known->second;
  if (is_new) {
    stranger = {.start_time_ticks = stat.start_time_ticks,
                .name = std::string(name),
                .first_seen = now_,
                .look_again = now_,
                .round = round_};
  }
  stranger.round = round_;
  if (stat.kernel_thread || now_ - stranger.first_seen >= kNew) {
    stranger.look_again = now_ + absl::Seconds(kSoonest_s + pid % kSpread_s);
  }
}

void KnownStrangers::EndRound() {
  std::erase_if(known_, [this](const auto& entry) { return entry.second.round != round_; });
}

}  // namespace vcpulse::kvm
