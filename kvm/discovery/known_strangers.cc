#include "kvm/discovery/known_strangers.h"

#include <utility>

namespace vcpulse::kvm {
namespace {

constexpr absl::Duration kNew = absl::Seconds(10);
// Spread by PID, so that not all are due in the same round.
constexpr int kSoonest_s = 15;
constexpr int kSpread_s = 16;
constexpr uint64_t kCheckedEach = 5;  // rounds

}  // namespace

void KnownStrangers::BeginRound(absl::Duration now) {
  now_ = now;
  ++round_;
}

bool KnownStrangers::IsTrusted(pid_t pid) {
  const auto known = known_.find(pid);
  if (known == known_.end()) return false;
  Stranger& stranger = known->second;
  const bool check = (round_ + static_cast<uint64_t>(pid)) % kCheckedEach == 0;
  if (check || !stranger.settled || now_ >= stranger.look_again) return false;
  stranger.round = round_;
  return true;
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

void KnownStrangers::Remember(pid_t pid, const TaskStat& stat, std::string_view name, bool vmm) {
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
  stranger.settled = !vmm && (stat.kernel_thread || now_ - stranger.first_seen >= kNew);
  const int settled_s = kSoonest_s + pid % kSpread_s;
  stranger.look_again = stranger.settled ? now_ + absl::Seconds(settled_s) : now_;
}

void KnownStrangers::EndRound() {
  std::erase_if(known_, [this](const auto& entry) { return entry.second.round != round_; });
}

}  // namespace vcpulse::kvm
