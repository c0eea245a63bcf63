#pragma once

// Whether this host takes a BPF program of ours, and why not.

#include <string>

#include "kvm/own_rights.h"

namespace vcpulse::kvm {

// What tells why the kernel takes no program.
struct BpfHost {
  OwnRights rights;
  bool has_types = false;  // /sys/kernel/btf/vmlinux
  bool own_pids = false;   // this process's PIDs are not the host's (/proc/self/ns/pid)
  bool own_users = false;  // its capabilities are those of a user namespace (/proc/self/uid_map)
  std::string lockdown;    // the mode in force, of /sys/kernel/security/lockdown; or empty
  std::string kernel_release;  // uname -r
};

// `root` as in Discovery.
BpfHost ReadBpfHost(const std::string& root);

// The mode in brackets of "none [integrity] confidentiality"; empty where there is none, or it is
// "none". Pure.
std::string ParseLockdown(std::string_view text);

// Why this host cannot load the program, and what to do, in one line; empty where nothing says that
// it cannot. Pure.
std::string WhyNoBpf(const BpfHost& host);

// Why it answered with `error` all the same. Pure.
std::string WhyBpfWasRefused(const BpfHost& host, int error);

}  // namespace vcpulse::kvm
