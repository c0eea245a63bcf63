#pragma once

// Parsers of the texts that /proc keeps about processes and threads. Pure: text in, values out;
// ReadSmallFile alone touches a file.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvm/vm.h"

namespace vcpulse::kvm {

// What vcpulse needs of /proc/PID/stat and /proc/PID/task/TID/stat (proc_pid_stat(5)).
struct TaskStat {
  char state = '?';               // field 3: R, S, D, T, t, Z, X, I
  pid_t parent = 0;               // field 4: parent process, of a thread too
  uint64_t start_time_ticks = 0;  // field 22: since boot
  int cpu = 0;                    // field 39: of the host, where it last ran
  uint64_t guest_time_ticks = 0;  // field 43: of the thread in task/TID/stat, else of the process;
                                  // 0 for ever on some kernels
  bool kernel_thread = false;     // PF_KTHREAD in field 9

  // A zombie or dead: what is left of one that has exited.
  bool Exited() const { return state == 'Z' || state == 'X' || state == 'x'; }

  bool operator==(const TaskStat&) const = default;
};

// The text of a stat file, or nothing where it is not one. The command name may hold any character:
// fields are counted after the last ')'. Allocates nothing: the tick calls it.
std::optional<TaskStat> ParseTaskStat(std::string_view text) noexcept;

// Only the state letter of the same text. For the tick path: allocates nothing.
std::optional<char> ParseTaskState(std::string_view text) noexcept;

// The command name in a stat file: what lies between the first '(' and the last ')'.
std::optional<std::string_view> ParseStatComm(std::string_view text) noexcept;

// /proc/PID/task/TID/schedstat, all cumulative. A kernel without schedstats prints three zeros
// (fs/proc/base.c, proc_pid_schedstat).
struct SchedStat {
  uint64_t run_ns = 0;        // on a CPU
  uint64_t run_delay_ns = 0;  // runnable, waiting for a CPU; booked when the thread gets one
  uint64_t timeslices = 0;    // times it got a CPU; never 0 for a thread that ran

  bool operator==(const SchedStat&) const = default;
};

// "run_ns run_delay_ns timeslices", or nothing. Allocates nothing: the tick calls it.
std::optional<SchedStat> ParseSchedStat(std::string_view text) noexcept;

// What the scheduler counted of one thread, from /proc/PID/task/TID/sched (kernel/sched/debug.c),
// cumulative. Such files are there where the kernel has CONFIG_SCHED_DEBUG.
struct TaskSched {
  uint64_t migrations = 0;            // to another CPU: what perf counts as `migrations`
  uint64_t voluntary_switches = 0;    // it waited for something
  uint64_t involuntary_switches = 0;  // another one had its CPU
  uint64_t run_ns = 0;                // on a CPU

  bool operator==(const TaskSched&) const = default;
};

// The text of a sched file, or nothing where one of them is not in it.
std::optional<TaskSched> ParseTaskSched(std::string_view text);

// One numeric field of a status file by its label without colon, such as "Tgid".
std::optional<pid_t> ParseStatusPid(std::string_view status, std::string_view label);

// The NSpid line of a status file: the ID in each PID namespace, ours first, the task's own last.
// Empty where the kernel does not print it.
std::vector<pid_t> ParseNsPids(std::string_view status);

// The arguments in a cmdline file: each ends with NUL, the last one perhaps not.
std::vector<std::string> ParseCmdline(std::string_view text);

// A descriptor that KVM made, from the text of its link in /proc/PID/fd.
struct KvmLink {
  enum class Kind { kVm, kVcpu, kVcpuStats };
  Kind kind = Kind::kVm;
  std::optional<int> vcpu_id;  // KVM's id; older kernels print none

  bool operator==(const KvmLink&) const = default;
};

// `anon_inode:kvm-vm`, `anon_inode:kvm-vcpu:3`, `anon_inode:kvm-vcpu-stats:3`, each of them in
// brackets too; nothing for any other link.
std::optional<KvmLink> ParseKvmLink(std::string_view link);

// The directory of one VM in KVM's debugfs.
struct DebugfsVmDir {
  pid_t pid = 0;  // the VMM
  int vm_fd = 0;  // its kvm-vm descriptor

  bool operator==(const DebugfsVmDir&) const = default;
};

// "PID-FD", or nothing.
std::optional<DebugfsVmDir> ParseDebugfsVmDir(std::string_view name);

// The text of a file of /proc or /sys, at most 256 KiB of it, or nothing where it cannot be read:
// then `error`, where it is given, is why.
std::optional<std::string> ReadSmallFile(const std::string& path, int* error = nullptr);

}  // namespace vcpulse::kvm
