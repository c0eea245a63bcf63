#pragma once

// Which of the values that KVM keeps of each vCPU are read (arch/*/include/asm/kvm_host.h,
// KVM_GENERIC_VCPU_STATS). No kernel has all of them.

#include <array>
#include <string_view>

namespace vcpulse::kvm {

inline constexpr std::array<std::string_view, 20> kKvmStatNames = {
    "exits",
    "signal_exits",
    // x86. io_exits and mmio_exits leave to the VMM; hypercalls are the guest's own.
    "halt_exits",
    "io_exits",
    "mmio_exits",
    "irq_exits",
    "hypercalls",
    "preemption_reported",
    // arm64.
    "wfi_exit_stat",
    "wfe_exit_stat",
    "hvc_exit_stat",
    "mmio_exit_user",
    "mmio_exit_kernel",
    // Halt polling; the times are booked when it ends.
    "halt_attempted_poll",
    "halt_successful_poll",
    "halt_wakeup",
    "halt_poll_success_ns",
    "halt_poll_fail_ns",
    "halt_wait_ns",
    "halt_poll_invalid",
};

}  // namespace vcpulse::kvm
