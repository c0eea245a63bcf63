#pragma once

// Guest code as the timeline holds it.

#include <optional>

#include "kvm/hotspots/guest_code.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::hotspots {

v1::GuestCode RecordOf(const kvm::GuestCode& code);
// Nothing where it is of an instruction set that is not known, or longer than any that is written.
std::optional<kvm::GuestCode> CodeOf(const v1::GuestCode& record);

}  // namespace vcpulse::hotspots
