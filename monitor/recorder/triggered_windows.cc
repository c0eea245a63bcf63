#include "monitor/recorder/triggered_windows.h"

#include <algorithm>

namespace vcpulse::recorder {
namespace {

constexpr int64_t kHeld_ns = 200'000'000;
constexpr int64_t kWindow_ns = 1'000'000'000;
constexpr int64_t kPause_ns = 10'000'000'000;
constexpr size_t kMostWindows = 4;

// How long it has held, where it holds now.
bool HasHeld(bool holds, int64_t mono_ns, std::optional<int64_t>& since_ns) {
  if (!holds) {
    since_ns.reset();
    return false;
  }
  if (!since_ns) since_ns = mono_ns;
  return mono_ns - *since_ns >= kHeld_ns;
}

}  // namespace

TriggeredWindows::TriggeredWindows(Triggers triggers, Open open, int64_t (*now_ns)())
    : triggers_(triggers), open_(std::move(open)), now_ns_(now_ns) {}

std::optional<Trigger> TriggeredWindows::TriggerOf(Watched& watched, int64_t mono_ns,
                                                   const core::Verdict& verdict) const {
  const bool spun = HasHeld(triggers_.spinning && verdict.band == core::Band::kSpinning, mono_ns,
                            watched.spinning_since_ns);
  const bool waited =
      HasHeld(triggers_.starved && verdict.starved, mono_ns, watched.starved_since_ns);
  if (spun) return Trigger::kSpinning;
  if (waited) return Trigger::kStarved;
  return std::nullopt;
}

bool TriggeredWindows::MayBegin(Epoch epoch, const kvm::Vcpu& vcpu, int64_t mono_ns) const {
  const bool has_one_alone =
      std::ranges::any_of(windows_, [](const OpenWindow& open) { return open.window->IsAlone(); });
  if (windows_.size() >= (has_one_alone ? 1 : kMostWindows)) return false;
  const auto pause = not_before_ns_.find({epoch.first, vcpu.index});
  return pause == not_before_ns_.end() || mono_ns >= pause->second;
}

void TriggeredWindows::Observe(Epoch epoch, const kvm::Vm& vm, const core::Sample& sample,
                               std::span<const core::Verdict> verdicts) {
  WatchedEpoch& watched = watched_[epoch];
  const bool follows = watched.last_tick && sample.tick == *watched.last_tick + 1;
  if (!follows) watched.vcpus.assign(verdicts.size(), {});
  watched.last_tick = sample.tick;
  const bool is_late = now_ns_() - sample.wake_ns > kHeld_ns;
  for (size_t i = 0; i < std::min(watched.vcpus.size(), vm.vcpus.size()); ++i) {
    const auto trigger = TriggerOf(watched.vcpus[i], sample.wake_ns, verdicts[i]);
    if (!trigger || is_late || watched.is_refused) continue;
    if (!MayBegin(epoch, vm.vcpus[i], sample.wake_ns)) continue;
    not_before_ns_[{epoch.first, vm.vcpus[i].index}] = sample.wake_ns + kWindow_ns + kPause_ns;
    const bool opened = Begin(epoch, vm, i, *trigger);
    watched.any_opened = watched.any_opened || opened;
    watched.is_refused = !watched.any_opened;
  }
}

bool TriggeredWindows::Begin(Epoch epoch, const kvm::Vm& vm, size_t vcpu, Trigger trigger) {
  WindowOf of{.vm = epoch.first, .epoch = epoch.second, .one = vm, .trigger = trigger};
  of.one.vcpus = {vm.vcpus[vcpu]};
  std::unique_ptr<Window> window = open_(of, now_ns_);
  if (!window->is_open()) {
    closed_.push_back(window->Close());
    return false;
  }
  windows_.push_back(
      {.epoch = epoch, .vcpu = vcpu, .begin_ns = now_ns_(), .window = std::move(window)});
  return true;
}

void TriggeredWindows::CloseWhere(absl::FunctionRef<bool(OpenWindow&)> ends) {
  for (auto open = windows_.begin(); open != windows_.end();) {
    if (ends(*open)) {
      closed_.push_back(open->window->Close());
      open = windows_.erase(open);
    } else {
      ++open;
    }
  }
}

void TriggeredWindows::Collect() {
  CloseWhere([this](OpenWindow& open) {
    const absl::Status status = open.window->Collect();
    return !status.ok() || now_ns_() - open.begin_ns >= kWindow_ns;
  });
}

void TriggeredWindows::End(Epoch epoch) {
  CloseWhere([&](const OpenWindow& open) { return open.epoch == epoch; });
  watched_.erase(epoch);
  std::erase_if(not_before_ns_,
                [now_ns = now_ns_()](const auto& pause) { return pause.second <= now_ns; });
}

std::vector<size_t> TriggeredWindows::SharingTheirPmu(Epoch epoch) const {
  std::vector<size_t> vcpus;
  for (const OpenWindow& open : windows_) {
    if (open.epoch == epoch && open.window->SharesPmu()) vcpus.push_back(open.vcpu);
  }
  return vcpus;
}

}  // namespace vcpulse::recorder
