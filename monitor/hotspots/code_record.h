#pragma once

// Guest code as the timeline holds it.

#include <optional>
#include <vector>

#include "kvm/hotspots/guest_code.h"
#include "monitor/hotspots/known_code.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

v1::GuestCode RecordOf(const kvm::GuestCode& code);
// Nothing where it is of an instruction set that is not known, or longer than any that is written.
std::optional<kvm::GuestCode> CodeOf(const v1::GuestCode& record);

// That of a window, as far as it is not more than any that is written.
KnownCode CodeOf(const v1::HotAddresses& window);
// Thereof what was read from the guest.
std::vector<kvm::GuestCode> ReadCodeOf(const v1::HotAddresses& window);

}  // namespace vcpulse::hotspots
