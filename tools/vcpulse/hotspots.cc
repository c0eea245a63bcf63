// `vcpulse hotspots`: which code of a guest runs, sampled from the host.
#include "monitor/hotspots/hotspots.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "kvm/discovery/discovery.h"
#include "kvm/hotspots/address_sampler.h"
#include "monitor/hotspots/pprof.h"
#include "monitor/hotspots/recorded_hotspots.h"
#include "monitor/hotspots/symbols.h"
#include "monitor/reading/labels.h"
#include "monitor/reading/part.h"
#include "monitor/report/text_format.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/part_options.h"
#include "tools/vcpulse/sampled_vm.h"
#include "tools/vcpulse/target_options.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

struct HotspotsOptions {
  std::string file;  // a timeline; empty: guests are sampled now
  live::Target target;
  std::vector<uint32_t> vcpus;  // indexes; none: all
  std::string duration = "1s";
  std::string source = "auto";
  uint64_t frequency_hz = 499;
  SymbolOptions symbols;
  uint32_t top = 10;
  bool json = false;
  bool folded = false;
  bool pprof = false;
  PartOptions part;  // of the file
  bool guest_code = false;
  bool callers = false;
  bool force_mediated_vpmu = false;
};

constexpr uint64_t kMostHz = 10'000;
constexpr char kCallersNeedQmp[] =
    "--callers needs --source qmp: no other source has registers and stack";

// Those that were asked for, with the vCPUs that were asked for: each VM that has one of them.
absl::StatusOr<std::vector<kvm::Vm>> FindVms(const HotspotsOptions& options) {
  absl::StatusOr<std::vector<kvm::Vm>> vms =
      live::Find(kvm::Discovery(options.target.root), options.target);
  if (!vms.ok()) return vms.status();
  for (const kvm::Vm& vm : *vms) {
    for (const std::string& note : vm.notes) Note(absl::StrCat(LabelOf(vm), ": ", note));
  }
  std::erase_if(*vms, [](const kvm::Vm& vm) { return !live::IsUsable(vm); });
  if (vms->empty()) return absl::NotFoundError("no KVM guest with known vCPU threads was found");
  if (options.vcpus.empty()) return vms;
  std::set<uint32_t> missing(options.vcpus.begin(), options.vcpus.end());
  for (kvm::Vm& vm : *vms) {
    std::erase_if(vm.vcpus, [&](const kvm::Vcpu& vcpu) {
      const auto index = static_cast<uint32_t>(vcpu.index);
      missing.erase(index);
      return std::ranges::find(options.vcpus, index) == options.vcpus.end();
    });
  }
  std::erase_if(*vms, [](const kvm::Vm& vm) { return vm.vcpus.empty(); });
  if (missing.empty()) return vms;
  return absl::NotFoundError(
      absl::StrCat("--vcpu: no vCPU ", *missing.begin(), " was found (`vcpulse list`)"));
}

// What the numbers do not say by themselves.
void SayLimits(const std::vector<hotspots::VcpuHotspots>& vcpus, bool has_symbols, bool is_live) {
  bool none_by_exit = false;
  bool none_by_cycles = false;
  bool none_fits = has_symbols;
  bool any_sample = false;
  bool is_intrusive = false;
  for (const hotspots::VcpuHotspots& vcpu : vcpus) {
    none_by_exit |= vcpu.samples == 0 && vcpu.source == kvm::AddressSource::kKvmExit;
    none_by_cycles |= vcpu.samples == 0 && vcpu.source == kvm::AddressSource::kCycles;
    is_intrusive |= vcpu.source == kvm::AddressSource::kQmp;
    none_fits &= vcpu.samples == 0 || hotspots::NoSymbolFits(vcpu);
    any_sample |= vcpu.samples > 0;
  }
  if (none_by_exit) {
    Note(
        "a vCPU has no sample by kvm-exit: it was halted, or this KVM does not pass kvm:kvm_exit "
        "(a KVM that emulates its guests); QMP needs neither (--qmp with --source qmp, or with "
        "`record --hotspots-source qmp`)");
  }
  if (none_by_cycles) {
    Note(
        "a vCPU has no sample by cycles: it was halted, or the PMU does not count its guest "
        "(`vcpulse doctor --prove`)");
  }
  if (is_live && is_intrusive) Note("qmp stops the vCPUs for a moment with each sample");
  if (any_sample && none_fits) {
    Note(
        "no kernel-mode address lies in the symbols: they are another kernel's or another boot's "
        "(KASLR), or the guest is still in its firmware; with --guest-code and a vmlinux "
        "`hotspots`, and afterwards `symbolize`, find by how much it was moved");
  }
}

