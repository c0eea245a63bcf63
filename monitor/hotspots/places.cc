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

// What the file itself says of the address at `i`.
std::optional<Symbol> NameAt(const v1::HotAddresses& window, int i) {
  if (i >= window.functions_size() || i >= window.function_addresses_size()) return std::nullopt;
  if (window.functions(i).empty()) return std::nullopt;
  return Symbol{.name = window.functions(i), .address = window.function_addresses(i)};
}

}  // namespace

void ForEachPlace(const v1::HotAddresses& window,
                  absl::FunctionRef<void(const Place& place)> take) {
  const int places =
      std::min({window.addresses_size(), window.samples_size(), window.modes_size()});
  for (int i = 0; i < places; ++i) {
    const uint64_t samples = Believable(window.samples(i));
    if (samples == 0) continue;
    take({.at = {.address = window.addresses(i), .mode = ModeOf(window.modes(i))},
          .samples = samples,
          .named = NameAt(window, i)});
  }
}

}  // namespace vcpulse::hotspots
