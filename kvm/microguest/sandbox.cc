#include "kvm/microguest/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vcpulse::kvm::microguest {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr std::array kAllowed = {
    SYS_ioctl,  // KVM_RUN and registers
    SYS_futex, SYS_rt_sigreturn, SYS_restart_syscall, SYS_clock_gettime,
    // Of memory, and of the end of a thread.
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_rt_sigprocmask, SYS_sched_yield,
    SYS_set_robust_list, SYS_rseq, SYS_exit, SYS_exit_group,
    // Of a crash, and of what a sanitizer says of one.
    SYS_tgkill, SYS_sigaltstack, SYS_gettid, SYS_getpid, SYS_write};

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr uint16_t kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint16_t kReturn = BPF_RET | BPF_K;

}  // namespace

void EnterSandbox() {
  constexpr auto kRefuse = static_cast<uint32_t>(SECCOMP_RET_ERRNO | EPERM);
  std::vector<sock_filter> filter = {
      BPF_STMT(kLoad, offsetof(seccomp_data, arch)),
      BPF_JUMP(kIfEqual, kArchitecture, 1, 0),
      BPF_STMT(kReturn, kRefuse),
      BPF_STMT(kLoad, offsetof(seccomp_data, nr)),
  };
  for (const long call : kAllowed) {
    filter.push_back(BPF_JUMP(kIfEqual, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(kReturn, kRefuse));
  const sock_fprog program{.len = static_cast<uint16_t>(filter.size()), .filter = filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

#else

void EnterSandbox() {}

#endif

}  // namespace vcpulse::kvm::microguest
