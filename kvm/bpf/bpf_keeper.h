#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kvm/bpf/thread_keeper.h"

namespace vcpulse::kvm {

// What the kernel's verifier said: a payload of the status of LoadBpfKeeper, many lines.
inline constexpr char kVerifierLog[] = "vcpulse.verifier-log";

// Loads keep_threads.bpf.c: a program at the scheduler's tracepoints that copies counters, times
// and states of the threads that are held into memory mapped here. It ends with the keeper, or with
// the process, however that ends. Linux 5.15 or newer (arm64: 5.18) with BTF; CAP_BPF and
// CAP_PERFMON. `root` as in Discovery, for the reasons alone. Errors: Unimplemented (built without
// libbpf), PermissionDenied, FailedPrecondition, each one line that says what is missing.
absl::StatusOr<std::unique_ptr<ThreadKeeper>> LoadBpfKeeper(const std::string& root);

}  // namespace vcpulse::kvm
