#include "monitor/hotspots/hotspots.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "kvm/base/json.h"
#include "kvm/base/text.h"
#include "monitor/hotspots/callers.h"

namespace vcpulse::hotspots {
namespace {

namespace json = boost::json;
using std::literals::operator""sv;

double Percent(uint64_t samples, uint64_t all) {
  return 100 * static_cast<double>(samples) / static_cast<double>(all);
}

std::string HeadOf(const VcpuHotspots& vcpu) {
  std::string text =
      absl::StrCat("VM ", Printable(vcpu.vm), " (PID ", vcpu.pid, ") vCPU ", vcpu.vcpu, ": ",
                   Plural(vcpu.samples, "sample"), " in ", absl::StrFormat("%.1f s", vcpu.seconds),
                   " by ", ToAbsl(kvm::ToString(vcpu.source)), WindowsText(vcpu));
  if (vcpu.lost > 0) absl::StrAppend(&text, ", ", vcpu.lost, " lost");
  if (vcpu.halted > 0) absl::StrAppend(&text, ", ", vcpu.halted, " while halted");
  // Why there is nothing to see, or less than there might be.
  if (vcpu.samples == 0 && !vcpu.refused.empty()) {
    absl::StrAppend(&text, " (", Printable(vcpu.refused), ")");
  }
  return text + "\n";
}

std::string LineOf(uint64_t samples, uint64_t all, std::string_view mode, std::string_view name) {
  return absl::StrFormat("  %5.1f %%  %6d  %-6s  %s\n", Percent(samples, all), samples,
                         ToAbsl(mode), ToAbsl(name));
}

// Who called, with as many lines as there are of spots.
std::string CallersText(const VcpuHotspots& vcpu, size_t most) {
  uint64_t told = 0;
  for (const Stack& stack : *vcpu.stacks) told += stack.samples;
  std::string text =
      absl::StrCat("  callers, known of ", told, " of ", Plural(vcpu.samples, "sample"), "\n");
  for (size_t i = 0; i < std::min(most, vcpu.stacks->size()); ++i) {
    const Stack& stack = (*vcpu.stacks)[i];
    std::string names;
    for (const Stack::Frame& frame : stack.frames) {
      absl::StrAppend(&names, names.empty() ? "" : " < ", Printable(frame.name));
    }
    text += LineOf(stack.samples, vcpu.samples, NameOf(stack.mode), names);
    told -= stack.samples;
  }
  if (vcpu.stacks->size() > most) {
    text += LineOf(told, vcpu.samples, "",
                   absl::StrCat(Plural(vcpu.stacks->size() - most, "more stack"), " (--top N)"));
  }
  return text;
}

json::value StacksJson(const VcpuHotspots& vcpu) {
  if (!vcpu.stacks) return nullptr;
  json::array stacks;
  for (const Stack& stack : *vcpu.stacks) {
    json::array frames;
    for (const Stack::Frame& frame : stack.frames) {
      frames.push_back(json::object{{"name", JsonText(frame.name)},
                                    {"named", frame.named},
                                    {"address", JsonText(absl::StrFormat("0x%x", frame.address))}});
    }
    stacks.push_back(json::object{{"samples", stack.samples}, {"frames", std::move(frames)}});
  }
  return stacks;
}

}  // namespace

std::string_view NameOf(kvm::GuestMode mode) {
  switch (mode) {
    case kvm::GuestMode::kKernel:
      return "kernel";
    case kvm::GuestMode::kUser:
      return "user";
    case kvm::GuestMode::kUnknown:
      break;
  }
  return "?";
}

uint64_t LeftOut(const VcpuHotspots& vcpu) {
  uint64_t samples = vcpu.samples;
  for (const Spot& spot : vcpu.spots) samples -= spot.samples;
  return samples;
}

bool IsIdleLoop(std::string_view function) {
  // Linux: kernel/sched/idle.c, drivers/cpuidle, arch/x86 and arch/arm64.
  constexpr std::array kNames = {"poll_idle"sv,           "do_idle"sv,
                                 "cpu_startup_entry"sv,   "default_idle"sv,
                                 "default_idle_call"sv,   "arch_cpu_idle"sv,
                                 "cpu_do_idle"sv,         "cpuidle_enter_state"sv,
                                 "cpuidle_enter"sv,       "intel_idle"sv,
                                 "intel_idle_irq"sv,      "mwait_idle"sv,
                                 "acpi_safe_halt"sv,      "acpi_idle_do_entry"sv,
                                 "pv_native_safe_halt"sv, "native_safe_halt"sv,
                                 "haltpoll_enter_idle"sv, "default_enter_idle"sv,
                                 "cpu_idle_poll"sv};
  return std::ranges::find(kNames, function) != kNames.end();
}

std::optional<double> IdleShare(const std::vector<Spot>& spots, uint64_t all) {
  uint64_t idle = 0;
  bool any_named = false;
  for (const Spot& spot : spots) {
    any_named |= spot.named;
    if (spot.named && IsIdleLoop(spot.name)) idle += spot.samples;
  }
  if (!any_named || all == 0) return std::nullopt;
  return static_cast<double>(idle) / static_cast<double>(all);
}

bool NoSymbolFits(const VcpuHotspots& vcpu) {
  const auto is_kernels = [](const Spot& spot) { return spot.mode == kvm::GuestMode::kKernel; };
  return std::ranges::any_of(vcpu.spots, is_kernels) &&
         std::ranges::none_of(vcpu.spots, &Spot::named);
}

void WaitTally::Add(uint64_t samples, std::optional<bool> waits) {
  if (samples == 0) return;
  any_known_ |= waits.has_value();
  if (waits.value_or(false)) waiting_ += samples;
}

std::optional<double> WaitTally::ShareOf(uint64_t all) const {
  if (!any_known_ || all == 0) return std::nullopt;
  return static_cast<double>(waiting_) / static_cast<double>(all);
}

std::optional<bool> WaitsByKernel(const GuestKernel& kernel, kvm::GuestAddress at) {
  return at.mode == kvm::GuestMode::kUser ? std::nullopt : kernel.code.WaitsAt(at.address);
}

std::string WhyItSpins(const VcpuHotspots& vcpu) {
  const std::string_view after = vcpu.Windows() > 0 ? " after spinning" : "";
  // poll_idle waits by PAUSE too.
  if (vcpu.idle_share.value_or(0) >= kMostly) {
    return absl::StrFormat("idle polling: %.1f %%%s in the guest's idle loop",
                           100 * *vcpu.idle_share, ToAbsl(after));
  }
  if (vcpu.wait_share.value_or(0) < kMostly) return "";
  return absl::StrFormat("waits in place: at least %.1f %%%s in a loop with PAUSE, WFE or YIELD",
                         100 * *vcpu.wait_share, ToAbsl(after));
}

std::vector<Spot> SpotsOf(const kvm::AddressCounts& counts, const Symbols& symbols) {
  return SpotsOf(counts, [&symbols](uint64_t address) { return symbols.Find(address); });
}

std::vector<Spot> SpotsOf(const kvm::AddressCounts& counts, FindSymbol find) {
  // By where they begin: several functions may have one name.
  std::map<std::pair<uint64_t, kvm::GuestMode>, Spot> by_place;
  for (const auto& [at, samples] : counts.counts) {
    const auto symbol = at.mode == kvm::GuestMode::kUser ? std::nullopt : find(at.address);
    const std::string name = symbol ? symbol->name : absl::StrFormat("0x%x", at.address);
    const uint64_t begin = symbol ? symbol->address : at.address;
    Spot& spot = by_place[{begin, at.mode}];
    spot.address = begin;
    spot.name = name;
    spot.mode = at.mode;
    spot.named = symbol.has_value();
    spot.samples += samples;
  }
  std::vector<Spot> spots;
  spots.reserve(by_place.size());
  for (auto& [place, spot] : by_place) spots.push_back(std::move(spot));
  std::ranges::stable_sort(spots, std::greater(), &Spot::samples);
  return spots;
}

std::vector<Stack> StacksOf(const std::vector<kvm::StackLook>& looks, const GuestKernel& kernel) {
  const auto frame_of = [&kernel](uint64_t shown, uint64_t looked_up) {
    const auto symbol = kernel.symbols.Find(looked_up);
    return Stack::Frame{.name = symbol ? symbol->name : absl::StrFormat("0x%x", shown),
                        .named = symbol.has_value(),
                        .address = symbol ? symbol->address : shown};
  };
  std::map<std::vector<Stack::Frame>, uint64_t> counts;
  for (const kvm::StackLook& look : looks) {
    const std::vector<uint64_t> callers = CallersOf(look, kernel);
    if (callers.empty()) continue;
    const uint64_t at = look.registers.at.address;
    std::vector<Stack::Frame> frames = {frame_of(at, at)};
    // A call may be the last instruction of its function.
    for (const uint64_t caller : callers) frames.push_back(frame_of(caller, caller - 1));
    ++counts[std::move(frames)];
  }
  std::vector<Stack> stacks;
  stacks.reserve(counts.size());
  for (const auto& [frames, samples] : counts) {
    stacks.push_back({.frames = frames, .mode = kvm::GuestMode::kKernel, .samples = samples});
  }
  std::ranges::stable_sort(stacks, std::greater(), &Stack::samples);
  return stacks;
}

std::vector<Stack> AllStacks(const VcpuHotspots& vcpu) {
  std::vector<Stack> all = vcpu.stacks.value_or(std::vector<Stack>());
  std::map<std::pair<uint64_t, kvm::GuestMode>, uint64_t> told;  // by innermost frame
  for (const Stack& stack : all) told[{stack.frames.front().address, stack.mode}] += stack.samples;
  for (const Spot& spot : vcpu.spots) {
    const uint64_t rest = spot.samples - std::min(spot.samples, told[{spot.address, spot.mode}]);
    if (rest == 0) continue;
    all.push_back({.frames = {{.name = spot.name, .named = spot.named, .address = spot.address}},
                   .mode = spot.mode,
                   .samples = rest});
  }
  if (const uint64_t left_out = LeftOut(vcpu); left_out > 0) {
    all.push_back({.frames = {{.name = std::string(kLeftOut)}}, .samples = left_out});
  }
  return all;
}

std::string WindowsText(const VcpuHotspots& vcpu) {
  if (vcpu.Windows() == 0) return "";
  const std::string_view after = vcpu.after_starved == 0    ? " after spinning"
                                 : vcpu.after_spinning == 0 ? " after starvation"
                                                            : " after spinning or starvation";
  return absl::StrCat(", ", Plural(vcpu.Windows(), "window"), ToAbsl(after));
}

std::string SharesOf(const VcpuHotspots& vcpu, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, vcpu.spots.size()); ++i) {
    const Spot& spot = vcpu.spots[i];
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    absl::StrFormat("%.1f %% ", Percent(spot.samples, vcpu.samples)),
                    Printable(spot.name), spot.mode == kvm::GuestMode::kUser ? " (user)" : "");
  }
  return text;
}

