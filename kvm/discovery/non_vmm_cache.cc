#include "kvm/discovery/non_vmm_cache.h"

#include <utility>

namespace vcpulse::kvm {
namespace {

constexpr absl::Duration kNew = absl::Seconds(10);
// Spread by PID, so that not all are due in the same round.
constexpr int kSoonest_s = 15;
constexpr int kSpread_s = 16;
constexpr uint64_t kCheckedEach = 5;  // rounds

}  // namespace

void NonVmmCache::BeginRound(absl::Duration now) {
  now_ = now;
  ++round_;
}

bool NonVmmCache::IsTrusted(pid_t pid) {
  const auto known = known_.find(pid);
  if (known == known_.end()) return false;
  Process& process = known->second;
  const bool check = (round_ + static_cast<uint64_t>(pid)) % kCheckedEach == 0;
  if (check || !process.settled || now_ >= process.look_again) return false;
  process.round = round_;
  return true;
}

bool NonVmmCache::MayBePassedOver(pid_t pid, const TaskStat& stat, std::string_view name) {
  const auto known = known_.find(pid);
  if (known == known_.end()) return false;
  Process& process = known->second;
  if (process.start_time_ticks != stat.start_time_ticks || process.name != name) {
    known_.erase(known);
    return false;
  }
  process.round = round_;
  return now_ < process.look_again;
}

void NonVmmCache::Remember(pid_t pid, const TaskStat& stat, std::string_view name, bool vmm) {
  const auto [known, is_new] = known_.try_emplace(pid);
  Process& process = known->second;
  if (is_new) {
    process = {.start_time_ticks = stat.start_time_ticks,
               .name = std::string(name),
               .first_seen = now_,
               .look_again = now_,
               .round = round_};
  }
  process.round = round_;
  process.settled = !vmm && (stat.kernel_thread || now_ - process.first_seen >= kNew);
  const int settled_s = kSoonest_s + pid % kSpread_s;
  process.look_again = process.settled ? now_ + absl::Seconds(settled_s) : now_;
}

void NonVmmCache::EndRound() {
  std::erase_if(known_, [this](const auto& entry) { return entry.second.round != round_; });
}

}  // namespace vcpulse::kvm
