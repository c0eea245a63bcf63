#include <asm/kvm.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "kvm/microguest/architecture.h"

namespace vcpulse::kvm::microguest {
namespace {

absl::Status Set(int vcpu_fd, uint64_t id, uint64_t value) {
  kvm_one_reg one{.id = id, .addr = reinterpret_cast<uint64_t>(&value)};
  if (ioctl(vcpu_fd, KVM_SET_ONE_REG, &one) != 0) {
    return absl::ErrnoToStatus(errno, "KVM_SET_ONE_REG");
  }
  return absl::OkStatus();
}

constexpr uint64_t Core(size_t offset) {  // in kvm_regs, bytes
  return KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | offset / sizeof(uint32_t);
}

constexpr uint64_t General(size_t number) {
  return Core(offsetof(kvm_regs, regs.regs) + number * sizeof(uint64_t));
}

constexpr uint64_t kVectors = 0;  // sixteen exception vectors, below the page tables

}  // namespace

// Some CPUs have less than the 40 bits of guest-physical address that 0 stands for.
unsigned long VmType(int kvm_fd) {
  const int most = ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_ARM_VM_IPA_SIZE);
  return most > 0 ? KVM_VM_TYPE_ARM_IPA_SIZE(std::min(most, 40)) : 0;
}

absl::Status PrepareVm(int /*vm_fd*/, const GuestMemory& memory, bool /*pause_exits*/) {
  // Every exception vector leaves the guest: else one at an address without code comes again and
  // again.
  constexpr uint32_t kStore = 0xf90004ff;  // str xzr, [x7, #8]
  for (uint64_t vector = 0; vector < 16; ++vector) {
    *memory.At<uint32_t>(kVectors + vector * 0x80) = kStore;
  }
  // Arm ARM, D8.3: with 39 bits of address the first table holds blocks of 1 GiB.
  constexpr uint64_t kBlock = 1 | 1 << 10;          // valid, accessed
  constexpr uint64_t kCached = 0 << 2 | 3 << 8;     // attribute 0 of MAIR, inner shareable
  constexpr uint64_t kDevice = 1 << 2 | 3UL << 53;  // attribute 1, never executed
  *memory.At<uint64_t>(kPageTables) = kBlock | kCached;
  *memory.At<uint64_t>(kPageTables + 8) = kNowhere | kBlock | kDevice;
  return absl::OkStatus();
}

absl::Status PrepareVcpu(int /*kvm_fd*/, int vm_fd, int vcpu_fd) {
  kvm_vcpu_init init{};
  if (ioctl(vm_fd, KVM_ARM_PREFERRED_TARGET, &init) != 0) {
    return absl::ErrnoToStatus(errno, "KVM_ARM_PREFERRED_TARGET");
  }
  if (ioctl(vcpu_fd, KVM_ARM_VCPU_INIT, &init) != 0) {
    return absl::ErrnoToStatus(errno, "KVM_ARM_VCPU_INIT");
  }
  return absl::OkStatus();
}

absl::Status SetRegisters(int vcpu_fd, uint64_t entry, uint64_t mailbox) {
  for (size_t number = 0; number < 31; ++number) {
    if (absl::Status status = Set(vcpu_fd, General(number), 0); !status.ok()) return status;
  }
  const auto wanted = std::to_array<std::pair<uint64_t, uint64_t>>({
      {General(0), mailbox},
      {General(1), kData},
      {General(2), kShared},
      {General(7), kNowhere},
      {Core(offsetof(kvm_regs, regs.pc)), entry},
      {Core(offsetof(kvm_regs, regs.pstate)), 0x3c5},  // EL1h, all interrupts masked
      {ARM64_SYS_REG(3, 0, 10, 2, 0), 0xff},           // MAIR_EL1: 0 write-back, 1 device
      {ARM64_SYS_REG(3, 0, 2, 0, 2), 0x2'0080'3519},   // TCR_EL1: 39 bits, cached, 40 bits out
      {ARM64_SYS_REG(3, 0, 2, 0, 0), kPageTables},     // TTBR0_EL1
      {ARM64_SYS_REG(3, 0, 12, 0, 0), kVectors},       // VBAR_EL1
      {KVM_REG_ARM_TIMER_CTL, 0},                      // the last program may have left it on,
      {ARM64_SYS_REG(3, 0, 14, 1, 0), 0},              // and the clock's events (CNTKCTL_EL1)
      {ARM64_SYS_REG(3, 0, 1, 0, 2), 0x30'0000},       // CPACR_EL1: vectors are allowed
      {ARM64_SYS_REG(3, 0, 1, 0, 0), 0x30d0'1805},     // SCTLR_EL1: MMU, caches
  });
  for (const auto& [id, value] : wanted) {
    if (absl::Status status = Set(vcpu_fd, id, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool HasFinished(const kvm_run& run) {
  return run.exit_reason == KVM_EXIT_MMIO && run.mmio.is_write != 0 &&
         run.mmio.phys_addr == kNowhere;
}

}  // namespace vcpulse::kvm::microguest