std::string TextOf(const std::vector<VcpuHotspots>& vcpus, size_t most) {
  std::string text;
  for (const VcpuHotspots& vcpu : vcpus) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", HeadOf(vcpu));
    uint64_t shown = 0;
    for (size_t i = 0; i < std::min(most, vcpu.spots.size()); ++i) {
      const Spot& spot = vcpu.spots[i];
      shown += spot.samples;
      text += LineOf(spot.samples, vcpu.samples, NameOf(spot.mode), Printable(spot.name));
    }
    const uint64_t left_out = LeftOut(vcpu);
    if (vcpu.spots.size() > most) {
      text += LineOf(vcpu.samples - shown - left_out, vcpu.samples, "",
                     absl::StrCat(Plural(vcpu.spots.size() - most, "more place"), " (--top N)"));
    }
    if (left_out > 0) text += LineOf(left_out, vcpu.samples, "", kLeftOut);
    if (vcpu.stacks && vcpu.samples > 0) text += CallersText(vcpu, most);
    const std::string why = WhyItSpins(vcpu);
    if (!why.empty()) absl::StrAppend(&text, "  ", why, "\n");
    if (!vcpu.code_refused.empty()) {
      absl::StrAppend(&text, "  its code was not read: ", Printable(vcpu.code_refused), "\n");
    }
  }
  return text;
}

