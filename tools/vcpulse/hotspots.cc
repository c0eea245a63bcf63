// `vcpulse hotspots`: which code of a guest runs, sampled from the host.
#include "monitor/hotspots/hotspots.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "kvm/counters/perf_events.h"
#include "kvm/discovery/discovery.h"
#include "kvm/hotspots/address_sampler.h"
#include "monitor/hotspots/symbols.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/target_options.h"

namespace vcpulse::tools {
namespace {

struct HotspotsOptions {
  live::Target target;
  std::vector<uint32_t> vcpus;  // indexes; none: all
  std::string duration = "1s";
  std::string source = "auto";
  uint64_t frequency_hz = 499;
  std::string symbols;  // a file
  std::string kaslr_offset;
  size_t top = 10;
  bool json = false;
  bool folded = false;
  bool force_mediated_vpmu = false;
};

absl::StatusOr<hotspots::Symbols> ReadSymbols(const HotspotsOptions& options) {
  if (options.symbols.empty()) return hotspots::Symbols();
  std::ifstream file(options.symbols, std::ios::binary);
  if (!file) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", options.symbols));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", options.symbols));
  absl::StatusOr<hotspots::Symbols> symbols = hotspots::Symbols::Parse(text);
  if (!symbols.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.symbols, ": ", symbols.status().message()));
  }
  if (!options.kaslr_offset.empty()) {
    const bool has_prefix = options.kaslr_offset.starts_with("0x");
    const auto offset = ParseNumber<uint64_t>(
        std::string_view(options.kaslr_offset).substr(has_prefix ? 2 : 0), 16);
    if (!offset) {
      return absl::InvalidArgumentError(absl::StrCat("--guest-kaslr-offset '", options.kaslr_offset,
                                                     "': a number of up to 16 hexadecimal digits"));
    }
    symbols->Move(*offset);
  }
  return symbols;
}

// Those that were asked for, with the vCPUs that were asked for.
absl::StatusOr<std::vector<kvm::Vm>> FindVms(const HotspotsOptions& options) {
  absl::StatusOr<std::vector<kvm::Vm>> vms =
      live::Find(kvm::Discovery(options.target.root), options.target);
  if (!vms.ok()) return vms.status();
  if (vms->size() == 1 && vms->front().vcpus.empty() && !vms->front().notes.empty()) {
    return absl::NotFoundError(absl::StrCat("VM ", vms->front().name, " (PID ", vms->front().pid,
                                            "): ", vms->front().notes.front()));
  }
  std::erase_if(*vms, [](const kvm::Vm& vm) { return !live::IsUsable(vm); });
  for (kvm::Vm& vm : *vms) {
    std::erase_if(vm.vcpus, [&options](const kvm::Vcpu& vcpu) {
      return !options.vcpus.empty() &&
             std::ranges::find(options.vcpus, static_cast<uint32_t>(vcpu.index)) ==
                 options.vcpus.end();
    });
  }
  std::erase_if(*vms, [](const kvm::Vm& vm) { return vm.vcpus.empty(); });
  if (!vms->empty()) return vms;
  return absl::NotFoundError(options.vcpus.empty()
                                 ? "no KVM guest with known vCPU threads was found"
                                 : "no KVM guest has a vCPU of that number (`vcpulse list`)");
}

constexpr uint64_t kMostHz = 10'000;
constexpr int64_t kCollectPeriod_ns = 100'000'000;

using Samplers = std::vector<std::unique_ptr<kvm::AddressSampler>>;

// For so long, or until a signal.
absl::Status Sample(const Samplers& samplers, absl::Duration duration) {
  StopWaitsOnSignals();
  for (const auto& sampler : samplers) {
    if (absl::Status status = sampler->Start(); !status.ok()) return status;
  }
  const int64_t end_ns = MonotonicNow_ns() + absl::ToInt64Nanoseconds(duration);
  absl::Status status;
  while (status.ok() && !WasStopped() && MonotonicNow_ns() < end_ns) {
    static_cast<void>(WaitUntil(std::min(MonotonicNow_ns() + kCollectPeriod_ns, end_ns)));
    for (const auto& sampler : samplers) status.Update(sampler->Collect());
  }
  for (const auto& sampler : samplers) status.Update(sampler->Stop());
  return status;
}

// What the numbers do not say by themselves.
void SayLimits(const std::vector<hotspots::VcpuHotspots>& vcpus, bool has_symbols) {
  bool none_by_exit = false;
  bool none_named = has_symbols;
  bool any_kernel = false;
  bool is_intrusive = false;
  for (const hotspots::VcpuHotspots& vcpu : vcpus) {
    none_by_exit =
        none_by_exit || (vcpu.samples == 0 && vcpu.source == kvm::AddressSource::kKvmExit);
    is_intrusive = is_intrusive || vcpu.source == kvm::AddressSource::kQmp;
    for (const hotspots::Spot& spot : vcpu.spots) {
      any_kernel = any_kernel || spot.mode == kvm::GuestMode::kKernel;
      none_named = none_named && !spot.named;
    }
  }
  if (none_by_exit) {
    Note(
        "no sample by kvm-exit: the vCPU was halted, or this KVM does not pass kvm:kvm_exit (a KVM "
        "that emulates its guests); --source qmp needs neither");
  }
  if (is_intrusive) Note("qmp stops the vCPUs for a moment with each sample");
  if (any_kernel && none_named) {
    Note(
        "no address of the guest's kernel lies in the symbols: they are another kernel's, or it "
        "was "
        "loaded elsewhere (KASLR): take /proc/kallsyms of this boot, or give "
        "--guest-kaslr-offset");
  }
}

