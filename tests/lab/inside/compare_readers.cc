// compare_readers PID SECONDS TICK_MS: what BPF keeps of each vCPU of a VM against read(2), at real
// counters. A line per vCPU:
//   vcpu INDEX at-rest N equal N running N between N age-p50-us N age-p99-us N
// at-rest: looks at which it did not run from before a read to after another one; equal: all counts
// are those of the reads. running: looks at values that were taken while it ran, since the last
// look; between: each count lies between those of the reads around.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "kvm/bpf/bpf_keeper.h"
#include "kvm/counters/group_opener.h"
#include "kvm/discovery/discovery.h"
#include "kvm/events/pmu.h"

namespace vcpulse::kvm {
namespace {

class ComparedVcpu {
 public:
  ComparedVcpu(CounterGroup& group, HeldThread held) : group_(group), held_(std::move(held)) {}

  // A look between two reads.
  bool Compare() {
    const auto before = group_.Read();
    if (!held_.CopyTo(copies_)) return true;  // nothing so far
    const KeptRecord& kept = copies_.front();
    const auto after = group_.Read();
    const int64_t now_ns = MonotonicNow_ns();
    if (!before.ok() || !after.ok()) return false;
    const auto counts = [&](const GroupValues& read, auto holds) {
      for (size_t i = 0; i < group_.events().size(); ++i) {
        if (!holds(kept.counts[i], read.counts[i])) return false;
      }
      return true;
    };
    const bool ran = before.value.time_enabled_ns != after.value.time_enabled_ns;
    if (kept.state != KEPT_RUNNING && !ran) {
      ++at_rest_;
      equal_ += counts(after.value, [](uint64_t kept, uint64_t read) { return kept == read; });
    } else if (kept.state == KEPT_RUNNING && static_cast<int64_t>(kept.taken_ns) > last_ns_) {
      ++running_;
      between_ += counts(after.value, [](uint64_t kept, uint64_t read) { return kept <= read; }) &&
                  counts(last_, [](uint64_t kept, uint64_t read) { return kept >= read; });
    }
    last_ = after.value;
    last_ns_ = now_ns;
    return true;
  }

  // A look alone, which interrupts nothing.
  void Age() {
    if (!held_.CopyTo(copies_)) return;
    const KeptRecord& kept = copies_.front();
    if (kept.state != KEPT_RUNNING) return;  // as of now
    ages_us_.push_back((MonotonicNow_ns() - static_cast<int64_t>(kept.taken_ns)) / 1000);
  }

  void Print(int index) {
    std::ranges::sort(ages_us_);
    const auto quantile = [this](double q) -> long long {
      if (ages_us_.empty()) return 0;
      return ages_us_[static_cast<size_t>(q * static_cast<double>(ages_us_.size() - 1))];
    };
    std::printf(
        "vcpu %d at-rest %d equal %d running %d between %d age-p50-us %lld age-p99-us %lld\n",
        index, at_rest_, equal_, running_, between_, quantile(0.5), quantile(0.99));
  }

 private:
  CounterGroup& group_;
  HeldThread held_;
  std::array<KeptRecord, kKeptGroups> copies_{};
  GroupValues last_;
  int64_t last_ns_ = INT64_MAX;
  int at_rest_ = 0;
  int equal_ = 0;
  int running_ = 0;
  int between_ = 0;
  std::vector<int64_t> ages_us_;
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  if (const auto log = status.GetPayload(kVerifierLog)) {
    std::fprintf(stderr, "%s\n", std::string(*log).c_str());
  }
  return 1;
}

int Run(pid_t pid, int seconds, int tick_ms) {
  const auto vm = Discovery("/").FindByPid(pid);
  if (!vm.ok()) return Fail(vm.status());
  KernelPerfEvents perf;
  auto opened = OpenGroups(perf, "/", *vm, {.core_pmus = CorePmus(ReadPmus("/"))});
  if (!opened.ok()) return Fail(opened.status());
  auto keeper = LoadBpfKeeper("/");
  if (!keeper.ok()) return Fail(keeper.status());
  std::vector<ComparedVcpu> vcpus;
  for (size_t i = 0; i < opened->groups.size(); ++i) {
    CounterGroup& group = opened->groups[i].front();
    if (group.Enable() != 0) return 1;
    vcpus.emplace_back(group, (*keeper)->Hold(opened->vcpus[i].tid, opened->groups[i]));
  }
  const int ticks = seconds * 1000 / tick_ms;
  for (int tick = 0; tick < ticks; ++tick) {
    usleep(static_cast<useconds_t>(tick_ms) * 1000);
    for (ComparedVcpu& vcpu : vcpus) {
      if (!vcpu.Compare()) return 1;
    }
  }
  for (int tick = 0; tick < ticks; ++tick) {
    usleep(static_cast<useconds_t>(tick_ms) * 1000);
    for (ComparedVcpu& vcpu : vcpus) vcpu.Age();
  }
  for (size_t i = 0; i < vcpus.size(); ++i) vcpus[i].Print(opened->vcpus[i].index);
  return 0;
}

}  // namespace
}  // namespace vcpulse::kvm

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: compare_readers PID SECONDS TICK_MS\n"), 2;
  return vcpulse::kvm::Run(*vcpulse::ParseNumber<pid_t>(argv[1]), std::atoi(argv[2]),
                           std::atoi(argv[3]));
}