json::object ObjectOf(const VcpuHotspots& vcpu, size_t most) {
  json::array spots;
  for (const Spot& spot : vcpu.spots) {
    if (spots.size() == most) break;
    json::object object;
    object["name"] = JsonText(spot.name);
    object["named"] = spot.named;
    object["address"] = JsonText(absl::StrFormat("0x%x", spot.address));
    object["mode"] =
        spot.mode == kvm::GuestMode::kUnknown ? json::value(nullptr) : JsonText(NameOf(spot.mode));
    object["samples"] = spot.samples;
    object["share"] = static_cast<double>(spot.samples) / static_cast<double>(vcpu.samples);
    spots.push_back(std::move(object));
  }
  json::object object;
  object["source"] = JsonText(kvm::ToString(vcpu.source));
  object["windows"] = nullptr;
  if (vcpu.Windows() > 0) {
    object["windows"] =
        json::object{{"spinning", vcpu.after_spinning}, {"starved", vcpu.after_starved}};
  }
  object["seconds"] = vcpu.seconds;
  object["samples"] = vcpu.samples;
  object["lost"] = vcpu.lost;
  object["halted"] = vcpu.halted;
  object["refused"] = TextOrNull(vcpu.refused);
  object["idle_share"] = OrNull(vcpu.idle_share);
  object["wait_share"] = OrNull(vcpu.wait_share);
  object["why"] = TextOrNull(WhyItSpins(vcpu));
  object["code_refused"] = TextOrNull(vcpu.code_refused);
  object["spots"] = std::move(spots);
  object["stacks"] = StacksJson(vcpu);
  return object;
}