int Print(const HotspotsOptions& options, const std::vector<hotspots::VcpuHotspots>& vcpus) {
  return WriteStdout(options.json    ? hotspots::JsonOf(vcpus)
                     : options.pprof ? hotspots::PprofOf(vcpus)
                     : options.folded
                         ? hotspots::FoldedOf(vcpus)
                         : hotspots::TextOf(vcpus, options.top > 0 ? options.top : SIZE_MAX));
}

// Those that `record --hotspots` kept.
int PrintRecorded(const HotspotsOptions& options) {
  const absl::StatusOr<hotspots::GuestKernels> symbols = ReadSymbols(options.symbols);
  if (!symbols.ok()) return Fail(symbols.status());
  const absl::StatusOr<reading::Part> part = ParsePart(options.part);
  if (!part.ok()) return Fail(part.status());
  hotspots::RecordedHotspots recorded;
  bool any_tick = false;
  const auto read = reading::ReadPart(options.file, *part, [&](const timeline::Entry& entry) {
    any_tick = any_tick || std::holds_alternative<timeline::TickEntry>(entry.record);
    recorded.Add(entry);
    return absl::OkStatus();
  });
  if (!read.ok()) return Fail(ReadFailure(read.status(), options.file));
  const bool is_part = part->from_ns || part->to_ns || part->phase;
  if (is_part && !any_tick && read->read.damages.empty()) {
    return Fail(absl::StrCat(NameOf(options.file), ": ", NothingInPart(options.part)));
  }
  Warn(options.file, report::DescribeLoss(read->read, 0, part->to_ns || read->read.ended_in_order));
  std::map<uint32_t, const v1::VmInstance*> vms;
  std::vector<std::string> names;
  for (const auto& [number, instance] : recorded.vms()) {
    vms[number] = &instance;
    names.push_back(instance.name());
  }
  const std::string unknown = UnknownVms(*symbols, names);
  if (!unknown.empty()) Note(unknown);
  std::vector<uint32_t> meant;
  if (options.target.vm.empty()) {
    for (const auto& [number, unused] : vms) meant.push_back(number);
  } else {
    meant = reading::VmsMeant(options.target.vm, vms);
    if (meant.empty()) {
      return Fail(
          absl::StrCat(NameOf(options.file), ": --vm: no VM '", Printable(options.target.vm), "'"));
    }
  }
  std::vector<hotspots::VcpuHotspots> vcpus;
  std::string refused;
  for (const uint32_t vm : meant) {
    std::ranges::move(recorded.All(*symbols, vm), std::back_inserter(vcpus));
    if (refused.empty()) refused = Printable(recorded.Refused(vm).value_or(""));
  }
  if (!options.vcpus.empty()) {
    std::erase_if(vcpus, [&](const hotspots::VcpuHotspots& vcpu) {
      return std::ranges::count(options.vcpus, static_cast<uint32_t>(vcpu.vcpu)) == 0;
    });
  }
  if (vcpus.empty()) {
    return Fail(absl::StrCat(
        NameOf(options.file), ": holds no hot addresses of what is meant: ",
        !refused.empty() ? refused
        : is_part ? "no window has its middle in that part (one lasts a second, and a vCPU has the "
                    "next ten seconds later)"
                  : "none were asked for (`record --hotspots`), or no vCPU was spinning or starved "
                    "for 200 ms"));
  }
  if (!refused.empty()) Note(absl::StrCat("a VM was not sampled: ", refused));
  SayLimits(vcpus, !symbols->empty(), false);
  return Print(options, vcpus);
}

