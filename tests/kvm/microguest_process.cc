// A VM without QEMU, as a process of its own, for tests: so many vCPUs, each runs the program.
//
// usage: microguest_process PROGRAM VCPUS [-name NAME]
// Writes "up" once they run; killed with whoever started it.

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "kvm/microguest/machine.h"

int main(int argc, char** argv) {
  namespace microguest = vcpulse::kvm::microguest;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 3) return 2;
  const microguest::Program* const program = microguest::FindProgram(argv[1]);
  if (program == nullptr) return 2;
  const auto machine = microguest::Machine::Create(std::strtoul(argv[2], nullptr, 10));
  if (!machine.ok()) {
    std::cerr << machine.status().message() << "\n";
    return 1;
  }
  for (size_t i = 0; i < (*machine)->vcpus(); ++i) (*machine)->Start(i, *program, ~uint64_t{0});
  std::cout << "up" << std::endl;
  while (true) pause();
}
