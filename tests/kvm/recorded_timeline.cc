#include "tests/kvm/recorded_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

namespace vcpulse::kvm_tests {
namespace {

void Add(const timeline::Entry& entry, Timeline& timeline) {
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    ++timeline.samples[tick->vm];
    timeline.bands[tick->vm].insert(tick->verdicts.front().band);
    timeline.latest_mono_ns = std::max(timeline.latest_mono_ns, tick->sample.wake_ns);
    timeline.ticks.push_back({tick->vm, tick->epoch, tick->sample, tick->verdicts});
  }
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) timeline.session = *session;
  if (const auto* profile = std::get_if<v1::Profile>(&entry.record)) {
    timeline.profiles.push_back(*profile);
  }
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) timeline.sets.push_back(*set);
  if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    timeline.markers.push_back(*marker);
  }
  if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) timeline.gaps.push_back(*gap);
  if (const auto* life = std::get_if<v1::LifeCycle>(&entry.record)) {
    timeline.life_cycles.push_back(*life);
  }
  if (const auto* summary = std::get_if<v1::Summary>(&entry.record)) {
    timeline.end_reason = summary->end_reason();
  }
}

absl::Status Read(const std::string& path, Timeline& timeline) {
  const auto report = timeline::ReadTimeline(path, [&](const timeline::Entry& entry) {
    Add(entry, timeline);
    return absl::OkStatus();
  });
  if (report.ok()) timeline.report = *report;
  return report.status();
}

}  // namespace

std::vector<v1::LifeCycle> Timeline::Of(v1::LifeCycle::Kind kind) const {
  std::vector<v1::LifeCycle> found;
  for (const v1::LifeCycle& change : life_cycles) {
    if (change.kind() == kind) found.push_back(change);
  }
  return found;
}

Timeline ReadSoFar(const std::string& path) {
  Timeline timeline;
  if (!Read(path, timeline).ok()) return {};
  return timeline;
}

Timeline ReadBack(const std::string& path) {
  Timeline timeline;
  const absl::Status status = Read(path, timeline);
  EXPECT_TRUE(status.ok()) << status;
  return timeline;
}

}  // namespace vcpulse::kvm_tests
