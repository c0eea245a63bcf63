#include "monitor/recorder/hotspots_watch.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"

namespace vcpulse::recorder {
namespace {

constexpr int64_t kHeld_ns = 200'000'000;
constexpr int64_t kWindow_ns = 1'000'000'000;
constexpr int64_t kPause_ns = 10'000'000'000;
constexpr size_t kMostWindows = 4;
// A second at 499 Hz has no more places; other sources may, and a record stays short.
constexpr size_t kMostAddresses = 512;

v1::GuestMode ModeOf(kvm::GuestMode mode) {
  switch (mode) {
    case kvm::GuestMode::kKernel:
      return v1::GUEST_MODE_KERNEL;
    case kvm::GuestMode::kUser:
      return v1::GUEST_MODE_USER;
    case kvm::GuestMode::kUnknown:
      break;
  }
  return v1::GUEST_MODE_UNSPECIFIED;
}

void AddCounts(const kvm::AddressCounts& counts, v1::HotAddresses& record) {
  record.set_lost(counts.lost);
  record.set_halted(counts.halted);
  std::vector<std::pair<kvm::GuestAddress, uint64_t>> places(counts.counts.begin(),
                                                             counts.counts.end());
  std::ranges::stable_sort(places, std::greater(), &decltype(places)::value_type::second);
  uint64_t further = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& [place, samples] = places[i];
    if (i >= kMostAddresses) {
      further += samples;
      continue;
    }
    record.add_addresses(place.address);
    record.add_samples(samples);
    record.add_modes(ModeOf(place.mode));
  }
  record.set_further_samples(further);
}

// What was sampled before a failure counts; the record says that there was one.
void AddReason(const absl::Status& status, v1::HotAddresses& record) {
  if (status.ok()) return;
  std::string reason = record.refused();
  absl::StrAppend(&reason, reason.empty() ? "" : "; ", record.source(), ": ", status.message());
  record.set_refused(reason);
}

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

HotspotsWatch::HotspotsWatch(HotspotsTriggers triggers, Open open, int64_t (*now_ns)())
    : triggers_(triggers), open_(std::move(open)), now_ns_(now_ns) {}

std::optional<v1::HotAddresses::Trigger> HotspotsWatch::TriggerOf(
    Watched& watched, int64_t mono_ns, const core::Verdict& verdict) const {
  const bool spun = HasHeld(triggers_.spinning && verdict.band == core::Band::kSpinning, mono_ns,
                            watched.spinning_since_ns);
  const bool waited =
      HasHeld(triggers_.starved && verdict.starved, mono_ns, watched.starved_since_ns);
  if (spun) return v1::HotAddresses::TRIGGER_SPINNING;
  if (waited) return v1::HotAddresses::TRIGGER_STARVED;
  return std::nullopt;
}

bool HotspotsWatch::MayBegin(Epoch epoch, const kvm::Vcpu& vcpu, int64_t mono_ns) const {
  const bool has_qmp = std::ranges::any_of(windows_, [](const Window& window) {
    return window.sampler->source() == kvm::AddressSource::kQmp;
  });
  if (windows_.size() >= (has_qmp ? 1 : kMostWindows)) return false;
  const auto pause = not_before_ns_.find({epoch.first, vcpu.index});
  return pause == not_before_ns_.end() || mono_ns >= pause->second;
}

void HotspotsWatch::Observe(Epoch epoch, const kvm::Vm& vm, const core::Sample& sample,
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

bool HotspotsWatch::Begin(Epoch epoch, const kvm::Vm& vm, size_t vcpu,
                          v1::HotAddresses::Trigger trigger) {
  kvm::Vm one = vm;
  one.vcpus = {vm.vcpus[vcpu]};
  Window window{.epoch = epoch, .vcpu = vcpu};
  v1::HotAddresses& record = window.record;
  record.set_vm(epoch.first);
  record.set_epoch(epoch.second);
  record.set_vcpu_index(static_cast<uint32_t>(one.vcpus.front().index));
  record.set_trigger(trigger);
  auto sampler = open_(one);
  const absl::Status status = sampler.ok() ? (*sampler)->Start() : sampler.status();
  record.set_begin_mono_ns(now_ns_());
  if (!status.ok()) {
    record.set_refused(std::string(status.message()));
    record.set_mono_ns(record.begin_mono_ns());
    found_.push_back(std::move(record));
    return false;
  }
  record.set_source(std::string(kvm::ToString((*sampler)->source())));
  record.set_refused((*sampler)->refused());
  window.sampler = *std::move(sampler);
  windows_.push_back(std::move(window));
  return true;
}

void HotspotsWatch::Close(Window& window) {
  AddReason(window.sampler->Stop(), window.record);
  window.record.set_mono_ns(now_ns_());
  AddCounts(window.sampler->counts().front(), window.record);
  found_.push_back(std::move(window.record));
}

void HotspotsWatch::CloseWhere(absl::FunctionRef<bool(Window&)> ends) {
  for (auto window = windows_.begin(); window != windows_.end();) {
    if (ends(*window)) {
      Close(*window);
      window = windows_.erase(window);
    } else {
      ++window;
    }
  }
}

void HotspotsWatch::Collect() {
  CloseWhere([this](Window& window) {
    const absl::Status status = window.sampler->Collect();
    AddReason(status, window.record);
    return !status.ok() || now_ns_() - window.record.begin_mono_ns() >= kWindow_ns;
  });
}

void HotspotsWatch::End(Epoch epoch) {
  CloseWhere([&](const Window& window) { return window.epoch == epoch; });
  watched_.erase(epoch);
  std::erase_if(not_before_ns_,
                [now_ns = now_ns_()](const auto& pause) { return pause.second <= now_ns; });
}

std::vector<size_t> HotspotsWatch::SharingTheirPmu(Epoch epoch) const {
  std::vector<size_t> vcpus;
  for (const Window& window : windows_) {
    const bool shares = window.sampler->source() == kvm::AddressSource::kCycles;
    if (window.epoch == epoch && shares) vcpus.push_back(window.vcpu);
  }
  return vcpus;
}

}  // namespace vcpulse::recorder
