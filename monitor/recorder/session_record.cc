#include "monitor/recorder/session_record.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/group_layout.h"
#include "kvm/events/event_sets.h"
#include "monitor/core/delta.h"
#include "monitor/replay/recorded_settings.h"

namespace vcpulse::recorder {
namespace {

// Long enough for a TSC rate within 0.1 %.
constexpr absl::Duration kTscSpan = absl::Milliseconds(20);

bool OpensForGuests(kvm::PerfEvents& perf, const kvm::Event& event) {
  perf_event_attr attr = kvm::AttrOf(event, /*leader=*/true);
  return perf.Open(attr, /*tid=*/0, /*group_fd=*/-1).ok();
}

void AddGroups(const kvm::OpenedGroups& opened, v1::VcpuSet& set) {
  set.set_event_set(opened.set);
  const kvm::GroupLayout& main = opened.layout.front();
  set.set_pmu(main.pmu);
  for (const kvm::Event& event : main.events) set.add_events(event.name);
  for (const kvm::GroupLayout& group : std::span(opened.layout).subspan(1)) {
    v1::EventGroup& out = *set.add_further_groups();
    out.set_pmu(group.pmu);
    for (const kvm::Event& event : group.events) out.add_events(event.name);
  }
  if (opened.core_pmus > 1) set.set_core_pmus(static_cast<uint32_t>(opened.core_pmus));
  for (const kvm::GroupLayout& group : opened.layout) {
    for (const kvm::Event& event : group.events) {
      if (event.host_side) set.add_host_side_events(event.name);
    }
  }
}

}  // namespace

ResidencyBasisFound FindResidencyBasis(kvm::PerfEvents& perf, const std::string& root,
                                       std::span<const kvm::Pmu> core_pmus,
                                       bool force_mediated_vpmu) {
  ResidencyBasisFound found;
  if (!force_mediated_vpmu) found.no_counters_reason = kvm::MediatedVpmuObstacle(root);
  if (!found.no_counters_reason.empty()) return found;

  // On a hybrid host this thread ran on one PMU's cores: the others' rates come from cpufreq alone.
  const auto cycles = kvm::LayoutOf(kvm::EventsOf(kvm::EventSet::kCycles), core_pmus);
  int error = 0;
  bool counted = false;
  found.bases.assign(cycles.size(), {});
  for (size_t pmu = 0; pmu < cycles.size(); ++pmu) {
    const kvm::OrErrno<double> probed = kvm::ProbeCycleHz(perf, cycles[pmu].events.front());
    counted = counted || probed.ok();
    if (!probed.ok() && (error == 0 || error == ENODATA)) error = probed.error;
    const std::span<const int> cpus =
        cycles.size() > 1 ? std::span<const int>(core_pmus[pmu].cpus) : std::span<const int>();
    const double hz = std::max(probed.value, kvm::CpufreqMaxHz(root, cpus).value_or(0));
    if (hz > 0) found.bases[pmu].max_hz = hz;
  }
  if (!counted) {
    found.bases = {{}};
    found.no_counters_reason =
        error == ENODATA ? "the cycle counter opens but does not count on this host"
                         : kvm::AdviseOnOpenFailure({.error = error,
                                                     .event = "cycles",
                                                     .tid = 0,
                                                     .paranoid = kvm::PerfEventParanoid(root),
                                                     .owner = ""});
    return found;
  }
  found.method = v1::RESIDENCY_METHOD_MAX_FREQUENCY;
  const auto full = kvm::EventsOf(kvm::EventSet::kFull);
  const auto ref_cycles = std::ranges::find(full, "ref-cycles", &kvm::Event::name);
  if (ref_cycles != full.end() && OpensForGuests(perf, *ref_cycles)) {
    const std::optional<double> tsc_hz = kvm::MeasureTscHz(kTscSpan);
    for (core::ResidencyBasis& basis : found.bases) basis.tsc_hz = tsc_hz;
    if (tsc_hz) found.method = v1::RESIDENCY_METHOD_REF_CYCLES;
  }
  return found;
}

v1::Session MakeSession(const kvm::HostFacts& host, const SessionFacts& facts) {
  v1::Session session;
  session.set_stream_id(facts.stream_id.data(), facts.stream_id.size());
  session.set_tool_version(facts.tool_version);
  session.set_host_name(host.host_name);
  session.set_agent_id(facts.identity.agent_id);
  for (const HostIdentity::Label& label : facts.identity.labels) {
    v1::Label& out = *session.add_labels();
    out.set_key(label.key);
    out.set_value(label.value);
  }
  session.set_boot_id(host.boot_id);
  session.set_kernel_release(host.kernel_release);
  session.set_machine(host.machine);
  session.set_cpu_model(host.cpu_model);
  session.set_online_cpus(host.online_cpus);
  for (const std::optional<uint32_t> node : host.cpu_nodes) {
    session.add_cpu_nodes(node ? *node + 1 : 0);
  }
  for (const std::optional<uint32_t> core : host.cpu_cores) {
    session.add_cpu_cores(core ? *core + 1 : 0);
  }
  session.set_interval_ns(static_cast<uint64_t>(facts.interval_ns));
  session.set_verdict_window_ns(
      static_cast<uint64_t>(std::max(facts.interval_ns, core::kShortestVerdict_ns)));
  session.set_residency_method(facts.residency.method);
  session.set_residency_blind_spot(std::string(replay::BlindSpotOf(facts.residency.method)));
  const core::ResidencyBasis& basis = facts.residency.bases.front();
  session.set_tsc_hz(basis.tsc_hz.value_or(0));
  session.set_max_hz(basis.max_hz.value_or(0));
  session.set_reader(facts.reader);
  session.set_no_bpf_reason(facts.no_bpf_reason);
  if (facts.core_pmus.size() > 1) {
    for (const kvm::Pmu& pmu : facts.core_pmus) session.add_core_pmus(pmu.name);
    for (const core::ResidencyBasis& other : std::span(facts.residency.bases).subspan(1)) {
      session.add_further_max_hz(other.max_hz.value_or(0));
    }
  }
  session.set_scheduling(facts.realtime ? v1::SCHEDULING_FIFO : v1::SCHEDULING_NORMAL);
  session.set_timer_slack_ns(1);
  session.set_degraded_reason(facts.residency.no_counters_reason);
  replay::SetClassifier(facts.classifier, facts.profile, facts.profile_name, session);
  return session;
}

v1::VmInstance MakeVmInstance(const kvm::Vm& vm) {
  v1::VmInstance instance;
  instance.set_pid(static_cast<uint32_t>(vm.pid));
  instance.set_start_time_ticks(vm.start_time_ticks);
  instance.set_name(vm.name);
  instance.set_uuid(vm.uuid);
  return instance;
}

v1::VcpuSet MakeVcpuSet(uint32_t vm_number, uint32_t epoch, int64_t mono_ns, const kvm::Vm& vm,
                        const kvm::OpenedGroups& opened) {
  v1::VcpuSet set;
  set.set_vm(vm_number);
  set.set_epoch(epoch);
  set.set_mono_ns(mono_ns);
  *set.mutable_instance() = MakeVmInstance(vm);
  for (const kvm::Vcpu& vcpu : opened.vcpus) {
    v1::Vcpu& out = *set.add_vcpus();
    out.set_index(static_cast<uint32_t>(vcpu.index));
    if (vcpu.kvm_id) out.set_kvm_id(static_cast<uint32_t>(*vcpu.kvm_id));
    out.set_tid(static_cast<uint32_t>(vcpu.tid));
    out.set_start_time_ticks(vcpu.start_time_ticks);
    out.set_found_by(std::string(kvm::ToString(vcpu.found_by)));
    out.set_proof(std::string(kvm::ToString(vcpu.proof)));
  }
  AddGroups(opened, set);
  for (const kvm::AbsentEvent& absent : opened.absent) {
    v1::AbsentEvent& out = *set.add_absent_events();
    out.set_event(absent.name);
    out.set_error(absent.error);
    out.set_reason(absent.reason);
  }
  for (const kvm::UnopenedVcpu& unopened : opened.unopened) {
    v1::UnopenedVcpu& out = *set.add_unopened_vcpus();
    out.set_index(static_cast<uint32_t>(unopened.vcpu.index));
    out.set_tid(static_cast<uint32_t>(unopened.vcpu.tid));
    out.set_error(unopened.error);
    out.set_reason(unopened.reason);
  }
  for (const std::string& note : vm.notes) set.add_notes(note);
  return set;
}

}  // namespace vcpulse::recorder
