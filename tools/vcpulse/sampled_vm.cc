#include "tools/vcpulse/sampled_vm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "kvm/counters/perf_events.h"
#include "kvm/hotspots/guest_code.h"
#include "kvm/proc_tree.h"
#include "monitor/hotspots/known_code.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {
namespace {

constexpr int64_t kCollectPeriod_ns = 100'000'000;

bool HasEnded(const kvm::ProcTree& tree, const kvm::Vm& vm) {
  const auto process = tree.ProcessStat(vm.pid);
  return !process || process->Exited() || process->start_time_ticks != vm.start_time_ticks;
}

// The code around the hottest addresses of each vCPU, in the order of the VM's. Where one cannot be
// read, that is said, and the rest is not asked for.
std::vector<std::vector<kvm::GuestCode>> ReadCode(const SampledVm& one) {
  constexpr size_t kMost = 4;  // of each
  std::vector<std::vector<kvm::GuestCode>> all(one.vm.vcpus.size());
  for (size_t i = 0; i < one.vm.vcpus.size(); ++i) {
    const std::vector<uint64_t> places = kvm::HottestPlaces(one.sampler->counts()[i], kMost);
    if (places.empty()) continue;
    auto code = kvm::ReadGuestCode(one.vm, one.vm.vcpus[i].index, places);
    if (!code.ok()) {
      Note(absl::StrCat(LabelOf(one.vm), ": its code is not read: ", code.status().message()));
      break;
    }
    all[i] = *std::move(code);
  }
  return all;
}

// The kernel as it lies in this guest, by code that was read from it.
hotspots::GuestKernel Placed(const SampledVm& one,
                             const std::vector<std::vector<kvm::GuestCode>>& code,
                             hotspots::GuestKernel kernel) {
  using Found = hotspots::KnownCode::Place::Found;
  std::vector<kvm::GuestCode> pieces;
  for (const auto& of_vcpu : code) pieces.insert(pieces.end(), of_vcpu.begin(), of_vcpu.end());
  const hotspots::KnownCode::Place place = kernel.code.Locate(pieces);
  if (place.found == Found::kMoved) {
    Note(absl::StrCat(LabelOf(one.vm), ": its code is that of the vmlinux, moved by 0x",
                      absl::Hex(place.moved_by)));
    kernel.Move(place.moved_by);
  }
  if (place.found != Found::kNowhere) return kernel;
  Note(absl::StrCat(LabelOf(one.vm), ": its code is not that of the vmlinux",
                    kernel.is_placed ? "" : " at this offset", ", so nothing is named by it"));
  return {};
}

std::vector<hotspots::VcpuHotspots> VcpusOf(const SampledVm& one,
                                            const std::vector<std::vector<kvm::GuestCode>>& code,
                                            const hotspots::GuestKernel& kernel, bool callers) {
  std::vector<hotspots::VcpuHotspots> vcpus;
  for (size_t i = 0; i < one.vm.vcpus.size(); ++i) {
    const kvm::AddressCounts& counts = one.sampler->counts()[i];
    vcpus.push_back({.vm = one.vm.name,
                     .pid = one.vm.pid,
                     .vcpu = one.vm.vcpus[i].index,
                     .source = one.sampler->source(),
                     .seconds = one.seconds,
                     .samples = counts.Samples(),
                     .lost = counts.lost,
                     .halted = counts.halted,
                     .spots = hotspots::SpotsOf(counts, kernel.symbols)});
    hotspots::VcpuHotspots& vcpu = vcpus.back();
    vcpu.idle_share = hotspots::IdleShare(vcpu.spots, vcpu.samples);
    hotspots::KnownCode own;
    for (const kvm::GuestCode& piece : code[i]) own.Add(piece);
    hotspots::WaitTally tally;
    for (const auto& [at, samples] : counts.counts) {
      const auto waits = own.WaitsAt(at.address);
      tally.Add(samples, waits ? waits : hotspots::WaitsByKernel(kernel, at));
    }
    vcpu.wait_share = tally.ShareOf(vcpu.samples);
    if (callers) vcpu.stacks = hotspots::StacksOf(one.sampler->looks()[i], kernel);
  }
  return vcpus;
}

// Why no caller of a VM is known, for people; empty where some are, or none were asked for.
std::string NoCallers(const SampledVm& one, const std::vector<hotspots::VcpuHotspots>& vcpus,
                      bool has_vmlinux) {
  const auto& looks = one.sampler->looks();
  const auto read =
      std::ranges::find_if(looks, [](const auto& of_vcpu) { return !of_vcpu.empty(); });
  const auto has_any = [](const hotspots::VcpuHotspots& vcpu) {
    return vcpu.stacks && !vcpu.stacks->empty();
  };
  if (std::ranges::any_of(vcpus, has_any)) return "";
  if (read == looks.end()) {
    const bool any_sample = std::ranges::any_of(vcpus, &hotspots::VcpuHotspots::samples);
    if (!any_sample || !vcpus.front().stacks) return "";
    return absl::StrCat(LabelOf(one.vm),
                        ": no stack could be read: it ran in user mode, 16- or 32-bit code, or "
                        "moved on each time");
  }
  const bool is_x86 = read->front().registers.isa == kvm::Isa::kX86;
  return absl::StrCat(
      LabelOf(one.vm), ": no caller is known",
      !is_x86 ? ": its frame records lead nowhere"
      : has_vmlinux
          ? ": the vmlinux has no unwind tables (ORC), or where the kernel was loaded is "
            "not known (add --guest-code or --guest-kallsyms)"
          : ": on x86 the unwind tables (ORC) of its kernel are needed (--guest-vmlinux)");
}

}  // namespace

