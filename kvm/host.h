#pragma once

// What this host is, for the session record and for advice.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/event.h"

namespace vcpulse::kvm {

struct HostFacts {
  std::string host_name;
  std::string boot_id;         // /proc/sys/kernel/random/boot_id
  std::string kernel_release;  // uname -r
  std::string machine;         // uname -m
  std::string cpu_model;       // x86: "model name"; arm64: implementer and part
  uint32_t online_cpus = 0;
  // By the CPU's number: its NUMA node; nothing of one that is offline. Empty where there is one
  // node, or none is known.
  std::vector<std::optional<uint32_t>> cpu_nodes;
  // Likewise: the lowest CPU of its core. Empty where no core has two threads (SMT).
  std::vector<std::optional<uint32_t>> cpu_cores;
};

// What could not be read is left empty. `root` as in Discovery.
HostFacts ReadHostFacts(const std::string& root);

// kernel.perf_event_paranoid, or nothing where it cannot be read.
std::optional<int> PerfEventParanoid(const std::string& root);

// Bytes that programs can still take: MemAvailable, or, in a container that sees its own control
// group (cgroup 2) as the root, what that one's limit leaves if it is less; its cache of files
// counts as taken. Nothing where MemAvailable cannot be read.
std::optional<uint64_t> AvailableBytes(const std::string& root);

// The user who owns process `pid`, as "uid 1000"; empty where unknown.
std::string OwnerOfProcess(const std::string& root, pid_t pid);

// The highest frequency that cpufreq knows for any of these CPUs, Hz; for any CPU at all where none
// are given.
std::optional<double> CpufreqMaxHz(const std::string& root, std::span<const int> cpus = {});

// One reading of a counter between two of a clock, ns.
struct BracketedReading {
  int64_t before_ns = 0;
  uint64_t count = 0;
  int64_t after_ns = 0;
};

// The rate of the counter between two instants, Hz, each read several times: of each the narrowest
// bracket counts, so that a reading that was preempted spoils nothing as long as another one was
// not. Off by at most half of both brackets over the time between. Nothing where no time lies
// between them. Pure.
std::optional<double> RateBetween(std::span<const BracketedReading> begin,
                                  std::span<const BracketedReading> end);

// The rate of the TSC against CLOCK_MONOTONIC_RAW over `span`, Hz. Nothing but on x86.
std::optional<double> MeasureTscHz(absl::Duration span);

// Counts `cycles` (an event of some core PMU) of the calling thread through a short busy loop
// (about 5 ms): proves that the cycle counter counts, and gives the frequency it saw, Hz. Errors:
// errno of the event; ENODATA where the event opened but did not count (on a hybrid host perhaps
// because another PMU's cores were run on).
OrErrno<double> ProbeCycleHz(PerfEvents& perf, const Event& cycles);

// Why a zero of this event would be no sign of a thread without PAUSE: it counted none on the
// calling thread, which executed them for about 5 ms (some virtual PMUs open any raw event). Empty
// where it counted, or where it cannot be opened and so reads no zero.
std::string WhyPauseIsNotBelieved(PerfEvents& perf, const Event& pause);

// Keeps the calling thread computing for `span` of wall time, for counters that have to move.
void BurnCpu(absl::Duration span);

// Keeps the calling thread in PAUSE (x86) or YIELD (arm64) for `span` of wall time.
void PauseCpu(absl::Duration span);

// Which CPU model this host has. x86: what CPUID says, as /proc/cpuinfo gives it. arm64: the MIDR.
struct CpuIdentity {
  // "GenuineIntel", "AuthenticAMD"; arm64: "0x41" (the implementer); else empty
  std::string vendor;
  uint32_t family = 0;      // x86
  uint32_t model = 0;       // x86: model; arm64: part number
  uint32_t stepping = 0;    // x86: stepping; arm64: variant << 4 | revision
  std::string microcode{};  // x86: "0x2b000461"; else empty

  bool operator==(const CpuIdentity&) const = default;
};

// The first processor of a /proc/cpuinfo. Pure.
CpuIdentity ParseCpuIdentity(std::string_view cpuinfo);

// Of the first CPU (hybrid and big.LITTLE hosts have others too). `root` as in Discovery. What
// could not be read is left empty.
CpuIdentity ReadCpuIdentity(const std::string& root);

}  // namespace vcpulse::kvm