int RunHotspots(const HotspotsOptions& options) {
  absl::Duration duration;
  if (!absl::ParseDuration(options.duration, &duration) || duration < absl::Milliseconds(10) ||
      duration > absl::Hours(1)) {
    return Fail(absl::StrCat("--duration '", options.duration, "': from 10ms to 1h, such as 1s"));
  }
  const std::optional<kvm::AddressSource> source = kvm::FindAddressSource(options.source);
  if (!source && options.source != "auto") {
    return Fail(
        absl::StrCat("--source '", options.source, "': known are auto, cycles, kvm-exit, qmp"));
  }
  if (options.frequency_hz < 1 || options.frequency_hz > kMostHz) {
    return Fail(absl::StrCat("--frequency ", options.frequency_hz, ": from 1 to ", kMostHz, " Hz"));
  }
  if (absl::Status status = CheckRoot(options.target.root); !status.ok()) return Fail(status);
  if (absl::Status status = CheckPidsAreOurs(options.target.root); !status.ok()) {
    return Fail(status);
  }
  const absl::StatusOr<hotspots::Symbols> symbols = ReadSymbols(options);
  if (!symbols.ok()) return Fail(symbols.status());
  const absl::StatusOr<std::vector<kvm::Vm>> vms = FindVms(options);
  if (!vms.ok()) return Fail(vms.status());

  kvm::KernelPerfEvents perf;
  Samplers samplers;
  for (const kvm::Vm& vm : *vms) {
    auto sampler = kvm::AddressSampler::Open(perf, vm,
                                             {.root = options.target.root,
                                              .source = source,
                                              .frequency_hz = options.frequency_hz,
                                              .force_mediated_vpmu = options.force_mediated_vpmu});
    if (!sampler.ok()) return Fail(sampler.status());
    samplers.push_back(*std::move(sampler));
  }
  const int64_t begin_ns = MonotonicNow_ns();
  if (absl::Status status = Sample(samplers, duration); !status.ok()) return Fail(status);
  const double seconds = static_cast<double>(MonotonicNow_ns() - begin_ns) * 1e-9;

  std::vector<hotspots::VcpuHotspots> all;
  for (size_t i = 0; i < vms->size(); ++i) {
    const kvm::Vm& vm = (*vms)[i];
    for (size_t v = 0; v < vm.vcpus.size(); ++v) {
      const kvm::AddressCounts& counts = samplers[i]->counts()[v];
      all.push_back({.vm = vm.name,
                     .pid = vm.pid,
                     .vcpu = vm.vcpus[v].index,
                     .source = samplers[i]->source(),
                     .seconds = seconds,
                     .samples = counts.Samples(),
                     .lost = counts.lost,
                     .spots = hotspots::SpotsOf(counts, *symbols)});
    }
  }
  SayLimits(all, !symbols->empty());
  return WriteStdout(options.json ? hotspots::JsonOf(all)
                     : options.folded
                         ? hotspots::FoldedOf(all)
                         : hotspots::TextOf(all, options.top > 0 ? options.top : SIZE_MAX));
}

}  // namespace

void AddHotspotsCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<HotspotsOptions>();
  CLI::App* command =
      app.add_subcommand("hotspots", "Sample which code of a guest runs, by function or address");
  AddTargetOptions(*command, options->target);
  command->remove_option(command->get_option("--all"));
  command->add_option("--vcpu", options->vcpus, "only the vCPUs with these indexes")
      ->type_name("N[,N...]")
      ->delimiter(',');
  command->add_option("-d,--duration", options->duration, "sample for this long [1s]")
      ->type_name("DURATION");
  command
      ->add_option("--source", options->source,
                   "guest-cycle overflows (needs a PMU), exits by host interrupts (needs root), or "
                   "QMP's `info registers`; auto takes the first available [auto]")
      ->type_name("auto|cycles|kvm-exit|qmp");
  command
      ->add_option("-F,--frequency", options->frequency_hz,
                   "samples per second of guest time, for cycles [499]")
      ->type_name("HZ");
  CLI::Option* const kallsyms =
      command
          ->add_option("--guest-kallsyms,--guestkallsyms", options->symbols,
                       "/proc/kallsyms of the running guest, read there as root")
          ->type_name("FILE");
  command
      ->add_option("--guest-system-map,--guest-map", options->symbols,
                   "System.map of the guest's kernel")
      ->type_name("FILE")
      ->excludes(kallsyms);
  command
      ->add_option("--guest-kaslr-offset", options->kaslr_offset,
                   "load address of the guest's kernel minus its address in FILE [0]")
      ->type_name("HEX");
  command->add_option("--top", options->top, "lines per vCPU, 0: all [10]")->type_name("N");
  CLI::Option* const json =
      command->add_flag("--json", options->json, "print one JSON object with all locations");
  command->add_flag("--folded", options->folded, "print folded stacks, one frame deep")
      ->excludes(json);
  command->add_flag("--force-mediated-vpmu", options->force_mediated_vpmu,
                    "sample cycles although KVM runs with a mediated vPMU (VMs may fail to start)");
  command->footer(
      "Examples:\n"
      "  vcpulse hotspots --vm web --vcpu 3\n"
      "  vcpulse hotspots --vm web --guest-kallsyms web.kallsyms --folded | flamegraph.pl\n"
      "\n"
      "Exit status:\n"
      "  0  the guests were sampled, also where no sample came\n"
      "  2  usage or run-time error");
  command->callback([options, &exit_code] { exit_code = RunHotspots(*options); });
}

}  // namespace vcpulse::tools
