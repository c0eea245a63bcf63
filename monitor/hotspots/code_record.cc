#include "monitor/hotspots/code_record.h"

#include <cstddef>

namespace vcpulse::hotspots {
namespace {

constexpr size_t kLongest = 256;

std::optional<kvm::Isa> IsaOf(int isa) {
  switch (isa) {
    case v1::GuestCode::ISA_X86:
      return kvm::Isa::kX86;
    case v1::GuestCode::ISA_ARM64:
      return kvm::Isa::kArm64;
    default:
      return std::nullopt;
  }
}

}  // namespace

v1::GuestCode RecordOf(const kvm::GuestCode& code) {
  v1::GuestCode record;
  record.set_address(code.address);
  record.set_bytes(code.bytes.data(), code.bytes.size());
  record.set_isa(code.isa == kvm::Isa::kX86 ? v1::GuestCode::ISA_X86 : v1::GuestCode::ISA_ARM64);
  return record;
}

std::optional<kvm::GuestCode> CodeOf(const v1::GuestCode& record) {
  const auto isa = IsaOf(record.isa());
  if (!isa || record.bytes().size() > kLongest) return std::nullopt;
  return kvm::GuestCode{.address = record.address(),
                        .bytes = {record.bytes().begin(), record.bytes().end()},
                        .isa = *isa};
}

}  // namespace vcpulse::hotspots