std::string JsonOf(const std::vector<VcpuHotspots>& vcpus) {
  json::array all;
  for (const VcpuHotspots& vcpu : vcpus) {
    json::object object{{"vm", JsonText(vcpu.vm)}, {"pid", vcpu.pid}, {"vcpu", vcpu.vcpu}};
    for (auto& [key, value] : ObjectOf(vcpu, vcpu.spots.size())) object[key] = std::move(value);
    all.push_back(std::move(object));
  }
  json::object out;
  out["vcpus"] = std::move(all);
  return ToJsonText(out);
}

std::string FoldedOf(const std::vector<VcpuHotspots>& vcpus) {
  // A ';' would be another frame.
  const auto frame_of = [](std::string_view name) {
    return absl::StrReplaceAll(Printable(name), {{";", "_"}});
  };
  std::string text;
  for (const VcpuHotspots& vcpu : vcpus) {
    for (const Stack& stack : AllStacks(vcpu)) {
      absl::StrAppend(&text, frame_of(vcpu.vm), ";vCPU ", vcpu.vcpu, ";",
                      ToAbsl(NameOf(stack.mode)));
      for (const Stack::Frame& frame : std::views::reverse(stack.frames)) {
        absl::StrAppend(&text, ";", frame_of(frame.name));
      }
      absl::StrAppend(&text, " ", stack.samples, "\n");
    }
  }
  return text;
}

}  // namespace vcpulse::hotspots
