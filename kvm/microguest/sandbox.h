#pragma once

// Only .cc files of this module include this.

namespace vcpulse::kvm::microguest {

// From now on the calling thread gains no rights by starting programs, and of all system calls has
// those that a vCPU's thread needs: the others fail with EPERM. Without effect where the kernel has
// no seccomp or an outer filter forbids it, as it is a second fence alone, and on architectures
// without microguests.
void EnterSandbox();

}  // namespace vcpulse::kvm::microguest
