#include "monitor/recorder/session_record.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/time/time.h"
#include "kvm/counter_group.h"
#include "kvm/errno_advice.h"
#include "monitor/core/verdict_window.h"

namespace vcpulse::recorder {
namespace {

// Long enough for a TSC rate within 0.1 %.
constexpr absl::Duration kTscSpan = absl::Milliseconds(5);

bool OpensForGuests(kvm::PerfEvents& perf, const kvm::Event& event) {
  perf_event_attr attr = kvm::AttrOf(event, /*leader=*/true);
  return perf.Open(attr, /*tid=*/0, /*group_fd=*/-1).ok();
}

int64_t Now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

ResidencyBasisFound FindResidencyBasis(kvm::PerfEvents& perf, const std::string& root,
                                       bool force_mediated_vpmu) {
  ResidencyBasisFound found;
  if (!force_mediated_vpmu) found.no_counters_reason = kvm::MediatedVpmuObstacle(root);
  if (!found.no_counters_reason.empty()) return found;
  const kvm::OrErrno<double> probed = kvm::ProbeCycleHz(perf);
  if (!probed.ok()) {
    found.no_counters_reason =
        probed.error == ENODATA
            ? "the cycle counter opens but does not count on this host"
            : kvm::AdviseOnOpenFailure({.error = probed.error,
                                        .event = "cycles",
                                        .tid = 0,
                                        .paranoid = kvm::PerfEventParanoid(root),
                                        .owner = ""});
    return found;
  }
  found.basis.max_hz = std::max(probed.value, kvm::CpufreqMaxHz(root).value_or(0));
  found.method = v1::RESIDENCY_METHOD_MAX_FREQUENCY;
  if (OpensForGuests(perf, kvm::EventsOf(kvm::EventSet::kFull).back())) {  // ref-cycles
    found.basis.tsc_hz = kvm::MeasureTscHz(kTscSpan);
    if (found.basis.tsc_hz) found.method = v1::RESIDENCY_METHOD_REF_CYCLES;
  }
  return found;
}

v1::Session MakeSession(const kvm::HostFacts& host, const SessionFacts& facts) {
  v1::Session session;
  session.set_stream_id(facts.stream_id.data(), facts.stream_id.size());
  session.set_tool_version(facts.tool_version);
  session.set_host_name(host.host_name);
  session.set_boot_id(host.boot_id);
  session.set_kernel_release(host.kernel_release);
  session.set_machine(host.machine);
  session.set_cpu_model(host.cpu_model);
  session.set_online_cpus(host.online_cpus);
  session.set_interval_ns(static_cast<uint64_t>(facts.interval_ns));
  session.set_verdict_window_ns(
      static_cast<uint64_t>(std::max(facts.interval_ns, core::kShortestVerdict_ns)));
  session.set_residency_method(facts.residency.method);
  session.set_tsc_hz(facts.residency.basis.tsc_hz.value_or(0));
  session.set_max_hz(facts.residency.basis.max_hz.value_or(0));
  session.set_scheduling(facts.realtime ? v1::SCHEDULING_FIFO : v1::SCHEDULING_NORMAL);
  session.set_timer_slack_ns(1);
  session.set_degraded_reason(facts.residency.no_counters_reason);
  v1::ClassifierSettings& classifier = *session.mutable_classifier();
  classifier.set_name("ipc-bands");
  classifier.set_halted_enter(facts.thresholds.halted_enter);
  classifier.set_halted_leave(facts.thresholds.halted_leave);
  classifier.set_spinning_below(facts.thresholds.spinning_below);
  classifier.set_productive_from(facts.thresholds.productive_from);
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
  set.set_event_set(std::string(kvm::ToString(opened.set)));
  for (const kvm::Event& event : opened.events) set.add_events(event.name);
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

v1::ClockSnapshot TakeClockSnapshot() {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(Now_ns(CLOCK_MONOTONIC));
  clock.set_boottime_ns(Now_ns(CLOCK_BOOTTIME));
  clock.set_realtime_ns(Now_ns(CLOCK_REALTIME));
  return clock;
}

}  // namespace vcpulse::recorder
