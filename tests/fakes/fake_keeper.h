#pragma once

// What the kernel would keep of threads: records that a test writes.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <map>
#include <span>

#include "kvm/bpf/thread_keeper.h"

namespace vcpulse::fakes {

class FakeKeeper final : public kvm::ThreadKeeper {
 public:
  struct Thread {
    std::array<kvm::KeptRecord, kvm::kKeptGroups> records{};
    std::atomic<bool> is_current = true;
    int held = 0;
  };
  std::map<pid_t, Thread> threads;

  kvm::HeldThread Hold(pid_t tid, std::span<const kvm::CounterGroup> groups) override {
    Thread& thread = threads[tid];
    ++thread.held;
    return {this, tid, std::span(thread.records).first(groups.size()), &thread.is_current};
  }
  void Release(const kvm::HeldThread& held) override { --threads[held.tid()].held; }
};

}  // namespace vcpulse::fakes
