// read_statistics PID|QMP FOLDER: twelve times KVM's statistics as vcpulse reads them between two
// readings of the sums in its debugfs (FOLDER/); a line "SOURCE NAME BEFORE OURS AFTER" for each
// value, where OURS is the sum over the vCPUs.

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "kvm/discovery/discovery.h"
#include "kvm/statistics/vm_statistics.h"

namespace vcpulse::kvm {
namespace {

// By itself: a file per value, below the one folder of this VMM.
uint64_t DebugfsValue(const std::string& folder, const std::string& name) {
  uint64_t value = 0;
  std::ifstream(folder + "/" + name) >> value;
  return value;
}

int Run(const std::string& which, const std::string& folder) {
  const Discovery discovery("/");
  const auto pid = ParseNumber<pid_t>(which);
  const auto vm = pid ? discovery.FindByPid(*pid) : discovery.FindByQmp(which, absl::Seconds(5));
  if (!vm.ok()) return std::fprintf(stderr, "%s\n", vm.status().ToString().c_str()), 1;
  utsname kernel{};
  uname(&kernel);
  std::vector<std::string> names = {"exits"};
  for (int turn = 0; turn < 12; ++turn) {
    std::map<std::string, uint64_t> before;
    for (const std::string& name : names) before[name] = DebugfsValue(folder, name);
    // Anew: each asks QMP at once. An emulated host may take long to answer.
    VmStatistics statistics("/", *vm, kernel.release, MonotonicNow_ns, absl::Seconds(5));
    const auto all = statistics.Read();
    std::fprintf(stderr, "%s\n", statistics.kvm_refused().c_str());
    for (const SourceStatistics& source : all) {
      if (source.source == "scheduler") continue;
      for (size_t i = 0; i < source.names.size(); ++i) {
        if (!before.contains(source.names[i])) continue;  // the first turn tells the names
        uint64_t sum = 0;
        for (const VcpuStatistics& vcpu : source.vcpus) sum += vcpu.values.at(i);
        std::printf("%.*s %s %lu %lu %lu\n", static_cast<int>(source.source.size()),
                    source.source.data(), source.names[i].c_str(), before[source.names[i]], sum,
                    DebugfsValue(folder, source.names[i]));
      }
      names = source.names;
    }
    usleep(300'000);
  }
  return 0;
}

}  // namespace
}  // namespace vcpulse::kvm

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: read_statistics PID|QMP FOLDER\n"), 2;
  return vcpulse::kvm::Run(argv[1], argv[2]);
}
