#pragma once

// The seam of perf events without a kernel: groups per thread, with refusals, failures and values
// that a test sets. Reads come back in the kernel's layout, members out of order, so that code
// which goes by position fails.

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kvm/base/fd.h"
#include "kvm/counters/perf_events.h"

namespace vcpulse::fakes {

class FakePerfEvents final : public kvm::PerfEvents {
 public:
  struct Group {
    uint64_t time_enabled_ns = 0;
    uint64_t time_running_ns = 0;
    std::map<uint64_t, uint64_t> counts;       // by config of a PERF_TYPE_HARDWARE event
    std::map<uint64_t, uint64_t> host_counts;  // the same for events that count the host
    std::optional<uint64_t> guest_running_ns;  // time_running_ns of groups that count guests
    int read_error = 0;
    int reads = 0;
    bool enabled = false;
    std::optional<uint32_t> page;  // its count of changes; none: no page is given
  };

  // By thread. Created at the first open, values may be set before.
  std::map<pid_t, Group> groups;
  // Values of one group alone, by thread and config of its leader, instead of those in `groups`.
  std::map<std::pair<pid_t, uint64_t>, Group> own_groups;
  // (type, config) -> errno, for every thread; and for the leader of one thread.
  std::map<std::pair<uint32_t, uint64_t>, int> refused;
  std::map<pid_t, int> refused_threads;
  int guest_only_error = 0;  // errno of hardware events with exclude_host
  // A group with more members than this is refused with EINVAL.
  size_t largest_group = 8;
  std::chrono::microseconds read_time{0};  // that each read takes
  bool disabled_leader_is_free = false;    // ...not counting a leader that is off, as Arm does
  std::vector<perf_event_attr> opened;     // attributes of every successful open

  kvm::OrErrno<Fd> Open(perf_event_attr& attr, pid_t tid, int group_fd) override {
    if (const auto it = refused_threads.find(tid); it != refused_threads.end()) {
      return {.error = it->second};
    }
    if (const auto it = refused.find({attr.type, attr.config}); it != refused.end()) {
      return {.error = it->second};
    }
    if (guest_only_error != 0 && attr.type == PERF_TYPE_HARDWARE && attr.exclude_host != 0) {
      return {.error = guest_only_error};
    }
    const int leader = group_fd;
    if (leader < -1) return {.error = EBADF};
    if (leader >= 0) {
      const std::vector<Member>& members = members_.at(leader);
      const size_t free = disabled_leader_is_free && members.front().disabled ? 1 : 0;
      if (members.size() - free >= largest_group) return {.error = EINVAL};
    }
    Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return {.error = errno};
    const int key = leader >= 0 ? leader : fd.get();
    if (leader < 0) members_[key].clear();
    members_[key].push_back({.id = ++last_id_,
                             .config = attr.config,
                             .host = attr.type == PERF_TYPE_HARDWARE && attr.exclude_host == 0,
                             .disabled = attr.disabled != 0});
    ids_[fd.get()] = last_id_;
    threads_[key] = tid;
    groups[tid];
    opened.push_back(attr);
    return {.value = std::move(fd)};
  }

  // By CPU: what OpenOnCpu gives, a descriptor of nothing.
  kvm::OrErrno<Fd> OpenOnCpu(perf_event_attr& attr, int /*cpu*/) override {
    if (const auto it = refused.find({attr.type, attr.config}); it != refused.end()) {
      return {.error = it->second};
    }
    return {.value = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))};
  }

  kvm::OrErrno<uint64_t> Id(int fd) override { return {.value = ids_.at(fd)}; }

  int EnableGroup(int leader_fd) override {
    GroupOf(leader_fd).enabled = true;
    return 0;
  }

  kvm::OrErrno<size_t> Read(int leader_fd, std::span<uint64_t> words) override {
    Group& group = GroupOf(leader_fd);
    ++group.reads;
    if (read_time.count() > 0) std::this_thread::sleep_for(read_time);
    if (group.read_error != 0) return {.error = group.read_error};
    const std::vector<Member>& members = members_.at(leader_fd);
    words[0] = members.size();
    words[1] = group.time_enabled_ns;
    words[2] = members.front().host ? group.time_running_ns
                                    : group.guest_running_ns.value_or(group.time_running_ns);
    size_t at = 3;
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      const auto& counts = member->host ? group.host_counts : group.counts;
      const auto count = counts.find(member->config);
      words[at++] = count == counts.end() ? 0 : count->second;
      words[at++] = member->id;
    }
    return {.value = at};
  }

  kvm::EventPage Page(int leader_fd) override {
    Group& group = GroupOf(leader_fd);
    if (!group.page) return {};
    return {&*group.page, {}};
  }

 private:
  struct Member {
    uint64_t id = 0;
    uint64_t config = 0;
    bool host = false;
    bool disabled = false;
  };

  Group& GroupOf(int leader_fd) {
    const pid_t tid = threads_.at(leader_fd);
    const auto own = own_groups.find({tid, members_.at(leader_fd).front().config});
    return own != own_groups.end() ? own->second : groups.at(tid);
  }

  uint64_t last_id_ = 100;
  std::map<int, std::vector<Member>> members_;  // by leader descriptor
  std::map<int, uint64_t> ids_;
  std::map<int, pid_t> threads_;
};

}  // namespace vcpulse::fakes
