// broken_counters HOW: what `vcpulse doctor --prove` says where the counters are broken on purpose,
// a line "ID STATE: ANSWER" per finding and one with the outcome. HOW is one of
//   host-too     the guest-only bit is lost: the host counts too
//   stuck        instructions stay 0
//   wrong-event  cycles are counted in place of instructions

#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "kvm/counters/perf_events.h"
#include "kvm/doctor/proof.h"

namespace vcpulse::kvm {
namespace {

class BrokenPerfEvents final : public PerfEvents {
 public:
  explicit BrokenPerfEvents(std::string_view how) : how_(how) {}

  OrErrno<Fd> Open(perf_event_attr& attr, pid_t tid, int group_fd) override {
    const bool instructions =
        attr.type == PERF_TYPE_HARDWARE && attr.config == PERF_COUNT_HW_INSTRUCTIONS;
    if (how_ == "host-too") attr.exclude_host = 0;
    if (how_ == "wrong-event" && instructions) attr.config = PERF_COUNT_HW_CPU_CYCLES;
    OrErrno<Fd> fd = kernel_.Open(attr, tid, group_fd);
    if (fd.ok() && instructions) instruction_fds_.insert(fd.value.get());
    return fd;
  }

  OrErrno<Fd> OpenOnCpu(perf_event_attr& attr, int cpu) override {
    return kernel_.OpenOnCpu(attr, cpu);
  }

  OrErrno<uint64_t> Id(int fd) override {
    const OrErrno<uint64_t> id = kernel_.Id(fd);
    if (instruction_fds_.contains(fd)) instruction_ids_.insert(id.value);
    return id;
  }

  int EnableGroup(int leader_fd) override { return kernel_.EnableGroup(leader_fd); }

  OrErrno<size_t> Read(int leader_fd, std::span<uint64_t> words) override {
    const OrErrno<size_t> got = kernel_.Read(leader_fd, words);
    if (how_ != "stuck" || !got.ok()) return got;
    for (size_t i = 3; i + 1 < got.value; i += 2) {  // value, id
      if (instruction_ids_.contains(words[i + 1])) words[i] = 0;
    }
    return got;
  }

 private:
  KernelPerfEvents kernel_;
  std::string_view how_;
  std::set<int> instruction_fds_;
  std::set<uint64_t> instruction_ids_;
};

}  // namespace
}  // namespace vcpulse::kvm

int main(int argc, char** argv) {
  using namespace vcpulse::kvm;  // NOLINT(google-build-using-namespace)
  if (argc != 2) return 2;
  BrokenPerfEvents perf(argv[1]);
  const auto findings = doctor::Prove(perf, {});
  for (const doctor::Finding& finding : findings) {
    std::printf("%s %s: %s\n", finding.id.c_str(), doctor::ToString(finding.state).data(),
                finding.answered.c_str());
  }
  std::printf("proven %s\n", doctor::ToString(doctor::IsProven(findings)).data());
}
