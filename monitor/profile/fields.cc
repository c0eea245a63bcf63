#include "monitor/profile/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::profile {
namespace {

using core::EvidenceThresholds;
using core::IpcBandsThresholds;
using core::PresenceThresholds;

constexpr Limits kShare{.lowest = 0, .highest = 1, .text = "a share, 0 to 1"};
constexpr Limits kPositiveShare{
    .lowest = 0, .above = true, .highest = 1, .text = "a share above 0, up to 1"};
constexpr Limits kIpc{.lowest = 0, .highest = 100, .text = "an IPC, 0 to 100"};
constexpr Limits kPositiveIpc{
    .lowest = 0, .above = true, .highest = 100, .text = "an IPC above 0, up to 100"};
constexpr Limits kRate{
    .lowest = 0, .above = true, .highest = 1000, .text = "a number above 0, up to 1000"};
constexpr Limits kCycles{
    .lowest = 0, .above = true, .highest = 1e12, .text = "a number of cycles above 0, up to 1e12"};

template <auto kPart, auto kMember>
Place At(core::Profile& profile) {
  auto& member = profile.*kPart.*kMember;
  if constexpr (std::is_same_v<decltype(member), double&>) {
    return {.number = &member};
  } else {
    return {.optional = &member};
  }
}

template <auto kMember>
constexpr auto kPresence = At<&core::Profile::presence, kMember>;
template <auto kMember>
constexpr auto kIpcBands = At<&core::Profile::ipc_bands, kMember>;
template <auto kMember>
constexpr auto kEvidence = At<&core::Profile::evidence, kMember>;

using P = PresenceThresholds;
using B = IpcBandsThresholds;
using E = EvidenceThresholds;

constexpr std::array kFields = {
    Field{"halted_enter", kPresence<&P::halted_enter>, &kShare},
    Field{"halted_leave", kPresence<&P::halted_leave>, &kShare},
    Field{"starved_above", kPresence<&P::starved_above>, &kShare},
    Field{"mostly_waiting_above", kPresence<&P::mostly_waiting_above>, &kShare},
    Field{"counted_from", kPresence<&P::counted_from>, &kShare},
    Field{"polling_ratio_above", kPresence<&P::polling_ratio_above>, &kRate},
    Field{"spinning_below", kIpcBands<&B::spinning_below>, &kIpc},
    Field{"productive_from", kIpcBands<&B::productive_from>, &kIpc},
    Field{"fewest_cycles", kEvidence<&E::fewest_cycles>, &kCycles},
    Field{"full_confidence_cycles", kEvidence<&E::full_confidence_cycles>, &kCycles},
    Field{"pause_spin_from", kEvidence<&E::pause_spin_from>, &kPositiveShare},
    Field{"pause_mixed_from", kEvidence<&E::pause_mixed_from>, &kPositiveShare},
    Field{"no_pause_below", kEvidence<&E::no_pause_below>, &kPositiveShare},
    Field{"pause_cycles_each", kEvidence<&E::pause_cycles_each>, &kRate},
    Field{"loop_branch_misses_below", kEvidence<&E::loop_branch_misses_below>, &kRate},
    Field{"loop_branch_share_from", kEvidence<&E::loop_branch_share_from>, &kPositiveShare},
    Field{"loop_cache_misses_below", kEvidence<&E::loop_cache_misses_below>, &kRate},
    Field{"loop_ipc_from", kEvidence<&E::loop_ipc_from>, &kPositiveIpc},
    Field{"poll_ipc_from", kEvidence<&E::poll_ipc_from>, &kPositiveIpc},
    Field{"steady_ipc_spread_below", kEvidence<&E::steady_ipc_spread_below>, &kRate},
    Field{"slow_loop_branch_misses_below", kEvidence<&E::slow_loop_branch_misses_below>, &kRate},
    Field{"slow_loop_ipc_below", kEvidence<&E::slow_loop_ipc_below>, &kPositiveIpc},
    Field{"memory_bound_ipc_below", kEvidence<&E::memory_bound_ipc_below>, &kPositiveIpc},
    Field{"memory_bound_cache_misses_from", kEvidence<&E::memory_bound_cache_misses_from>, &kRate},
    Field{"productive_ipc_from", kEvidence<&E::productive_ipc_from>, &kPositiveIpc},
    Field{"productive_branch_misses_from", kEvidence<&E::productive_branch_misses_from>, &kRate},
    Field{"weak_below", kEvidence<&E::weak_below>, &kShare},
};
// All of core::Profile but the ranges of spin_ipc: a new threshold there needs a row here.
static_assert(sizeof(P) + sizeof(B) + sizeof(E) - sizeof(E::spin_ipc) - sizeof(E::spin_ipcs) ==
              kFields.size() * sizeof(double) +
                  2 * (sizeof(std::optional<double>) - sizeof(double)));

// Fields of which the first is at most the second.
constexpr std::array<std::array<std::string_view, 2>, 7> kOrdered = {{
    {"halted_enter", "halted_leave"},
    {"starved_above", "mostly_waiting_above"},
    {"spinning_below", "productive_from"},
    {"fewest_cycles", "full_confidence_cycles"},
    {"no_pause_below", "pause_mixed_from"},
    {"pause_mixed_from", "pause_spin_from"},
    {"loop_ipc_from", "poll_ipc_from"},
}};

double Value(const core::Profile& profile, std::string_view name) {
  return FindField(name)->Get(profile).value_or(0);
}

}  // namespace

bool Limits::Allow(double value) const {
  return std::isfinite(value) && (above ? value > lowest : value >= lowest) && value <= highest;
}

bool Field::MayBeOff() const {
  core::Profile any;
  return at(any).optional != nullptr;
}

std::optional<double> Field::Get(const core::Profile& profile) const {
  core::Profile copy = profile;
  const Place place = at(copy);
  return place.number != nullptr ? *place.number : *place.optional;
}

void Field::Set(core::Profile& profile, std::optional<double> value) const {
  const Place place = at(profile);
  if (place.optional != nullptr) {
    *place.optional = value;
  } else if (value) {
    *place.number = *value;
  }
}

std::span<const Field> Fields() { return kFields; }

const Field* FindField(std::string_view name) {
  const auto field = std::ranges::find(kFields, name, &Field::name);
  return field == kFields.end() ? nullptr : &*field;
}

const Limits& SpinIpcLimits() { return kPositiveIpc; }

std::string NumberText(double value) {
  std::array<char, 400> text;  // the longest double without an exponent has 325 characters
  const bool plain = value == 0 || (std::abs(value) >= 1e-6 && std::abs(value) < 1e15);
  const auto end =
      plain ? std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed)
            : std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific);
  return {text.data(), end.ptr};
}

Fault FindFault(const core::Profile& profile) {
  for (const Field& field : kFields) {
    const std::optional<double> value = field.Get(profile);
    if (!value || field.limits->Allow(*value)) continue;
    return {std::string(field.name),
            absl::StrCat(NumberText(*value), " is not ", ToAbsl(field.limits->text))};
  }
  for (const auto& [lower, upper] : kOrdered) {
    if (Value(profile, lower) <= Value(profile, upper)) continue;
    return {std::string(lower),
            absl::StrCat(NumberText(Value(profile, lower)), " is above ", ToAbsl(upper), ", ",
                         NumberText(Value(profile, upper)))};
  }
  if (Value(profile, "halted_leave") >= 1) {
    return {"halted_leave", "1 is not below 1: every vCPU would stay HALTED"};
  }
  return {};
}

}  // namespace vcpulse::profile
