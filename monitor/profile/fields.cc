#include "monitor/profile/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/profile/profile.h"

namespace vcpulse::profile {
namespace {

using P = core::PresenceThresholds;
using B = core::IpcBandsThresholds;
using E = core::EvidenceThresholds;

constexpr double kAbove0 = std::numeric_limits<double>::denorm_min();
constexpr Limits kShare{0, 1, "a share, 0 to 1"};
constexpr Limits kPositiveShare{kAbove0, 1, "a share above 0, up to 1"};
constexpr Limits kIpc{0, 100, "an IPC, 0 to 100"};
constexpr Limits kPositiveIpc{kAbove0, 100, "an IPC above 0, up to 100"};
constexpr Limits kRate{kAbove0, 1000, "a number above 0, up to 1000"};
constexpr Limits kCycles{kAbove0, 1e12, "a number of cycles above 0, up to 1e12"};

constexpr std::array kFields = {
    Field{"halted_enter", &P::halted_enter, &kShare, "halted_leave"},
    Field{"halted_leave", &P::halted_leave, &kShare},
    Field{"halted_at_most", &P::halted_at_most, &kShare},
    Field{"slowest_clock", &P::slowest_clock, &kPositiveShare},
    Field{"starved_above", &P::starved_above, &kShare, "mostly_waiting_above"},
    Field{"mostly_waiting_above", &P::mostly_waiting_above, &kShare},
    Field{"counted_from", &P::counted_from, &kShare},
    Field{"polling_ratio_above", &P::polling_ratio_above, &kRate},
    Field{"spinning_below", &B::spinning_below, &kIpc, "productive_from"},
    Field{"productive_from", &B::productive_from, &kIpc},
    Field{"fewest_cycles", &E::fewest_cycles, &kCycles, "full_confidence_cycles"},
    Field{"full_confidence_cycles", &E::full_confidence_cycles, &kCycles},
    Field{"pause_spin_from", &E::pause_spin_from, &kPositiveShare},
    Field{"pause_mixed_from", &E::pause_mixed_from, &kPositiveShare, "pause_spin_from"},
    Field{"no_pause_below", &E::no_pause_below, &kPositiveShare, "pause_mixed_from"},
    Field{"pause_cycles_each", &E::pause_cycles_each, &kRate},
    Field{"loop_branch_misses_below", &E::loop_branch_misses_below, &kRate},
    Field{"loop_branch_share_from", &E::loop_branch_share_from, &kPositiveShare},
    Field{"loop_cache_misses_below", &E::loop_cache_misses_below, &kRate},
    Field{"loop_l1d_misses_below", &E::loop_l1d_misses_below, &kRate},
    Field{"bare_loop_branch_misses_below", &E::bare_loop_branch_misses_below, &kRate,
          "loop_branch_misses_below"},
    Field{"loop_ipc_from", &E::loop_ipc_from, &kPositiveIpc, "poll_ipc_from"},
    Field{"poll_ipc_from", &E::poll_ipc_from, &kPositiveIpc},
    Field{"steady_ipc_spread_below", &E::steady_ipc_spread_below, &kRate},
    Field{"slow_loop_branch_misses_below", &E::slow_loop_branch_misses_below, &kRate},
    Field{"slow_loop_ipc_below", &E::slow_loop_ipc_below, &kPositiveIpc},
    Field{"memory_bound_ipc_below", &E::memory_bound_ipc_below, &kPositiveIpc},
    Field{"memory_bound_cache_misses_from", &E::memory_bound_cache_misses_from, &kRate},
    Field{"productive_ipc_from", &E::productive_ipc_from, &kPositiveIpc},
    Field{"productive_branch_misses_from", &E::productive_branch_misses_from, &kRate},
    Field{"productive_l1d_misses_from", &E::productive_l1d_misses_from, &kRate},
    Field{"productive_l1d_ipc_from", &E::productive_l1d_ipc_from, &kPositiveIpc},
    Field{"weak_below", &E::weak_below, &kShare},
};
// All of core::Profile but the ranges of spin_ipc: a new threshold there needs a row here.
static_assert(sizeof(P) + sizeof(B) + sizeof(E) - sizeof(E::spin_ipc) - sizeof(E::spin_ipcs) ==
              kFields.size() * sizeof(double) +
                  2 * (sizeof(std::optional<double>) - sizeof(double)));

// A member of one of the parts of a profile.
auto& At(auto& profile, auto P::* member) { return profile.presence.*member; }
auto& At(auto& profile, auto B::* member) { return profile.ipc_bands.*member; }
auto& At(auto& profile, auto E::* member) { return profile.evidence.*member; }

}  // namespace

std::string Limits::Fault(double value) const {
  if (value >= lowest && value <= highest) return "";
  return absl::StrCat(NumberText(value), " is not ", ToAbsl(text));
}

bool Field::MayBeOff() const { return std::holds_alternative<std::optional<double> E::*>(member); }

std::optional<double> Field::Get(const core::Profile& profile) const {
  return std::visit([&](auto at) { return std::optional(At(profile, at)); }, member);
}

void Field::Set(core::Profile& profile, std::optional<double> value) const {
  if (const auto* off = std::get_if<std::optional<double> E::*>(&member)) {
    At(profile, *off) = value;
  } else if (value) {
    std::visit([&](auto at) { At(profile, at) = *value; }, member);
  }
}

std::span<const Field> Fields() { return kFields; }

const Limits& SpinIpcLimits() { return kPositiveIpc; }

std::string NumberText(double value) {
  std::array<char, 400> text;  // the longest double without an exponent has 325 characters
  const bool plain = value == 0 || (std::abs(value) >= 1e-6 && std::abs(value) < 1e15);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  return {text.data(), std::to_chars(text.begin(), text.end(), value, format).ptr};
}

absl::Status Check(const core::Profile& values) {
  const auto fault = [](std::string_view field, const std::string& text) {
    return absl::InvalidArgumentError(absl::StrCat("thresholds.", ToAbsl(field), ".value: ", text));
  };
  for (const Field& field : kFields) {
    const std::optional<double> value = field.Get(values);
    const std::string text = value ? field.limits->Fault(*value) : "";
    if (!text.empty()) return fault(field.name, text);
  }
  for (const Field& field : kFields) {
    const auto upper = std::ranges::find(kFields, field.at_most, &Field::name);
    if (upper == kFields.end() || field.Get(values) <= upper->Get(values)) continue;
    return fault(field.name,
                 absl::StrCat(NumberText(*field.Get(values)), " is above ", ToAbsl(upper->name),
                              ", ", NumberText(*upper->Get(values))));
  }
  if (values.presence.halted_leave < 1) return absl::OkStatus();
  return fault("halted_leave", "1 is not below 1: every vCPU would stay HALTED");
}

}  // namespace vcpulse::profile
