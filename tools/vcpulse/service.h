#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace vcpulse::tools {

// Tells the service manager, where one listens (NOTIFY_SOCKET of sd_notify(3)), for example
// "READY=1", "STATUS=...", "RELOADING=1" or "STOPPING=1"; several with a line feed between them.
// What cannot be sent is not an error: nobody waits for it. Any thread.
void NotifyService(const std::string& state);

// Takes all the file descriptors that this user may have. The limit before, for child processes.
rlimit RaiseDescriptorLimit();
// So many files this process may have open now.
uint64_t DescriptorLimit();

}  // namespace vcpulse::tools
