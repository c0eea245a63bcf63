#include "monitor/report/headline.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "monitor/report/vcpu_table.h"

namespace vcpulse::report {
namespace {

using metric::Metric;

constexpr size_t kNamed = 2;           // vCPUs of each kind
constexpr double kMuchUnknown = 0.05;  // of all time: from here on a spin may well be among it

struct Place {
  uint32_t vm_number = 0;
  const VmSummary* vm = nullptr;
  const VcpuSummary* vcpu = nullptr;
};

std::string NameOf(const Place& place, bool several_vms) {
  const std::string vcpu = absl::StrCat("vCPU ", place.vcpu->index);
  return several_vms ? absl::StrCat(vcpu, " of VM ", VmLabel(place.vm_number, *place.vm)) : vcpu;
}

// When it began, and the phase that most of it lies in: a tick across a marker begins before it.
std::string When(const Report& report, const metric::LongestStretch& stretch) {
  std::string text = absl::StrFormat("at %+.1f s", report.SecondsAt(stretch.begin_ns()));
  if (report.phase) return text;
  const v1::Marker* phase = nullptr;
  for (const v1::Marker& marker : report.summary.markers()) {
    if (marker.mono_ns() <= stretch.begin_ns() + stretch.length_ns() / 2) phase = &marker;
  }
  if (phase != nullptr) absl::StrAppend(&text, ", phase ", Printable(phase->name()));
  return text;
}

// The first of them by `rank`, those above 0 alone; among equals by the second number.
using Rank = std::pair<double, double>;
std::vector<Place> Worst(std::vector<Place> places, const std::function<Rank(const Place&)>& rank) {
  std::erase_if(places, [&rank](const Place& place) { return rank(place).first <= 0; });
  std::ranges::stable_sort(places, std::greater{}, rank);
  if (places.size() > kNamed) places.resize(kNamed);
  return places;
}

std::string Spins(const Report& report, const std::vector<Place>& places, bool several_vms) {
  metric::Totals all;
  for (const Place& place : places) all.Add(place.vcpu->totals);
  const double unknown_ns = all.Of(Metric::kUnknown).part;
  if (unknown_ns > 0 && all.Of(Metric::kSpinning).part + all.Of(Metric::kProductive).part == 0) {
    return all.HadNoCounters() ? "unknown: no hardware counter was read"
                               : "unknown: no busy time could be judged";
  }
  const std::vector<Place> worst = Worst(places, [](const Place& place) {
    return Rank(static_cast<double>(place.vcpu->spin.length_ns()),
                place.vcpu->Value(Metric::kSpinning).value_or(0));
  });
  std::vector<std::string> texts;
  for (const Place& place : worst) {
    const metric::LongestStretch& spin = place.vcpu->spin;
    texts.push_back(absl::StrCat(
        NameOf(place, several_vms), " for ", DurationText(static_cast<double>(spin.length_ns())),
        " (", When(report, spin), "; SPINNING", HasIpcSpinning(*place.vm) ? "? " : " ",
        Percent(place.vcpu->Value(Metric::kSpinning)), " of its time)"));
  }
  std::string text = texts.empty() ? "none" : absl::StrJoin(texts, "; ");
  if (all.Value(Metric::kUnknown) >= kMuchUnknown) {
    absl::StrAppend(&text, "; ", Percent(all.Value(Metric::kUnknown)), " of the time is UNKNOWN");
  }
  return text;
}

std::string Starved(const Report& report, const std::vector<Place>& places, bool several_vms) {
  const bool measured = std::ranges::any_of(
      places, [](const Place& place) { return place.vcpu->Value(Metric::kStarved).has_value(); });
  if (!measured) return "unknown: waiting for a CPU was not measured";
  const std::vector<Place> worst = Worst(places, [](const Place& place) {
    const double starved = place.vcpu->Value(Metric::kStarved).value_or(0);
    return Rank(starved > 0 ? place.vcpu->Value(Metric::kRunDelay).value_or(starved) : 0, starved);
  });
  if (worst.empty()) return "none";
  std::vector<std::string> texts;
  for (const Place& place : worst) {
    const std::optional<double> waited = place.vcpu->Value(Metric::kRunDelay);
    std::string text = NameOf(place, several_vms);
    if (waited) absl::StrAppend(&text, " waited ", Percent(waited), " of its time for a CPU");
    absl::StrAppend(&text, " (starved ticks ", Percent(place.vcpu->Value(Metric::kStarved)));
    if (const metric::LongestStretch& starved = place.vcpu->starved; starved.length_ns() > 0) {
      absl::StrAppend(&text, ", longest run ",
                      DurationText(static_cast<double>(starved.length_ns())), " ",
                      When(report, starved));
    }
    texts.push_back(text + ")");
  }
  return absl::StrJoin(texts, "; ");
}

}  // namespace

std::string RenderHeadline(const Report& report, const TextOptions& options) {
  std::vector<Place> places;
  size_t vms = 0;
  for (const auto& [number, vm] : report.summary.vms()) {
    if (options.vm && *options.vm != number) continue;
    ++vms;
    for (const auto& [index, vcpu] : vm.vcpus) {
      if (options.vcpu && *options.vcpu != index) continue;
      if (vcpu.totals.MeasuredNs() > 0) places.push_back({number, &vm, &vcpu});
    }
  }
  if (places.empty()) return "";
  return Wrapped("longest spin: ", Spins(report, places, vms > 1)) +
         Wrapped("most starved: ", Starved(report, places, vms > 1));
}

}  // namespace vcpulse::report
