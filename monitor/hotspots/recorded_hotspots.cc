#include "monitor/hotspots/recorded_hotspots.h"

#include <algorithm>
#include <variant>

#include "kvm/base/text.h"

namespace vcpulse::hotspots {
namespace {

kvm::GuestMode ModeOf(v1::GuestMode mode) {
  switch (mode) {
    case v1::GUEST_MODE_KERNEL:
      return kvm::GuestMode::kKernel;
    case v1::GUEST_MODE_USER:
      return kvm::GuestMode::kUser;
    default:
      return kvm::GuestMode::kUnknown;
  }
}

// A damaged file may have any number; sums stay below 2^64.
uint64_t Believable(uint64_t samples) { return std::min(samples, uint64_t{1} << 32); }

}  // namespace

void RecordedHotspots::Add(const timeline::Entry& entry) {
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) Add(*set);
  if (const auto* hot = std::get_if<v1::HotAddresses>(&entry.record)) Add(*hot);
}

void RecordedHotspots::Add(const v1::VcpuSet& set) {
  if (!set.has_instance()) return;
  Vm& vm = vms_[set.vm()];
  vm.name = set.instance().name();
  vm.pid = set.instance().pid();
}

void RecordedHotspots::Add(const v1::HotAddresses& hot) {
  const std::optional<kvm::AddressSource> source = kvm::FindAddressSource(hot.source());
  if (!source) {
    if (hot.source().empty()) vms_[hot.vm()].refused = hot.refused();
    return;  // of a later release
  }
  const Key key(hot.vm(), hot.vcpu_index());
  Vcpu& vcpu = vcpus_[key];
  VcpuHotspots& sums = vcpu.sums;
  sums.source = *source;
  sums.seconds +=
      (static_cast<double>(hot.mono_ns()) - static_cast<double>(hot.begin_mono_ns())) * 1e-9;
  sums.lost += Believable(hot.lost());
  sums.halted += Believable(hot.halted());
  sums.samples += Believable(hot.further_samples());
  ++(hot.trigger() == v1::HotAddresses::TRIGGER_STARVED ? sums.after_starved : sums.after_spinning);
  const int places = std::min({hot.addresses_size(), hot.samples_size(), hot.modes_size()});
  for (int i = 0; i < places; ++i) {
    const uint64_t samples = Believable(hot.samples(i));
    if (samples == 0) continue;
    sums.samples += samples;
    const kvm::GuestAddress at{.address = hot.addresses(i), .mode = ModeOf(hot.modes(i))};
    auto& counts = vcpu.counts.counts;
    if (counts.size() < kMostAddresses || counts.contains(at)) counts[at] += samples;
  }
}

VcpuHotspots RecordedHotspots::Named(const Key& key, const Vcpu& vcpu,
                                     const GuestSymbols& symbols) const {
  VcpuHotspots named = vcpu.sums;
  if (const auto vm = vms_.find(key.first); vm != vms_.end()) {
    named.vm = vm->second.name;
    named.pid = vm->second.pid;
  }
  named.vcpu = static_cast<int>(key.second);
  named.spots = SpotsOf(vcpu.counts, symbols.Of(named.vm));
  return named;
}

std::vector<VcpuHotspots> RecordedHotspots::All(const GuestSymbols& symbols) const {
  std::vector<VcpuHotspots> all;
  all.reserve(vcpus_.size());
  for (const auto& [key, vcpu] : vcpus_) all.push_back(Named(key, vcpu, symbols));
  return all;
}

std::optional<VcpuHotspots> RecordedHotspots::Of(uint32_t vm, uint32_t vcpu,
                                                 const GuestSymbols& symbols) const {
  const auto found = vcpus_.find({vm, vcpu});
  if (found == vcpus_.end()) return std::nullopt;
  return Named(found->first, found->second, symbols);
}

std::optional<std::string> RecordedHotspots::Refused(uint32_t vm) const {
  const auto found = vms_.find(vm);
  return found == vms_.end() ? std::nullopt : found->second.refused;
}

std::optional<std::string> RecordedHotspots::AnyRefused() const {
  for (const auto& [number, vm] : vms_) {
    if (vm.refused) return vm.refused;
  }
  return std::nullopt;
}

}  // namespace vcpulse::hotspots
