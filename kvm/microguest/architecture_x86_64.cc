#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "kvm/microguest/architecture.h"

namespace vcpulse::kvm::microguest {
namespace {

constexpr uint16_t kEndPort = 0xf4;
// Where Intel's KVM may keep a task state segment of its own: as QEMU has it, below 4 GiB.
constexpr unsigned long kTssAddress = 0xfffbd000;

// kvm_cpuid2, whose open array gives it another size in C++, and with it the requests other
// numbers.
struct Cpuid {
  uint32_t nent = 256;
  uint32_t padding = 0;
  std::array<kvm_cpuid_entry2, 256> entries{};
};
constexpr unsigned long kGetSupportedCpuid = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x05, 8);
constexpr unsigned long kSetCpuid = _IOC(_IOC_WRITE, KVMIO, 0x90, 8);

absl::Status Failed(const char* what) { return absl::ErrnoToStatus(errno, what); }

constexpr uint16_t kCodeSelector = 0x8;
constexpr uint16_t kDataSelector = 0x10;
constexpr size_t kTimerVector = 32;  // as programs_x86_64.S has it
constexpr uint64_t kSegments = kTables;
constexpr uint64_t kInterrupts = kTables + 0x1000;

kvm_segment Segment(uint8_t type, bool code) {
  return {.base = 0,
          .limit = 0xffffffff,
          .selector = code ? kCodeSelector : kDataSelector,
          .type = type,
          .present = 1,
          .dpl = 0,
          .db = static_cast<uint8_t>(code ? 0 : 1),
          .s = 1,
          .l = static_cast<uint8_t>(code ? 1 : 0),
          .g = 1};
}

// A timer that the last program left running, and an interrupt that it did not end, are gone.
// Without effect where KVM has no interrupt controller.
void QuietApic(int vcpu_fd) {
  constexpr size_t kInService = 0x100;  // and what waits, at 0x200: 8 registers, 16 bytes apart
  constexpr size_t kInitialCount = 0x380;
  kvm_lapic_state apic;
  if (ioctl(vcpu_fd, KVM_GET_LAPIC, &apic) != 0) return;
  for (size_t i = 0; i < 8; ++i) {
    std::memset(apic.regs + kInService + 16 * i, 0, 4);
    std::memset(apic.regs + kInService + 0x100 + 16 * i, 0, 4);
  }
  std::memset(apic.regs + kInitialCount, 0, 4);
  ioctl(vcpu_fd, KVM_SET_LAPIC, &apic);
}

}  // namespace

unsigned long VmType(int /*kvm_fd*/) { return 0; }

absl::Status PrepareVm(int vm_fd, const GuestMemory& memory, bool pause_exits) {
  // Intel SDM volume 3, 4.5: four levels, the lowest one of pages of 2 MiB.
  constexpr uint64_t kPresentWritable = 0x3;
  constexpr uint64_t kLarge = 0x80;
  *memory.At<uint64_t>(kPageTables) = (kPageTables + 0x1000) | kPresentWritable;
  *memory.At<uint64_t>(kPageTables + 0x1000) = (kPageTables + 0x2000) | kPresentWritable;
  for (uint64_t page = 0; page < 512; ++page) {
    *memory.At<uint64_t>(kPageTables + 0x2000 + page * 8) = page << 21 | kPresentWritable | kLarge;
  }
  // An interrupt loads both segments from here. SDM volume 3, 3.4.5 and 6.14.1.
  memory.At<uint64_t>(kSegments)[kCodeSelector / 8] = 0x00af'9b00'0000'ffff;
  memory.At<uint64_t>(kSegments)[kDataSelector / 8] = 0x00cf'9300'0000'ffff;
  constexpr uint64_t kInterruptGate = 0x8e00;
  const uint64_t handler = kCode + InterruptEntry();  // within 64 KiB of 0x10000
  memory.At<uint64_t>(kInterrupts)[2 * kTimerVector] =
      (handler >> 16) << 48 | kInterruptGate << 32 | uint64_t{kCodeSelector} << 16 |
      (handler & 0xffff);
  ioctl(vm_fd, KVM_SET_TSS_ADDR, kTssAddress);  // AMD's has no use for it
  // With KVM's own interrupt controller HLT waits in KVM; without, it leaves the guest.
  ioctl(vm_fd, KVM_CREATE_IRQCHIP, 0);
  if (!pause_exits) {
    kvm_enable_cap off{.cap = KVM_CAP_X86_DISABLE_EXITS};
    off.args[0] = KVM_X86_DISABLE_EXITS_PAUSE;
    ioctl(vm_fd, KVM_ENABLE_CAP, &off);  // since Linux 4.17
  }
  return absl::OkStatus();
}

absl::Status PrepareVcpu(int kvm_fd, int /*vm_fd*/, int vcpu_fd) {
  const auto cpuid = std::make_unique<Cpuid>();
  if (ioctl(kvm_fd, kGetSupportedCpuid, cpuid.get()) != 0) return Failed("KVM_GET_SUPPORTED_CPUID");
  if (ioctl(vcpu_fd, kSetCpuid, cpuid.get()) != 0) return Failed("KVM_SET_CPUID2");
  return absl::OkStatus();
}

absl::Status SetRegisters(int vcpu_fd, uint64_t entry, uint64_t mailbox) {
  kvm_sregs special;
  if (ioctl(vcpu_fd, KVM_GET_SREGS, &special) != 0) return Failed("KVM_GET_SREGS");
  special.cs = Segment(11, /*code=*/true);
  special.ds = special.es = special.fs = special.gs = special.ss = Segment(3, /*code=*/false);
  special.gdt = {.base = kSegments, .limit = 0x17};
  special.idt = {.base = kInterrupts, .limit = 16 * (kTimerVector + 1) - 1};
  special.apic_base |= 0xc00;  // x2APIC mode: its registers are MSRs
  special.cr3 = kPageTables;
  special.cr4 = 0x220;       // PAE, OSFXSR
  special.cr0 = 0x80050033;  // PG, AM, WP, NE, ET, MP, PE
  special.efer = 0x500;      // LMA, LME
  if (ioctl(vcpu_fd, KVM_SET_SREGS, &special) != 0) return Failed("KVM_SET_SREGS");
  QuietApic(vcpu_fd);
  kvm_regs registers{};
  registers.rip = entry;
  registers.rflags = 2;
  registers.rdi = mailbox;
  registers.rsi = kData;
  registers.rdx = kShared;
  registers.rsp = mailbox + kStack;
  if (ioctl(vcpu_fd, KVM_SET_REGS, &registers) != 0) return Failed("KVM_SET_REGS");
  // One that was kicked out of its HLT is still halted, and all but the first wait to be started.
  kvm_mp_state runnable{.mp_state = KVM_MP_STATE_RUNNABLE};
  ioctl(vcpu_fd, KVM_SET_MP_STATE, &runnable);  // without an interrupt controller it is
  return absl::OkStatus();
}

bool HasFinished(const kvm_run& run) {
  return run.exit_reason == KVM_EXIT_IO && run.io.direction == KVM_EXIT_IO_OUT &&
         run.io.port == kEndPort;
}

}  // namespace vcpulse::kvm::microguest
