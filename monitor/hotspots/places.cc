#include "monitor/hotspots/places.h"

namespace vcpulse::hotspots {
namespace {

kvm::GuestMode ModeOf(int mode) {
  switch (mode) {
    case v1::GUEST_MODE_KERNEL:
      return kvm::GuestMode::kKernel;
    case v1::GUEST_MODE_USER:
      return kvm::GuestMode::kUser;
    default:
      return kvm::GuestMode::kUnknown;
  }
}

}  // namespace

void ForEachPlace(const v1::HotAddresses& window,
                  absl::FunctionRef<void(kvm::GuestAddress at, uint64_t samples)> take) {
  const int places =
      std::min({window.addresses_size(), window.samples_size(), window.modes_size()});
  for (int i = 0; i < places; ++i) {
    const uint64_t samples = Believable(window.samples(i));
    if (samples == 0) continue;
    take({.address = window.addresses(i), .mode = ModeOf(window.modes(i))}, samples);
  }
}

}  // namespace vcpulse::hotspots
