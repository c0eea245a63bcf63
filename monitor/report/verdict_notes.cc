#include "monitor/report/verdict_notes.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"

namespace vcpulse::report {
namespace {

using metric::Metric;

// Of a note, what each vCPU that it speaks of adds to it. `order`: greater ones are named first,
// where there are several VMs.
struct VcpuText {
  double order = 0;
  std::string text;  // behind the vCPU's name
};
using VcpuTextOf = std::function<std::optional<VcpuText>(const VmSummary&, const VcpuSummary&)>;

// Of these VMs, and of the vCPUs of this index alone where there is one.
std::string ListedVcpus(const Vms& vms, std::optional<uint32_t> only, const VcpuTextOf& text_of) {
  std::vector<VcpuText> texts;
  for (const auto* const entry : vms) {
    const auto& [number, vm] = *entry;
    for (const auto& [index, vcpu] : vm.vcpus) {
      if (only && *only != index) continue;
      std::optional<VcpuText> text = text_of(vm, vcpu);
      if (!text) continue;
      const std::string of_vm = vms.size() > 1 ? absl::StrCat(" of VM ", number) : "";
      text->text = absl::StrCat("vCPU ", index, of_vm, " ", text->text);
      texts.push_back(*std::move(text));
    }
  }
  if (vms.size() > 1) std::ranges::stable_sort(texts, std::greater{}, &VcpuText::order);
  std::vector<std::string> listed;
  listed.reserve(texts.size());
  for (VcpuText& text : texts) listed.push_back(std::move(text.text));
  return listed.empty() ? "" : Listed(listed, kListed);
}

std::string UnknownNotes(const Vms& vms, std::optional<uint32_t> only, const char* indent) {
  std::string out;
  for (size_t i = 0; i < core::kRules; ++i) {
    const auto rule = static_cast<core::Rule>(i);
    if (!reading::IsUnknownReason(rule)) continue;
    const std::string shares =
        ListedVcpus(vms, only, [&](const VmSummary& vm, const VcpuSummary& vcpu) {
          const bool said = rule == core::Rule::kNoCounters && IsDegraded(vm);  // by the first line
          if (said || vcpu.rule_ns[i] == 0) return std::optional<VcpuText>();
          const std::optional<double> share = vcpu.RuleShare(rule);
          return std::optional<VcpuText>({.order = share.value_or(0), .text = Percent(share)});
        });
    if (shares.empty()) continue;
    out += Wrapped(absl::StrCat(indent, "UNKNOWN: "),
                   absl::StrCat(std::string(reading::Explain(rule)), ": ", shares));
  }
  return out;
}

// How sure the verdicts were that say so, the least sure first, and how long a band was held before
// a change was believed.
std::string ConfidenceNotes(const Vms& vms, std::optional<uint32_t> only, const char* indent) {
  const std::string shares = ListedVcpus(
      vms, only, [](const VmSummary&, const VcpuSummary& vcpu) -> std::optional<VcpuText> {
        const std::optional<double> confidence = vcpu.Value(Metric::kConfidence);
        const double banded_ns =
            vcpu.totals.Of(Metric::kSpinning).part + vcpu.totals.Of(Metric::kProductive).part;
        if (!confidence || banded_ns == 0) return std::nullopt;
        std::string text = absl::StrFormat("%.2f", *confidence);
        const std::optional<double> held = vcpu.Value(Metric::kHeld);
        if (held > 0) absl::StrAppend(&text, " (held ", Percent(held), ")");
        return VcpuText{.order = -*confidence, .text = std::move(text)};
      });
  if (shares.empty()) return "";
  return Wrapped(absl::StrCat(indent, "confidence: "),
                 absl::StrCat("mean of the verdicts that give one (held: the share in which a band "
                              "was kept against a single window): ",
                              shares));
}

}  // namespace

std::string RenderVerdictNotes(const Vms& vms, std::optional<uint32_t> vcpu, const char* indent) {
  return absl::StrCat(UnknownNotes(vms, vcpu, indent), ConfidenceNotes(vms, vcpu, indent));
}

}  // namespace vcpulse::report
