#include "monitor/hotspots/recorded_hotspots.h"

#include <algorithm>
#include <variant>

#include "monitor/hotspots/places.h"

namespace vcpulse::hotspots {
namespace {

void AddTo(kvm::AddressCounts& counts, kvm::GuestAddress at, uint64_t samples, size_t most) {
  if (counts.counts.size() >= most && !counts.counts.contains(at)) {
    std::erase_if(counts.counts, [](const auto& place) { return place.second == 1; });
    if (counts.counts.size() >= most) return;
  }
  counts.counts[at] += samples;
}

}  // namespace

void RecordedHotspots::Add(const timeline::Entry& entry) {
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) vms_[set->vm()] = set->instance();
  if (const auto* hot = std::get_if<v1::HotAddresses>(&entry.record)) Add(*hot);
}

void RecordedHotspots::Add(const v1::HotAddresses& hot) {
  const std::optional<kvm::AddressSource> source = kvm::FindAddressSource(hot.source());
  if (!source) {
    if (hot.source().empty()) refused_[hot.vm()] = hot.refused();
    return;  // of a later release
  }
  Vcpu& vcpu = vcpus_[{.vm = hot.vm(), .vcpu = hot.vcpu_index(), .source = *source}];
  VcpuHotspots& sums = vcpu.sums;
  sums.seconds +=
      (static_cast<double>(hot.mono_ns()) - static_cast<double>(hot.begin_mono_ns())) * 1e-9;
  sums.lost += Believable(hot.lost());
  sums.halted += Believable(hot.halted());
  sums.samples += Believable(hot.further_samples());
  sums.refused = hot.refused();
  const bool is_starved = hot.trigger() == v1::HotAddresses::TRIGGER_STARVED;
  ++(is_starved ? sums.after_starved : sums.after_spinning);
  ForEachPlace(hot, [&](kvm::GuestAddress at, uint64_t samples) {
    sums.samples += samples;
    AddTo(vcpu.counts, at, samples, kMostAddresses);
    if (!is_starved) AddTo(vcpu.after_spinning, at, samples, kMostAddresses);
  });
}

VcpuHotspots RecordedHotspots::Named(const Key& key, const Vcpu& vcpu,
                                     const GuestSymbols& symbols) const {
  VcpuHotspots named = vcpu.sums;
  if (const auto vm = vms_.find(key.vm); vm != vms_.end()) {
    named.vm = vm->second.name();
    named.pid = vm->second.pid();
  }
  named.vcpu = static_cast<int>(key.vcpu);
  named.source = key.source;
  named.spots = SpotsOf(vcpu.counts, symbols.Of(named.vm));
  named.idle_share = IdleShare(SpotsOf(vcpu.after_spinning, symbols.Of(named.vm)));
  return named;
}

std::vector<VcpuHotspots> RecordedHotspots::All(const GuestSymbols& symbols,
                                                std::optional<uint32_t> vm) const {
  std::vector<VcpuHotspots> all;
  for (const auto& [key, vcpu] : vcpus_) {
    if (!vm || *vm == key.vm) all.push_back(Named(key, vcpu, symbols));
  }
  return all;
}

std::optional<VcpuHotspots> RecordedHotspots::Of(uint32_t vm, uint32_t vcpu,
                                                 const GuestSymbols& symbols) const {
  auto best = vcpus_.end();
  for (auto found = vcpus_.lower_bound({.vm = vm, .vcpu = vcpu}); found != vcpus_.end(); ++found) {
    if (found->first.vm != vm || found->first.vcpu != vcpu) break;
    const bool has_more =
        best == vcpus_.end() || found->second.sums.samples > best->second.sums.samples;
    if (has_more) best = found;
  }
  if (best == vcpus_.end()) return std::nullopt;
  return Named(best->first, best->second, symbols);
}

std::optional<std::string> RecordedHotspots::Refused(uint32_t vm) const {
  const auto refused = refused_.find(vm);
  const auto sampled = vcpus_.lower_bound({.vm = vm});
  const bool was_sampled = sampled != vcpus_.end() && sampled->first.vm == vm;
  return refused == refused_.end() || was_sampled ? std::nullopt : std::optional(refused->second);
}

}  // namespace vcpulse::hotspots
