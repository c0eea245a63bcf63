#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vcpulse::kvm {

// What libvirt's cgroups tell of a thread.
struct LibvirtCgroup {
  std::string machine;      // the VM's name as libvirt writes it there; "" where there is none
  std::optional<int> vcpu;  // of a `vcpuN` thread group

  bool operator==(const LibvirtCgroup&) const = default;
};

// From the text of /proc/PID/task/TID/cgroup, lines `N:controllers:/path` (v1) and `0::/path` (v2):
//   /machine.slice/machine-qemu\x2d3\x2dweb.scope/libvirt/vcpu0   systemd, v2 and newer v1
//   /machine.slice/machine-qemu\x2d3\x2dweb.scope/vcpu0           systemd, older v1
//   /machine/qemu-3-web.libvirt-qemu/vcpu0                        without systemd
//   /machine/web.libvirt-qemu/vcpu0                               without systemd, older
// A `vcpuN` outside of these is nobody's vCPU. (libvirt: docs/cgroups.rst; the escapes are those of
// systemd.unit(5).) libvirt leaves characters out of names there: `-name` is the better source.
LibvirtCgroup ParseLibvirtCgroup(std::string_view text);

}  // namespace vcpulse::kvm
