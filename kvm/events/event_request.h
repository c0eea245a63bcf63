#pragma once

#include <vector>

#include "kvm/events/event.h"

namespace vcpulse::kvm {

// What `--events` asked for, resolved for this host.
struct EventRequest {
  // Members of one entry must be read together: what stood in braces, or one event alone.
  std::vector<std::vector<Event>> groups;
  // Named, but not to be opened: their zero could not be believed.
  std::vector<AbsentEvent> absent;
};

}  // namespace vcpulse::kvm
