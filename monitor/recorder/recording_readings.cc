// Of Recording: what is read beside the counters, statistics and hot addresses.
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/recorder/recording.h"

namespace vcpulse::recorder {

void Recording::ReadStatistics(LiveEpoch& live) {
  const int64_t now_ns = options_.now_ns();
  if (!live.statistics || !live.sampled || !live.statistics->IsDue(now_ns, live.verdicts)) return;
  v1::TimelineRecord record;
  v1::Statistics& statistics = *record.mutable_statistics();
  if (!live.statistics->Read(statistics)) return;
  statistics.set_vm(live.epoch->vm);
  statistics.set_epoch(live.epoch->number);
  statistics.set_mono_ns(now_ns);
  writer_.Add(std::move(record), now_ns);
}

void Recording::CollectHotspots() {
  if (hotspots_) hotspots_->Collect();
}

void Recording::SayNoSpinning(const LiveEpoch& live, const kvm::Vm& vm) {
  if (!options_.hotspots.spinning || live.verdicts.empty() || live.tells_spinning) return;
  Say(vm,
      absl::StrCat("hot addresses: without cycles and instructions no vCPU is called SPINNING",
                   options_.hotspots.starved ? ", so none is sampled for that"
                                             : ": `--hotspots starved` samples those that wait"));
}

void Recording::WriteHotspots() {
  if (!hotspots_) return;
  for (v1::HotAddresses& found : hotspots_->Take()) {
    if (found.source().empty()) notices_.Add(absl::StrCat("hot addresses: ", found.refused()));
    const int64_t mono_ns = found.mono_ns();
    v1::TimelineRecord record;
    *record.mutable_hot_addresses() = std::move(found);
    writer_.Add(std::move(record), mono_ns);
  }
}

}  // namespace vcpulse::recorder
