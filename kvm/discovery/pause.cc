#include "kvm/discovery/pause.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/proc_files.h"
#include "kvm/proc_tree.h"

namespace vcpulse::kvm {
namespace {

std::optional<std::string> ReadWchan(const std::string& root, pid_t pid, pid_t tid) {
  return ReadSmallFile(absl::StrCat(root, "/proc/", pid, "/task/", tid, "/wchan"));
}

}  // namespace

WaitPlace ParseWchan(std::string_view text) {
  if (text.starts_with("kvm_")) return WaitPlace::kKvm;
  if (text.starts_with("futex_") || text.starts_with("__futex_")) return WaitPlace::kUserspace;
  return WaitPlace::kUnknown;
}

WaitPlace ReadWaitPlace(const std::string& root, pid_t pid, pid_t tid) {
  return ParseWchan(ReadWchan(root, pid, tid).value_or(""));
}

std::string WhyPauseCannotBeTold(const std::string& root, const Vm& vm) {
  if (vm.userspace_irqchip) {
    return "paused and halted cannot be distinguished here: with kernel_irqchip=off a halted vCPU "
           "waits in "
           "QEMU too; a QMP stop shows as HALTED";
  }
  const std::vector<Thread> threads = ProcTree(root).Threads(vm.pid);
  const bool shown = std::ranges::any_of(threads, [&](const Thread& thread) {
    const std::string text = ReadWchan(root, vm.pid, thread.tid).value_or("");
    return !text.empty() && text != "0" && text != "0\n";
  });
  // Threads that all run right now show nothing to anybody.
  const bool blocked =
      std::ranges::any_of(threads, [](const Thread& thread) { return thread.stat.state == 'S'; });
  if (shown || !blocked) return "";
  return "paused and halted cannot be distinguished here: where its threads wait (wchan) may not "
         "be read; "
         "run as root or with CAP_SYS_PTRACE; a QMP stop shows as HALTED";
}

}  // namespace vcpulse::kvm
