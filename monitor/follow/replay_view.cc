#include "monitor/follow/replay_view.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/labels.h"

namespace vcpulse::follow {
namespace {

std::string GapText(const v1::Gap& gap, const std::string& vm) {
  std::string text =
      absl::StrCat("gap: ", vm, ", ",
                   gap.first_tick() == gap.last_tick()
                       ? absl::StrCat("tick ", gap.first_tick())
                       : absl::StrCat("ticks ", gap.first_tick(), " to ", gap.last_tick()),
                   ": ", ToAbsl(reading::GapReasonName(gap.reason())));
  if (gap.has_vcpu_index()) absl::StrAppend(&text, ", vCPU ", gap.vcpu_index());
  if (gap.error() != 0) absl::StrAppend(&text, ", ", reading::ErrnoText(gap.error()));
  return text;
}

}  // namespace

std::optional<std::string> ReplayView::Take(const timeline::Entry& entry) {
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    Name(set->vm(), set->instance());
    intervals_.Add(*set);
    return std::nullopt;
  }
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    static_cast<void>(intervals_.Add(*session));  // of another stream: what is known stays
  }
  if (entry.sequence == 0) return std::nullopt;
  if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    return Stamped(marker->mono_ns(), absl::StrCat("marker '", Printable(marker->name()), "'"));
  }
  const std::optional<int64_t> instant = timeline::InstantOf(entry);
  if (!instant) return std::nullopt;
  if (!start_ns_) start_ns_ = *instant;
  latest_ns_ = std::max(latest_ns_, *instant);
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    TakeTick(*tick);
  } else if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    ++progress_.gaps;
    return Stamped(*instant, GapText(*gap, gap->vm() == 0 ? "all VMs" : LabelOf(gap->vm())));
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    if (change->has_instance()) Name(change->vm(), change->instance());
    if (change->kind() == v1::LifeCycle::KIND_VM_ENDED) latest_.erase(change->vm());
    std::string text(reading::LifeCycleName(change->kind()));
    if (change->vm() != 0) text = absl::StrCat(LabelOf(change->vm()), ": ", text);
    if (!change->detail().empty()) {
      absl::StrAppend(&text, ": ", Printable(change->detail()));
    }
    return Stamped(*instant, text);
  }
  return std::nullopt;
}

void ReplayView::TakeTick(const timeline::TickEntry& tick) {
  if (latest_tick_ != tick.sample.tick) ++ticks_;
  latest_tick_ = tick.sample.tick;
  ++progress_.samples;
  progress_.vcpu_samples += tick.sample.vcpus.size();
  latest_[tick.vm].assign(tick.verdicts.begin(), tick.verdicts.end());
}

std::string ReplayView::TickLine(const timeline::TickEntry& tick) {
  std::string letters;
  letters.reserve(tick.verdicts.size());
  for (const core::Verdict& verdict : tick.verdicts) {
    letters += reading::BandLetter(verdict.band, verdict.starved);
  }
  metric::Ratio ratio;
  const auto add = [&ratio](const metric::Interval& interval) {
    if (metric::IsBusy(interval)) ratio.Add(metric::InfoOf(metric::Metric::kIpc).of(interval), 1);
    return absl::OkStatus();
  };
  static_cast<void>(intervals_.Add({.vm = tick.vm,
                                    .epoch = tick.epoch,
                                    .sample = tick.sample,
                                    .previous = tick.previous,
                                    .verdicts = tick.verdicts},
                                   add));
  const std::optional<double> ipc = ratio.Value();
  return Stamped(tick.sample.wake_ns, absl::StrCat(LabelOf(tick.vm), "  ", letters, "  IPC ",
                                                   ipc ? absl::StrFormat("%.2f", *ipc) : "-"));
}

absl::Duration ReplayView::elapsed() const {
  return absl::Nanoseconds(start_ns_ ? std::max<int64_t>(0, latest_ns_ - *start_ns_) : 0);
}

recorder::Progress ReplayView::progress() const {
  recorder::Progress progress = progress_;
  for (const auto& [vm, verdicts] : latest_) {
    progress.vms.push_back({.name = LabelOf(vm), .vcpus = verdicts});
  }
  return progress;
}

std::string ReplayView::LabelOf(uint32_t vm) const {
  const auto found = labels_.find(vm);
  return found == labels_.end() ? absl::StrCat("VM ", vm) : found->second;
}

void ReplayView::Name(uint32_t vm, const v1::VmInstance& instance) {
  if (vm == 0 || labels_.contains(vm) || instance.name().empty()) return;
  std::string label = Printable(instance.name());
  while (!used_labels_.insert(label).second) absl::StrAppend(&label, " (VM ", vm, ")");
  labels_.emplace(vm, std::move(label));
}

std::string ReplayView::Stamped(int64_t mono_ns, const std::string& text) const {
  if (stamp_) return absl::StrCat(stamp_(mono_ns), "  ", text, "\n");
  const double seconds = ToSeconds(mono_ns - start_ns_.value_or(mono_ns));
  return absl::StrFormat("%9.3fs  %s\n", seconds, text);
}

}  // namespace vcpulse::follow
