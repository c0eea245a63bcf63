#include "monitor/replay/rejudge.h"

#include <algorithm>
#include <ranges>
#include <string>

namespace vcpulse::replay {
namespace {

// What `record` takes. A file may say anything, and the memory of a window grows with the ticks in
// it.
constexpr uint64_t kShortestTick_ns = 1'000'000;
constexpr uint64_t kLongestTick_ns = uint64_t{3600} * 1'000'000'000;

core::EventSlots SlotsOf(const v1::VcpuSet& set) {
  const int events = std::min(set.events_size(), static_cast<int>(core::kMaxEvents));
  return core::FindSlots(
      std::span(set.events().data(), static_cast<size_t>(events)) |
      std::views::transform([](const std::string* name) -> const std::string& { return *name; }));
}

bool Fits(const core::Sample& sample, size_t vcpus, size_t further_groups) {
  return sample.vcpus.size() == vcpus && sample.further.size() == vcpus * further_groups;
}

}  // namespace

std::vector<core::ResidencyBasis> BasesOf(const v1::Session& session) {
  std::vector<double> max_hz = {session.max_hz()};
  max_hz.insert(max_hz.end(), session.further_max_hz().begin(), session.further_max_hz().end());
  if (max_hz.size() > core::kMaxGroups) max_hz.resize(core::kMaxGroups);
  std::vector<core::ResidencyBasis> bases;
  for (const double hz : max_hz) {
    core::ResidencyBasis& basis = bases.emplace_back();
    if (session.tsc_hz() > 0) basis.tsc_hz = session.tsc_hz();
    if (hz > 0) basis.max_hz = hz;
  }
  return bases;
}

core::EpochClassifier::Layout LayoutOf(const v1::VcpuSet& set) {
  const size_t groups = 1 + static_cast<size_t>(set.further_groups_size());
  return {.vcpus = static_cast<size_t>(set.vcpus_size()),
          .slots = SlotsOf(set),
          .core_pmus = std::clamp<size_t>(set.core_pmus(), 1, std::min(groups, core::kMaxGroups))};
}

Rejudge::Rejudge(core::ClassifierChoice choice, const core::Profile& profile)
    : choice_(choice), profile_(profile) {}

void Rejudge::Take(const v1::Session& session) {
  if (has_session_) return;
  has_session_ = true;
  interval_ns_ = static_cast<int64_t>(
      std::clamp<uint64_t>(session.interval_ns(), kShortestTick_ns, kLongestTick_ns));
  residency_ = core::ResidencyEstimator(BasesOf(session));
}

void Rejudge::Take(const v1::VcpuSet& set) {
  const std::pair key(set.vm(), set.epoch());
  if (epochs_.contains(key)) return;
  epochs_.emplace(key, Epoch{.layout = LayoutOf(set),
                             .further_groups = static_cast<size_t>(set.further_groups_size())});
}

core::Classifier Rejudge::ClassifierOf(const v1::VcpuSet& set) const {
  return core::Choose(choice_, SlotsOf(set));
}

std::span<const core::Verdict> Rejudge::Judge(const timeline::TickEntry& tick) {
  const auto found = epochs_.find({tick.vm, tick.epoch});
  if (found == epochs_.end()) return {};
  Epoch& epoch = found->second;
  const core::EpochClassifier::Layout& layout = epoch.layout;
  if (!Fits(tick.sample, layout.vcpus, epoch.further_groups)) return {};
  verdicts_.assign(layout.vcpus, {});
  const bool is_first = !epoch.classifier;
  if (is_first) {
    epoch.classifier.emplace(layout, core::Choose(choice_, layout.slots), profile_, interval_ns_);
  }
  const core::Sample* before = tick.previous;
  const bool unseen = before != nullptr && (is_first || before->tick != epoch.last_tick);
  if (unseen && Fits(*before, layout.vcpus, epoch.further_groups)) {
    epoch.classifier->Classify(*before, residency_, verdicts_);
  }
  epoch.classifier->Classify(tick.sample, residency_, verdicts_);
  epoch.last_tick = tick.sample.tick;
  return verdicts_;
}

const core::EpochClassifier* Rejudge::Find(uint32_t vm, uint32_t epoch) const {
  const auto found = epochs_.find({vm, epoch});
  if (found == epochs_.end() || !found->second.classifier) return nullptr;
  return &*found->second.classifier;
}

}  // namespace vcpulse::replay
