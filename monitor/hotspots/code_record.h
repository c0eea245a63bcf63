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

// The code of one window, as far as it is not more than any that is written.
struct WindowCode {
  std::vector<kvm::GuestCode> pieces;  // that were read from the guest
  KnownCode read;                      // the same
  KnownCode of_file;                   // of the file of its kernel

  // Whether the code at `at` waits in place: what was read tells it first, and the kernel's file
  // nothing of user mode.
  std::optional<bool> WaitsAt(kvm::GuestAddress at) const;
};
WindowCode CodeOf(const v1::HotAddresses& window);

}  // namespace vcpulse::hotspots
