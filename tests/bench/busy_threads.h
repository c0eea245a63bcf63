#pragma once

// Another process with threads that look like vCPUs: each works a little and sleeps.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "kvm/proc_files.h"
#include "kvm/vm.h"

namespace vcpulse::bench {

class BusyThreads {
 public:
  // `work` in every `period`, or never anything where work is 0.
  BusyThreads(int count, std::chrono::microseconds work, std::chrono::microseconds period)
      : pid_(fork()) {
    if (pid_ == 0) Become(count, work, period);
    while (Tids().size() < static_cast<size_t>(count) + 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;
  ~BusyThreads() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // As a VM whose vCPUs are these threads.
  kvm::Vm AsVm() const {
    kvm::Vm vm;
    vm.pid = pid_;
    vm.start_time_ticks = StartTime(pid_);
    vm.name = "bench-" + std::to_string(pid_);
    for (const pid_t tid : Tids()) {
      if (tid == pid_) continue;
      kvm::Vcpu vcpu;
      vcpu.index = static_cast<int>(vm.vcpus.size());
      vcpu.tid = tid;
      vcpu.found_by = kvm::FoundBy::kThreadName;
      vcpu.proof = kvm::Proof::kFd;
      vcpu.start_time_ticks = StartTime(tid);
      vm.vcpus.push_back(vcpu);
    }
    return vm;
  }

 private:
  uint64_t StartTime(pid_t tid) const {
    const auto text = kvm::ReadSmallFile("/proc/" + std::to_string(pid_) + "/task/" +
                                         std::to_string(tid) + "/stat");
    const auto stat = text ? kvm::ParseTaskStat(*text) : std::nullopt;
    return stat ? stat->start_time_ticks : 0;
  }

  std::vector<pid_t> Tids() const {
    std::vector<pid_t> tids;
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      tids.push_back(std::stoi(task.path().filename()));
    }
    return tids;
  }

  [[noreturn]] static void Become(int count, std::chrono::microseconds work,
                                  std::chrono::microseconds period) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([=] {
        prctl(PR_SET_NAME, ("CPU " + std::to_string(i) + "/KVM").c_str());
        while (true) {
          const auto end = std::chrono::steady_clock::now() + work;
          while (std::chrono::steady_clock::now() < end) {
          }
          std::this_thread::sleep_for(period - work);
        }
      });
    }
    while (true) pause();
  }

  pid_t pid_;
};

}  // namespace vcpulse::bench
