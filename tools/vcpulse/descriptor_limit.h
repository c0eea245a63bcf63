#pragma once

#include <sys/resource.h>

namespace vcpulse::tools {

// Takes all the file descriptors that this user may have. The limit before, for child processes.
rlimit RaiseDescriptorLimit();

}  // namespace vcpulse::tools
