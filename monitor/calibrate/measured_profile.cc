#include "monitor/calibrate/measured_profile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "monitor/core/event_slots.h"
#include "monitor/profile/installed.h"

namespace vcpulse::calibrate {
namespace {

// What the profiles that are built in have to either side of a spin's IPC.
constexpr double kAround = 0.25;

// Programs that spin with PAUSE or YIELD.
constexpr std::array<std::string_view, 3> kPauseSpins = {"pause", "test-and-set", "ticket"};

struct Spin {
  core::IpcRange range;
  std::string text;  // "0.031 in pause"
};

// By IPC; those that overlap are one.
std::vector<Spin> SpinsOf(const Calibration& calibration, double slower_than) {
  std::vector<Spin> spins;
  for (const std::string_view name : kPauseSpins) {
    const SceneOutcome* const scene = calibration.Find(name);
    const std::optional<double> ipc = scene != nullptr ? scene->Ipc() : std::nullopt;
    if (!ipc || *ipc >= slower_than) continue;
    spins.push_back({.range = {.from = *ipc * (1 - kAround), .to = *ipc * (1 + kAround)},
                     .text = absl::StrFormat("%.3g in %s", *ipc, std::string(name))});
  }
  std::ranges::sort(spins, {}, [](const Spin& spin) { return spin.range.from; });
  std::vector<Spin> joined;
  for (const Spin& spin : spins) {
    if (joined.empty() || joined.back().range.to < spin.range.from) {
      joined.push_back(spin);
      continue;
    }
    joined.back().range.to = std::max(joined.back().range.to, spin.range.to);
    absl::StrAppend(&joined.back().text, " and ", spin.text);
  }
  return joined;
}

profile::CpuMatch OnlyThis(const kvm::CpuIdentity& cpu) {
  profile::CpuMatch match{.vendors = {cpu.vendor},
                          .family = cpu.family,
                          .models = {{.from = cpu.model, .to = cpu.model}}};
  if (match.HasFamilies()) match.steppings = {{.from = cpu.stepping, .to = cpu.stepping}};
  return match;
}

// "measured-genuineintel-6-85-7", "measured-0x41-0xd0c".
std::string NameOf(const profile::CpuMatch& match, const kvm::CpuIdentity& cpu) {
  const std::string vendor = absl::AsciiStrToLower(cpu.vendor);
  if (!match.HasFamilies()) return absl::StrCat("measured-", vendor, "-0x", absl::Hex(cpu.model));
  return absl::StrCat("measured-", vendor, "-", cpu.family, "-", cpu.model, "-", cpu.stepping);
}

// Of an event that counts PAUSEs: of one that counts their cycles nothing has to be known.
std::optional<double> CyclesOfAPause(const Calibration& calibration, const profile::Profile& base) {
  const SceneOutcome* const pause = calibration.Find("pause");
  const SceneOutcome* const loop = calibration.Find("loop");
  if (!base.pause || pause == nullptr || loop == nullptr) return std::nullopt;
  if (core::FindSlots(std::array{base.pause->name}).pause_in_cycles) return std::nullopt;
  if (!pause->CyclesPerTurn() || !loop->CyclesPerTurn()) return std::nullopt;
  const double each = *pause->CyclesPerTurn() - *loop->CyclesPerTurn();
  return each > 0 ? std::optional(each) : std::nullopt;
}

}  // namespace

absl::StatusOr<profile::Profile> MeasuredProfile(const Calibration& calibration,
                                                 const profile::Profile& base,
                                                 const kvm::CpuIdentity& cpu,
                                                 const std::string& where) {
  if (cpu.vendor.empty()) {
    return absl::FailedPreconditionError("the model of this CPU is not known");
  }
  if (calibration.IpcTellsProgramsApart() != true) {
    return absl::FailedPreconditionError("IPC does not distinguish programs on this host");
  }
  profile::Profile measured = base;
  core::EvidenceThresholds& evidence = measured.values.evidence;
  const std::vector<Spin> spins = SpinsOf(calibration, evidence.loop_ipc_from);
  const std::optional<double> pause_cycles = CyclesOfAPause(calibration, base);
  if (spins.empty() && !pause_cycles) {
    return absl::FailedPreconditionError("no spin of PAUSE was slow enough to be known by its IPC");
  }
  measured.cpu = OnlyThis(cpu);
  measured.name = NameOf(*measured.cpu, cpu);
  measured.description = absl::StrCat("measured on ", where);
  measured.source = "measured";
  if (!spins.empty()) {
    measured.spin_ipc_cpu = measured.cpu;
    for (size_t i = 0; i < evidence.spin_ipcs; ++i) {
      measured.origins.erase(absl::StrCat("spin_ipc[", i, "]"));
    }
    evidence.spin_ipcs = spins.size();
    for (size_t i = 0; i < spins.size(); ++i) {
      evidence.spin_ipc[i] = spins[i].range;
      measured.origins[absl::StrCat("spin_ipc[", i, "]")] = absl::StrCat(
          "measured on ", where, ": IPC ", spins[i].text, "; the range is 25 % to either side");
    }
  }
  if (pause_cycles) {
    evidence.pause_cycles_each = *pause_cycles;
    measured.origins["pause_cycles_each"] = absl::StrCat(
        "measured on ", where, ": a turn of the PAUSE spin less one of the empty loop");
  }
  if (absl::Status status = profile::Check(measured.values); !status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("what was measured: ", status.message()));
  }
  return measured;
}

absl::StatusOr<std::string> InstallIfBetter(const Calibration& calibration,
                                            const std::string& root) {
  if (!calibration.measured.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no profile was measured: ", calibration.measured.status().message()));
  }
  if (!calibration.MeasuredIsBetter()) {
    return absl::FailedPreconditionError(
        absl::StrCat("not installed: the profile that was measured is no better here than ",
                     calibration.profile));
  }
  return profile::Install(calibration.measured->profile, root);
}

}  // namespace vcpulse::calibrate