std::string LabelOf(const kvm::Vm& vm) {
  return absl::StrCat("VM ", vm.name, " (PID ", vm.pid, ")");
}

absl::StatusOr<std::vector<SampledVm>> OpenSamplers(const std::vector<kvm::Vm>& vms,
                                                    const kvm::AddressSamplerOptions& options) {
  kvm::KernelPerfEvents perf;
  std::vector<SampledVm> all;
  absl::Status first;
  for (const kvm::Vm& vm : vms) {
    auto sampler = kvm::AddressSampler::Open(perf, vm, options);
    if (sampler.ok() && (*sampler)->refused().empty()) {
      all.push_back({.vm = vm, .sampler = *std::move(sampler)});
    } else if (sampler.ok()) {
      Note(absl::StrCat(LabelOf(vm), " is sampled by ", ToAbsl(kvm::ToString((*sampler)->source())),
                        "; ", (*sampler)->refused()));
      all.push_back({.vm = vm, .sampler = *std::move(sampler)});
    } else {
      if (vms.size() > 1) Note(ToStd(sampler.status().message()));
      first.Update(sampler.status());
    }
  }
  if (all.empty()) return first;
  return all;
}

absl::Status Sample(std::vector<SampledVm>& all, absl::Duration duration, const std::string& root) {
  StopWaitsOnSignals();
  for (const SampledVm& one : all) {
    if (absl::Status status = one.sampler->Start(); !status.ok()) return status;
  }
  const kvm::ProcTree tree(root);
  const int64_t begin_ns = MonotonicNow_ns();
  const int64_t end_ns = begin_ns + absl::ToInt64Nanoseconds(duration);
  const auto goes_on = [](const SampledVm& one) { return one.goes_on; };
  while (!WasStopped() && MonotonicNow_ns() < end_ns && std::ranges::any_of(all, goes_on)) {
    static_cast<void>(WaitUntil(std::min(MonotonicNow_ns() + kCollectPeriod_ns, end_ns)));
    for (SampledVm& one : all) {
      if (!one.goes_on) continue;
      const absl::Status status = one.sampler->Collect();
      one.seconds = static_cast<double>(MonotonicNow_ns() - begin_ns) * 1e-9;
      if (HasEnded(tree, one.vm)) {
        Note(absl::StrCat(LabelOf(one.vm), " has ended"));
        one.goes_on = false;
      } else if (!status.ok()) {
        Note(absl::StrCat(LabelOf(one.vm), ": ", status.message()));
        // Another client of QMP may go away.
        one.goes_on = absl::IsUnavailable(status);
      }
    }
  }
  for (const SampledVm& one : all) {
    if (absl::Status status = one.sampler->Stop(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<hotspots::VcpuHotspots> HotspotsOf(const SampledVm& one,
                                               const hotspots::GuestKernel& kernel, bool guest_code,
                                               bool callers) {
  const auto code =
      guest_code ? ReadCode(one) : std::vector<std::vector<kvm::GuestCode>>(one.vm.vcpus.size());
  std::vector<hotspots::VcpuHotspots> vcpus =
      VcpusOf(one, code, Placed(one, code, kernel), callers);
  const std::string why = NoCallers(one, vcpus, !kernel.code.empty());
  if (!why.empty()) Note(why);
  return vcpus;
}

}  // namespace vcpulse::tools
