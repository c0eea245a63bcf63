#pragma once

// Who had the CPUs of the starved vCPUs of a recording (`record --competitors`).

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/timeline/entry.h"

namespace vcpulse::reading {

// One that ran while a vCPU waited. Threads that are no vCPU of the recording are grouped by the
// names of thread and process, so that the many short-lived threads of one program are one.
struct CompetitorTotal {
  enum class Kind : uint8_t {
    kVcpu,     // of a VM of this recording
    kVm,       // a thread of another VM's VMM, or no vCPU thread of one of this recording
    kProcess,  // of another process
    kKernel,
    kIdle,  // none
  };

  Kind kind = Kind::kProcess;
  // As people know it: "vCPU 0 of db", "cc1 of gcc [4711]", "nobody, an idle CPU".
  std::string label;
  std::string vm;                // of kVcpu and kVm
  std::optional<uint32_t> vcpu;  // of kVcpu
  std::string thread_name;
  std::string process_name;
  uint32_t pid = 0;  // 0: not known, or several processes of that name
  uint64_t ns = 0;
};

std::string_view ToString(CompetitorTotal::Kind kind);  // "vcpu", "vm", "process", "kernel", "idle"

// Of one vCPU, over its windows.
struct CompetitorTotals {
  uint64_t windows = 0;
  uint64_t waited_ns = 0;
  uint64_t unattributed_ns = 0;  // of waited_ns: it is not known who ran
  uint64_t further_ns = 0;       // of waited_ns: of others than those listed
  uint64_t lost = 0;             // records
  // What the scheduler says that it waited in the windows; nothing where one does not know.
  std::optional<uint64_t> run_delay_ns = 0;
  std::string ended_by;                      // what ended the latest window that ended early
  std::set<uint32_t> cpus;                   // that were watched
  std::vector<CompetitorTotal> competitors;  // most time first
};

// "99.8 % vCPU 0 of db, 0.2 % others of the 504 ms that it waited": the three that had most, and at
// least 1 %. Empty where no waiting was seen.
std::string SharesOf(const CompetitorTotals& totals);

// Added up per vCPU over windows and epochs. Memory grows with the vCPUs, never with the windows:
// those of vCPUs that no set has are ignored, and long names are cut. One thread.
class RecordedCompetitors {
 public:
  // Takes vCPU sets and windows; passes over others.
  void Add(const timeline::Entry& entry);

  // Nothing where there was no window.
  std::optional<CompetitorTotals> Of(uint32_t vm, uint32_t vcpu) const;
  // Why the first vCPU of a VM that has no window could have none; nothing where none was refused.
  std::optional<std::string> Refused(uint32_t vm) const;

 private:
  static constexpr size_t kMostPerVcpu = 64;
  static constexpr size_t kMostCpus = 1024;

  struct Member {
    uint32_t vm = 0;
    uint32_t vcpu = 0;
  };
  // Nobody, the TID of a vCPU of the recording, or else names.
  struct Who {
    bool is_idle = false;
    bool is_kernel = false;
    uint32_t vcpu_tid = 0;
    std::string thread_name;
    std::string process_name;
    std::string vm_name;

    auto operator<=>(const Who&) const = default;
  };
  struct Share {
    uint64_t ns = 0;
    uint32_t pid = 0;  // of all of them; 0: of several, or not known
  };
  struct Vcpu {
    CompetitorTotals sums;  // without the list
    std::map<Who, Share> shares;
  };

  void Add(const v1::VcpuSet& set);
  void Add(const v1::Competitors& window);
  CompetitorTotal Named(const Who& who, const Share& share) const;

  std::map<uint32_t, std::string> vm_names_;
  std::map<uint32_t, Member> members_;             // by TID; the latest where one was used again
  std::set<std::pair<uint32_t, uint32_t>> known_;  // VM number and index
  std::map<std::pair<uint32_t, uint32_t>, std::string> refused_;
  std::map<std::pair<uint32_t, uint32_t>, Vcpu> vcpus_;  // by VM number and index
};

}  // namespace vcpulse::reading
