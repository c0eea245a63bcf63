#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "kvm/counters/group_opener.h"
#include "kvm/doctor/checks.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm::doctor {
namespace {

using State = Finding::State;
namespace fs = std::filesystem;

// kvm, kvm_intel, kvm_amd, ... as far as they are loaded or built in with parameters.
std::vector<std::string> KvmModules(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root + "/sys/module", error)) {
    const std::string name = entry.path().filename();
    if (name == "kvm" || name.starts_with("kvm_")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Whether one of the flags of the first CPU in /proc/cpuinfo is `wanted`; nothing without flags.
std::optional<bool> HasCpuFlag(const std::string& root, std::string_view wanted) {
  const std::string cpuinfo = ReadSmallFile(root + "/proc/cpuinfo").value_or("");
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    if (!ToStd(line).starts_with("flags")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    return std::ranges::find(words, ToAbsl(wanted)) != words.end();
  }
  return std::nullopt;
}

constexpr int64_t kLongest_ns = 300'000'000;
constexpr int64_t kLate_ns = 1'000'000;

void SleepUntil(int64_t deadline_ns) {
  const timespec deadline = ToTimespec(deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) != 0) {
  }
}

std::string Text(int64_t ns) { return absl::FormatDuration(absl::Microseconds(ns / 1000)); }

}  // namespace

Finding CheckKvm(const std::string& root) {
  Finding finding{.id = "kvm", .tried = "/sys/module/kvm* and /dev/kvm"};
  std::error_code error;
  const bool device = fs::exists(root + "/dev/kvm", error);
  const std::vector<std::string> modules = KvmModules(root);
  if (!device && modules.empty()) {
    finding.state = State::kFail;
    finding.prevents = true;
    finding.answered = "neither is there: this host runs no KVM guests";
    finding.fix =
        "`modprobe kvm_intel` or `modprobe kvm_amd`; where that fails, switch virtualization on in "
        "the firmware, or nested virtualization in the hypervisor";
    return finding;
  }
  const std::string names = modules.empty() ? "built in" : absl::StrJoin(modules, ", ");
  finding.answered =
      absl::StrCat(names, device ? "; /dev/kvm is present"
                                 : "; /dev/kvm is absent (in a container?), and vcpulse "
                                   "does not need it");
  return finding;
}

Finding CheckMediatedVpmu(const std::string& root) {
  Finding finding{.id = "mediated-vpmu", .tried = "enable_mediated_pmu of the KVM modules"};
  const std::string obstacle = MediatedVpmuObstacle(root);
  if (obstacle.empty()) {
    finding.answered = "off";
    return finding;
  }
  finding.state = State::kFail;
  finding.prevents = true;
  const size_t fix = obstacle.find("; ");
  finding.answered = obstacle.substr(0, fix);
  if (fix != std::string::npos) finding.fix = obstacle.substr(fix + 2);
  return finding;
}

Finding CheckNested(const std::string& root) {
  Finding finding{.id = "nested", .tried = "nested of kvm_intel and kvm_amd"};
  for (const char* module : {"kvm_intel", "kvm_amd"}) {
    const auto value =
        ReadSmallFile(absl::StrCat(root, "/sys/module/", module, "/parameters/nested"));
    if (!value) continue;
    const bool on = value->starts_with('Y') || value->starts_with('1');
    finding.answered = absl::StrCat(
        module, on ? ": on; what a guest's guest runs counts for the vCPU that runs it" : ": off");
    return finding;
  }
  finding.answered = "no such parameter";
  return finding;
}

Finding CheckVirtualHost(const std::string& root) {
  Finding finding{.id = "virtual-host", .tried = "hypervisor among the flags of /proc/cpuinfo"};
  const std::optional<bool> flag = HasCpuFlag(root, "hypervisor");
  if (!flag) {
    finding.state = State::kUnknown;
    finding.answered = "this CPU shows no such flags";
  } else if (*flag) {
    finding.state = State::kNote;
    finding.answered =
        "this host is itself a virtual machine: it counts what its own hypervisor lets it count";
  } else {
    finding.answered = "not set: this host is not a virtual machine";
  }
  return finding;
}

Finding CheckDebugfs(const std::string& root) {
  Finding finding{.id = "debugfs", .tried = "/sys/kernel/debug/kvm"};
  std::error_code error;
  const fs::directory_iterator entries(root + "/sys/kernel/debug/kvm", error);
  if (!error) {
    finding.answered = "mounted and readable";
    return finding;
  }
  finding.state = State::kNote;
  finding.answered = absl::StrCat("cannot be read (", error.message(),
                                  "): on x86 it shows the vCPU threads of any VMM, without it they "
                                  "are found by QMP or by their names");
  finding.fix = "as root `mount -t debugfs none /sys/kernel/debug`";
  return finding;
}

std::vector<int64_t> MeasureLateness_ns(int count, absl::Duration period) {
  std::vector<int64_t> lateness;
  std::thread([&] {
    prctl(PR_SET_TIMERSLACK, 1UL);
    const int64_t start = MonotonicNow_ns();
    int64_t now = start;
    for (int i = 0; i < count && now - start < kLongest_ns; ++i) {
      // From where the last one ended, so that each is one sleep however late that was.
      const int64_t deadline = now + absl::ToInt64Nanoseconds(period);
      SleepUntil(deadline);
      now = MonotonicNow_ns();
      lateness.push_back(now - deadline);
    }
  }).join();
  return lateness;
}

Finding CheckLateness(std::span<const int64_t> lateness_ns) {
  Finding finding{.id = "wake-ups"};
  if (lateness_ns.empty()) {
    finding.state = Finding::State::kUnknown;
    finding.answered = "not measured";
    return finding;
  }
  std::vector<int64_t> sorted(lateness_ns.begin(), lateness_ns.end());
  std::ranges::sort(sorted);
  // Nearest rank.
  const auto percentile = [&](size_t p) { return sorted[(sorted.size() * p + 99) / 100 - 1]; };
  finding.tried = absl::StrCat(sorted.size(), " sleeps of 1 ms with timer slack 1 ns");
  finding.answered = absl::StrCat("late by p50 ", Text(percentile(50)), ", p99 ",
                                  Text(percentile(99)), ", max ", Text(sorted.back()));
  if (percentile(99) > kLate_ns) {
    finding.state = Finding::State::kNote;
    finding.fix = "intervals of 10 ms and less want `record --realtime`, or a less busy host";
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor
