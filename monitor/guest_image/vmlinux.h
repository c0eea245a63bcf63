#pragma once

// The kernel of a guest from its ELF file (vmlinux): names and code. Debian's is in
// linux-image-*-dbg, Fedora's in kernel-debuginfo; that of /boot (vmlinuz) is compressed and has
// neither.

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "monitor/hotspots/symbols.h"

namespace vcpulse::guest_image {

// Reads what is needed of an open file, which may have a GB. Errors: InvalidArgument where it is no
// ELF file of a kernel of x86-64 or arm64.
absl::StatusOr<hotspots::GuestKernel> ReadVmlinux(int fd);

// The same of its bytes.
absl::StatusOr<hotspots::GuestKernel> ParseVmlinux(std::span<const uint8_t> bytes);

}  // namespace vcpulse::guest_image
