#include "monitor/hotspots/code_record.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace vcpulse::hotspots {
namespace {

constexpr size_t kLongest = 256;
constexpr int kMostPieces = 32;

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

std::optional<bool> WindowCode::WaitsAt(kvm::GuestAddress at) const {
  const auto waits = read.WaitsAt(at.address);
  return waits || at.mode == kvm::GuestMode::kUser ? waits : of_file.WaitsAt(at.address);
}

WindowCode CodeOf(const v1::HotAddresses& window) {
  WindowCode code;
  for (int i = 0; i < std::min(window.code_size(), kMostPieces); ++i) {
    auto piece = CodeOf(window.code(i));
    if (!piece) continue;
    if (window.code(i).of_file()) {
      code.of_file.Add(*std::move(piece));
    } else {
      code.pieces.push_back(*piece);
      code.read.Add(*std::move(piece));
    }
  }
  return code;
}

}  // namespace vcpulse::hotspots
