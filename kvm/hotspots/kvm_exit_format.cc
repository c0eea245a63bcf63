#include "kvm/hotspots/kvm_exit_format.h"

#include <utility>

namespace vcpulse::kvm {
namespace {

// x86: exit_reason by isa (arch/x86/kvm/trace.h; 1 is VMX, 2 is SVM).
constexpr uint64_t kVmx = 1;
constexpr uint64_t kVmxExternalInterrupt = 1;  // EXIT_REASON_EXTERNAL_INTERRUPT
constexpr uint64_t kSvm = 2;
constexpr uint64_t kSvmInterrupt = 0x60;  // SVM_EXIT_INTR
constexpr std::string_view kX86Filter =
    "(isa == 1 && exit_reason == 1) || (isa == 2 && exit_reason == 0x60)";
// arm64: `ret` of the exit (arch/arm64/include/asm/kvm_asm.h).
constexpr uint64_t kArmIrq = 0;  // ARM_EXCEPTION_IRQ
constexpr std::string_view kArmFilter = "ret == 0";

}  // namespace

std::optional<KvmExitFormat> KvmExitFormat::From(TracepointFormat format) {
  KvmExitFormat exit;
  exit.is_x86_ = format.Find("guest_rip") != nullptr && format.Find("exit_reason") != nullptr &&
                 format.Find("isa") != nullptr;
  const bool is_arm = format.Find("vcpu_pc") != nullptr && format.Find("ret") != nullptr;
  if (!exit.is_x86_ && !is_arm) return std::nullopt;
  exit.format_ = std::move(format);
  exit.filter_ = exit.is_x86_ ? kX86Filter : kArmFilter;
  return exit;
}

std::optional<uint64_t> KvmExitFormat::AddressOf(std::span<const uint8_t> record) const {
  const auto value = [&](std::string_view name) { return ReadField(record, format_.Find(name)); };
  if (!is_x86_) return value("ret") == kArmIrq ? value("vcpu_pc") : std::nullopt;
  const auto isa = value("isa");
  const auto reason = value("exit_reason");
  const bool by_interrupt =
      (isa == kVmx && reason == kVmxExternalInterrupt) || (isa == kSvm && reason == kSvmInterrupt);
  return by_interrupt ? value("guest_rip") : std::nullopt;
}

}  // namespace vcpulse::kvm
