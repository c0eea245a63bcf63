#pragma once

#include <fcntl.h>
#include <sys/resource.h>

namespace vcpulse::fakes {

// Leaves this process so many descriptors, as a low `ulimit -n` does.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t free) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 0;
    while (free > 0 && few.rlim_cur < before_.rlim_cur) {
      if (fcntl(static_cast<int>(few.rlim_cur++), F_GETFD) < 0) --free;
    }
    setrlimit(RLIMIT_NOFILE, &few);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace vcpulse::fakes
