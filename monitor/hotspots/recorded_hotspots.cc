#include "monitor/hotspots/recorded_hotspots.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "monitor/hotspots/code_record.h"
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
  if (!hot.code_refused().empty()) sums.code_refused = hot.code_refused();
  if (!is_starved) vcpu.samples_after_spinning += Believable(hot.further_samples());
  const WindowCode code = CodeOf(hot);
  Names& names = names_[hot.vm()];
  ForEachPlace(hot, [&](const Place& place) {
    sums.samples += place.samples;
    AddTo(vcpu.counts, place.at, place.samples, kMostAddresses);
    if (place.named && place.named->name.size() <= kLongestName &&
        (names.size() < kMostAddresses || names.contains(place.at.address))) {
      names.insert_or_assign(place.at.address, *place.named);
    }
    if (is_starved) return;
    vcpu.samples_after_spinning += place.samples;
    AddTo(vcpu.after_spinning, place.at, place.samples, kMostAddresses);
    const auto waits = code.WaitsAt(place.at);
    if (!waits || !vcpu.after_spinning.counts.contains(place.at)) return;
    ByOwnCode& judged = vcpu.by_own_code[place.at];
    (*waits ? judged.waiting : judged.others) += place.samples;
  });
  std::erase_if(vcpu.by_own_code, [&vcpu](const auto& judged) {
    return !vcpu.after_spinning.counts.contains(judged.first);
  });
}

VcpuHotspots RecordedHotspots::Named(const Key& key, const Vcpu& vcpu,
                                     const GuestKernels& symbols) const {
  VcpuHotspots named = vcpu.sums;
  if (const auto vm = vms_.find(key.vm); vm != vms_.end()) {
    named.vm = vm->second.name();
    named.pid = vm->second.pid();
  }
  named.vcpu = static_cast<int>(key.vcpu);
  named.source = key.source;
  const GuestKernel& kernel = symbols.Of(named.vm);
  const Names& names = names_.at(key.vm);
  const auto find = [&](uint64_t address) -> std::optional<Symbol> {
    if (!kernel.symbols.empty()) return kernel.symbols.Find(address);
    const auto name = names.find(address);
    return name == names.end() ? std::nullopt : std::optional(name->second);
  };
  named.spots = SpotsOf(vcpu.counts, find);
  named.idle_share = IdleShare(SpotsOf(vcpu.after_spinning, find), vcpu.samples_after_spinning);
  // What was read from the guest itself comes before a file that may be of another kernel.
  WaitTally tally;
  for (const auto& [at, samples] : vcpu.after_spinning.counts) {
    const auto judged = vcpu.by_own_code.find(at);
    const ByOwnCode own = judged == vcpu.by_own_code.end() ? ByOwnCode() : judged->second;
    tally.Add(own.waiting, true);
    tally.Add(own.others, false);
    tally.Add(samples - std::min(samples, own.waiting + own.others), WaitsByKernel(kernel, at));
  }
  named.wait_share = tally.ShareOf(vcpu.samples_after_spinning);
  return named;
}

std::vector<VcpuHotspots> RecordedHotspots::All(const GuestKernels& symbols,
                                                std::optional<uint32_t> vm) const {
  std::vector<VcpuHotspots> all;
  for (const auto& [key, vcpu] : vcpus_) {
    if (!vm || *vm == key.vm) all.push_back(Named(key, vcpu, symbols));
  }
  return all;
}

std::optional<VcpuHotspots> RecordedHotspots::Of(uint32_t vm, uint32_t vcpu,
                                                 const GuestKernels& symbols) const {
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
