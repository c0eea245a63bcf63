#include "tools/vcpulse/descriptor_limit.h"

namespace vcpulse::tools {

rlimit RaiseDescriptorLimit() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit limit = before;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

}  // namespace vcpulse::tools