int RunHotspots(const HotspotsOptions& options) {
  if (options.pprof && isatty(STDOUT_FILENO) == 1) {
    return Fail("--pprof: standard output is a terminal, and a profile is binary: redirect it");
  }
  if (!options.file.empty()) return PrintRecorded(options);
  const absl::StatusOr<absl::Duration> duration = ParseTimeOption("--duration", options.duration);
  if (!duration.ok()) return Fail(duration.status());
  const auto source = ParseAddressSource("--source", options.source);
  if (!source.ok()) return Fail(source.status());
  if (options.guest_code && options.target.qmp.empty()) return Fail(kGuestCodeNeedsQmp);
  if (options.callers && *source != kvm::AddressSource::kQmp) return Fail(kCallersNeedQmp);
  if (options.frequency_hz != HotspotsOptions().frequency_hz && *source &&
      **source != kvm::AddressSource::kCycles) {
    return Fail("--frequency is that of --source cycles");
  }
  if (options.frequency_hz < 1 || options.frequency_hz > kMostHz) {
    return Fail(absl::StrCat("--frequency ", options.frequency_hz, ": from 1 to ", kMostHz, " Hz"));
  }
  if (absl::Status status = CheckRoot(options.target.root); !status.ok()) return Fail(status);
  if (absl::Status status = CheckPidsAreOurs(options.target.root); !status.ok()) {
    return Fail(status);
  }
  const absl::StatusOr<hotspots::GuestKernels> symbols = ReadSymbols(options.symbols);
  if (!symbols.ok()) return Fail(symbols.status());
  const absl::StatusOr<std::vector<kvm::Vm>> vms = FindVms(options);
  if (!vms.ok()) return Fail(vms.status());
  std::vector<std::string> names;
  for (const kvm::Vm& vm : *vms) names.push_back(vm.name);
  if (const std::string unknown = UnknownVms(*symbols, names); !unknown.empty()) Note(unknown);
  absl::StatusOr<std::vector<SampledVm>> all =
      OpenSamplers(*vms, {.root = options.target.root,
                          .source = *source,
                          .frequency_hz = options.frequency_hz,
                          .force_mediated_vpmu = options.force_mediated_vpmu,
                          .stacks = options.callers});
  if (!all.ok()) return Fail(all.status());
  if (absl::Status status = Sample(*all, *duration, options.target.root); !status.ok()) {
    return Fail(status);
  }
  std::vector<hotspots::VcpuHotspots> vcpus;
  for (const SampledVm& one : *all) {
    std::ranges::move(
        HotspotsOf(one, symbols->Of(one.vm.name), options.guest_code, options.callers),
        std::back_inserter(vcpus));
  }
  SayLimits(vcpus, !symbols->empty(), true);
  return Print(options, vcpus);
}

}  // namespace

void AddHotspotsCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<HotspotsOptions>();
  CLI::App* command =
      app.add_subcommand("hotspots", "Sample which code of a guest runs, by function or address");
  CLI::Option* const file =
      command
          ->add_option("FILE", options->file,
                       "print what `record --hotspots` kept in this timeline or folder of its "
                       "parts; - is standard input [sample now]")
          ->type_name("");
  AddTargetOptions(*command, options->target);
  command->remove_option(command->get_option("--all"));
  command->add_option("--vcpu", options->vcpus, "only the vCPUs with these indexes")
      ->type_name("N[,N...]")
      ->delimiter(',')
      ->allow_extra_args(false);
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
  AddSymbolOptions(*command, options->symbols);
  command->add_option("--top", options->top, "lines per vCPU, 0: all [10]")->type_name("N");
  CLI::Option* const json =
      command->add_flag("--json", options->json, "print one JSON object with all locations");
  CLI::Option* const folded =
      command
          ->add_flag("--folded", options->folded,
                     "print folded stacks, one frame deep without --callers")
          ->excludes(json);
  command
      ->add_flag("--pprof", options->pprof,
                 "write a profile for pprof, one frame deep without --callers")
      ->excludes(json)
      ->excludes(folded);
  AddPartOptions(*command, options->part);
  for (const char* const part : {"--from", "--until", "--phase"}) {
    command->get_option(part)->needs(file);
  }
  command->add_flag("--guest-code", options->guest_code,
                    "read the code around the hottest addresses from the guest's memory (by QMP: "
                    "needs --qmp), which tells whether it waits in place");
  command->add_flag("--callers", options->callers,
                    "read each vCPU's stack, too, and name the functions that called (best effort; "
                    "needs --source qmp, and for x86 guests --guest-vmlinux)");
  command->add_flag("--force-mediated-vpmu", options->force_mediated_vpmu,
                    "sample cycles although KVM runs with a mediated vPMU (VMs may fail to start)");
  for (const char* const live :
       {"--pid", "--qmp", "--tid", "--root", "--duration", "--source", "--frequency",
        "--guest-code", "--callers", "--force-mediated-vpmu"}) {
    file->excludes(command->get_option(live));
  }
  command->footer(
      "Examples:\n"
      "  vcpulse hotspots --vm web --vcpu 3\n"
      "  vcpulse hotspots web.vpt --guest-symbols web=web.kallsyms\n"
      "  vcpulse hotspots --vm web --guest-kallsyms web.kallsyms --folded | flamegraph.pl\n"
      "  vcpulse hotspots web.vpt --phase body --pprof > web.pb\n"
      "\n"
      "Exit status:\n"
      "  0  the guests were sampled, also where no sample came; FILE has hot addresses\n"
      "  2  usage or run-time error; FILE has none");
  command->callback([options, &exit_code] { exit_code = RunHotspots(*options); });
}

}  // namespace vcpulse::tools
