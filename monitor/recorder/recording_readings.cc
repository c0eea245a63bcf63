// Of Recording: what is read beside the counters, statistics and triggered windows.
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

void Recording::CollectWindows() {
  for (TriggeredWindows& windows : windows_) windows.Collect();
}

void Recording::SayNoSpinning(const LiveEpoch& live, const kvm::Vm& vm) {
  if (!options_.hotspots.spinning || live.verdicts.empty() || live.tells_spinning) return;
  Say(vm,
      absl::StrCat("hot addresses: without cycles and instructions no vCPU is called SPINNING",
                   options_.hotspots.starved ? ", so none is sampled for that"
                                             : ": `--hotspots starved` samples those that wait"));
}

void Recording::WriteWindows() {
  for (TriggeredWindows& windows : windows_) {
    for (v1::TimelineRecord& record : windows.Take()) {
      const v1::HotAddresses& hot = record.hot_addresses();
      const v1::Competitors& competitors = record.competitors();
      if (record.has_hot_addresses() && hot.source().empty()) {
        notices_.Add(absl::StrCat("hot addresses: ", hot.refused()));
      } else if (!competitors.refused().empty()) {
        notices_.Add(absl::StrCat("competitors: ", competitors.refused()));
      }
      const int64_t mono_ns = record.has_competitors() ? competitors.mono_ns() : hot.mono_ns();
      writer_.Add(std::move(record), mono_ns);
    }
  }
}

}  // namespace vcpulse::recorder
