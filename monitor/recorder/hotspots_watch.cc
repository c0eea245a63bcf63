#include "monitor/recorder/hotspots_watch.h"

#include <algorithm>
#include <functional>

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
  if (mono_ns < watched.not_before_ns) return std::nullopt;
  if (spun) return v1::HotAddresses::TRIGGER_SPINNING;
  if (waited) return v1::HotAddresses::TRIGGER_STARVED;
  return std::nullopt;
}

void HotspotsWatch::Observe(Epoch epoch, const kvm::Vm& vm, int64_t mono_ns,
                            std::span<const core::Verdict> verdicts) {
  auto known = watched_.find(epoch);
  if (known == watched_.end()) {
    known = watched_.emplace(epoch, std::vector<Watched>(verdicts.size())).first;
  }
  std::vector<Watched>& watched = known->second;
  for (size_t i = 0; i < std::min(watched.size(), vm.vcpus.size()); ++i) {
    const auto trigger = TriggerOf(watched[i], mono_ns, verdicts[i]);
    if (!trigger || windows_.size() >= kMostWindows) continue;
    watched[i].not_before_ns = mono_ns + kWindow_ns + kPause_ns;
    if (!Begin(epoch, vm, vm.vcpus[i], *trigger)) {
      watched.clear();
      return;
    }
  }
}

bool HotspotsWatch::Begin(Epoch epoch, const kvm::Vm& vm, const kvm::Vcpu& vcpu,
                          v1::HotAddresses::Trigger trigger) {
  kvm::Vm one = vm;
  one.vcpus = {vcpu};
  Window window{.epoch = epoch};
  v1::HotAddresses& record = window.record;
  record.set_vm(epoch.first);
  record.set_epoch(epoch.second);
  record.set_vcpu_index(static_cast<uint32_t>(vcpu.index));
  record.set_trigger(trigger);
  auto sampler = open_(one);
  absl::Status status = sampler.ok() ? (*sampler)->Start() : sampler.status();
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
  // A thread that has ended, or another client of QMP: what was sampled until then counts.
  static_cast<void>(window.sampler->Stop());
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
    static_cast<void>(window.sampler->Collect());
    return now_ns_() - window.record.begin_mono_ns() >= kWindow_ns;
  });
}

void HotspotsWatch::End(Epoch epoch) {
  CloseWhere([&](const Window& window) { return window.epoch == epoch; });
  watched_.erase(epoch);
}

bool HotspotsWatch::TakesACounter(Epoch epoch) const {
  return std::ranges::any_of(windows_, [&](const Window& window) {
    return window.epoch == epoch && window.sampler->source() == kvm::AddressSource::kCycles;
  });
}

}  // namespace vcpulse::recorder
