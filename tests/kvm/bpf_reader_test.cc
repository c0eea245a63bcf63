// What the kernel keeps of threads (kvm/bpf) against what read(2) and the threads themselves say.
// Needs no guest: threads of this process stand for vCPUs, and software events for a PMU's. The lab
// compares real counters of real guests (tests/lab/lab_readers_test.cc).

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/bpf/bpf_keeper.h"
#include "kvm/counters/counter_group.h"

namespace vcpulse::kvm {
namespace {

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

void WorkFor(absl::Duration time) {
  const int64_t end_ns = MonotonicNow_ns() + absl::ToInt64Nanoseconds(time);
  while (MonotonicNow_ns() < end_ns) {
  }
}

// A thread that works while it is told to, and else sleeps.
class Worker {
 public:
  explicit Worker(int cpu) : thread_([this, cpu] { Run(cpu); }) {
    while (tid_ == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  ~Worker() {
    ends_ = true;
    Wake();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  pid_t tid() const { return tid_; }
  void Work(bool works) {
    works_ = works;
    Wake();
  }

 private:
  void Run(int cpu) {
    PinTo(cpu);
    tid_ = gettid();
    while (!ends_) {
      while (works_ && !ends_) {
      }
      const int seen = woken_;
      if (!works_ && !ends_) woken_.wait(seen);
    }
  }
  void Wake() {
    ++woken_;
    woken_.notify_all();
  }

  std::atomic<pid_t> tid_ = 0;
  std::atomic<bool> works_ = false;
  std::atomic<bool> ends_ = false;
  std::atomic<int> woken_ = 0;  // a bool that is changed twice may be waited for for ever
  std::thread thread_;
};

class BpfReader : public ::testing::Test {
 protected:
  void SetUp() override {
    auto keeper = LoadBpfKeeper("/");
    if (!keeper.ok()) GTEST_SKIP() << "no BPF here: " << keeper.status().message();
    keeper_ = *std::move(keeper);
  }

  // task-clock and page-faults of the thread, enabled.
  std::vector<CounterGroup> Count(pid_t tid) {
    const std::vector<Event> events = {
        {.name = "task-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK},
        {.name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS}};
    std::vector<RefusedEvent> refused;
    std::vector<CounterGroup> groups;
    auto group = CounterGroup::Open(perf_, tid, events, refused);
    EXPECT_TRUE(group.ok()) << std::strerror(group.error);
    EXPECT_TRUE(refused.empty());
    groups.push_back(std::move(group.value));
    EXPECT_EQ(groups.front().Enable(), 0);
    return groups;
  }

  bool LookAt(const HeldThread& held) { return held.CopyTo(copies_); }
  const KeptRecord& seen() const { return copies_.front(); }

  KernelPerfEvents perf_;
  std::unique_ptr<ThreadKeeper> keeper_;
  std::array<KeptRecord, kKeptGroups> copies_{};
};

TEST_F(BpfReader, AThreadAtRestHasTheCountsOfRead) {
  Worker worker(0);
  auto groups = Count(worker.tid());
  const HeldThread held = keeper_->Hold(worker.tid(), groups);
  ASSERT_EQ(held.records().size(), 1u);
  for (int turn = 0; turn < 20; ++turn) {
    worker.Work(true);
    absl::SleepFor(absl::Milliseconds(5));
    worker.Work(false);
    // On a busy machine it takes its time.
    for (int i = 0; i < 400 && !(LookAt(held) && seen().state == KEPT_BLOCKED); ++i) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    ASSERT_EQ(seen().state, static_cast<uint32_t>(KEPT_BLOCKED));
    EXPECT_TRUE(held.IsStillAs(seen()));
    const auto read = groups.front().Read();
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(seen().counts[1], read.value.counts[1]);
    // What the kernel does between the tracepoint and the end of the counting.
    EXPECT_NEAR(static_cast<double>(seen().counts[0]), static_cast<double>(read.value.counts[0]),
                5e5);
    EXPECT_EQ(seen().enabled_ns, seen().running_ns);
    EXPECT_EQ(seen().cpu, 0u);
  }
  EXPECT_GT(seen().counts[0], 0u);
  EXPECT_GT(seen().run_ns, 0u);
}

// Its values are those of an instant between two reads, and so between their counts.
TEST_F(BpfReader, AThreadThatRunsHasCountsBetweenThoseOfTwoReads) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one CPU: who looks has taken it";
  PinTo(1);
  Worker worker(0);
  auto groups = Count(worker.tid());
  const HeldThread held = keeper_->Hold(worker.tid(), groups);
  worker.Work(true);
  absl::SleepFor(absl::Milliseconds(30));
  constexpr int kTurns = 20;
  int running = 0;
  int fresh = 0;
  uint64_t last_taken_ns = 0;
  for (int turn = 0; turn < 500 && running < kTurns; ++turn) {
    const auto before = groups.front().Read();
    const int64_t before_ns = MonotonicNow_ns();
    absl::SleepFor(absl::Milliseconds(20));
    const bool look = LookAt(held);
    const auto after = groups.front().Read();
    ASSERT_TRUE(before.ok() && after.ok());
    // In a virtual machine its CPU may have been taken away within the program.
    if (!look) continue;
    running += seen().state == KEPT_RUNNING;
    EXPECT_LE(seen().counts[0], after.value.counts[0]);
    EXPECT_GE(seen().taken_ns, last_taken_ns);
    last_taken_ns = seen().taken_ns;
    if (static_cast<int64_t>(seen().taken_ns) < before_ns) continue;
    fresh += seen().state == KEPT_RUNNING;
    EXPECT_GE(seen().counts[0], before.value.counts[0]);
  }
  // HZ is 100 or more: each 20 ms has a tick, but for CPUs that have none.
  if (fresh == 0) GTEST_SKIP() << "CPU 0 has no scheduler tick (nohz_full)";
  EXPECT_EQ(running, kTurns);
  EXPECT_GE(fresh, kTurns / 2);
}

// A thread that wants its CPU while another one of a higher class has it, for known times.
TEST_F(BpfReader, AWaitIsMeasuredWhileItGoesOn) {
  Worker worker(0);
  auto groups = Count(worker.tid());
  const HeldThread held = keeper_->Hold(worker.tid(), groups);
  worker.Work(true);
  absl::SleepFor(absl::Milliseconds(30));
  PinTo(0);
  double waited_ns = 0;
  double held_off_ns = 0;
  const sched_param first{.sched_priority = 1};
  const sched_param none{.sched_priority = 0};
  for (int turn = 0; turn < 5; ++turn) {
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0) {
      GTEST_SKIP() << "SCHED_FIFO is not allowed";
    }
    const int64_t begin_ns = MonotonicNow_ns();
    WorkFor(absl::Milliseconds(60));
    ASSERT_TRUE(LookAt(held));
    const int64_t now_ns = MonotonicNow_ns();
    // Still without its CPU: the wait is not booked yet, and known all the same.
    EXPECT_EQ(seen().state, static_cast<uint32_t>(KEPT_WAITING));
    waited_ns += static_cast<double>(now_ns) - static_cast<double>(seen().since_ns);
    held_off_ns += static_cast<double>(now_ns - begin_ns);
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
    absl::SleepFor(absl::Milliseconds(40));
  }
  std::printf("held off %.1f ms, measured %.1f ms\n", held_off_ns * 1e-6, waited_ns * 1e-6);
  EXPECT_NEAR(waited_ns, held_off_ns, 0.05 * held_off_ns);
  // Booked, it is what the kernel's own sum says.
  ASSERT_TRUE(LookAt(held));
  EXPECT_GT(static_cast<double>(seen().run_delay_ns), 0.95 * held_off_ns);
}

// Nothing is known of a thread that sleeps when it is held; the first that happens to it is a wait.
TEST_F(BpfReader, TheFirstWakeUpIsSeen) {
  Worker worker(0);
  absl::SleepFor(absl::Milliseconds(20));
  auto groups = Count(worker.tid());
  const HeldThread held = keeper_->Hold(worker.tid(), groups);
  EXPECT_FALSE(LookAt(held));
  EXPECT_TRUE(held.IsStillAs(seen()));
  const KeptRecord asleep = seen();
  PinTo(0);
  const sched_param first{.sched_priority = 1};
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0) {
    GTEST_SKIP() << "SCHED_FIFO is not allowed";
  }
  worker.Work(true);  // it cannot run: this thread has its CPU
  WorkFor(absl::Milliseconds(20));
  const bool look = LookAt(held);
  const uint32_t state = seen().state;
  const bool still_asleep = held.IsStillAs(asleep);
  const sched_param none{.sched_priority = 0};
  pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
  EXPECT_FALSE(look);  // no values so far
  EXPECT_FALSE(still_asleep);
  EXPECT_EQ(state, static_cast<uint32_t>(KEPT_WAITING));
}

// Two groups, as of a hybrid CPU's core PMUs, are of one instant.
TEST_F(BpfReader, GroupsOfOneThreadAreKeptTogether) {
  Worker worker(0);
  std::vector<CounterGroup> groups = Count(worker.tid());
  groups.push_back(std::move(Count(worker.tid()).front()));
  const HeldThread held = keeper_->Hold(worker.tid(), groups);
  ASSERT_EQ(held.records().size(), 2u);
  worker.Work(true);
  absl::SleepFor(absl::Milliseconds(30));
  worker.Work(false);
  absl::SleepFor(absl::Milliseconds(30));
  ASSERT_TRUE(LookAt(held));
  EXPECT_EQ(copies_[0].taken_ns, copies_[1].taken_ns);
  EXPECT_GT(copies_[0].counts[0], 0u);
  EXPECT_NEAR(static_cast<double>(copies_[0].counts[0]), static_cast<double>(copies_[1].counts[0]),
              1e6);
}

TEST_F(BpfReader, AThreadThatHasEndedIsSeenToHaveExited) {
  auto worker = std::make_unique<Worker>(0);
  auto groups = Count(worker->tid());
  const HeldThread held = keeper_->Hold(worker->tid(), groups);
  worker.reset();
  for (int i = 0; i < 100 && seen().state != KEPT_EXITED; ++i) {
    LookAt(held);
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(seen().state, static_cast<uint32_t>(KEPT_EXITED));
}

TEST_F(BpfReader, ALaterHolderTakesAThreadOver) {
  Worker worker(0);
  auto groups = Count(worker.tid());
  const HeldThread first = keeper_->Hold(worker.tid(), groups);
  worker.Work(true);
  absl::SleepFor(absl::Milliseconds(30));
  worker.Work(false);
  absl::SleepFor(absl::Milliseconds(10));
  ASSERT_TRUE(LookAt(first));
  HeldThread second = keeper_->Hold(worker.tid(), groups);
  worker.Work(true);
  absl::SleepFor(absl::Milliseconds(30));
  worker.Work(false);
  absl::SleepFor(absl::Milliseconds(10));
  EXPECT_FALSE(LookAt(first));
  EXPECT_TRUE(LookAt(second));
  second = {};
  EXPECT_FALSE(LookAt(first));
}

// More threads than there are records: the others are read by read(2).
TEST_F(BpfReader, WhereThereIsNoRoomNothingIsHeld) {
  Worker worker(0);
  auto groups = Count(worker.tid());
  std::vector<HeldThread> all;
  while (all.size() <= kKeptRecords) {
    all.push_back(keeper_->Hold(worker.tid(), groups));
    if (all.back().records().empty()) break;
  }
  EXPECT_EQ(all.size(), kKeptRecords + 1u);
  all.clear();
  EXPECT_FALSE(keeper_->Hold(worker.tid(), groups).records().empty());
}

// Programs and maps in the kernel whose names are ours.
int Loaded() {
  int count = 0;
  const auto is_ours = [](const char* name) { return std::strncmp(name, "vcp_", 4) == 0; };
  __u32 id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    const int fd = bpf_prog_get_fd_by_id(id);
    bpf_prog_info info{};
    __u32 size = sizeof(info);
    if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0) count += is_ours(info.name);
    if (fd >= 0) close(fd);
  }
  id = 0;
  while (bpf_map_get_next_id(id, &id) == 0) {
    const int fd = bpf_map_get_fd_by_id(id);
    bpf_map_info info{};
    __u32 size = sizeof(info);
    if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0) count += is_ours(info.name);
    if (fd >= 0) close(fd);
  }
  return count;
}

// The kernel frees them a moment after their last user.
void AwaitLoaded(int count) {
  for (int i = 0; i < 100 && Loaded() != count; ++i) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(Loaded(), count);
}

TEST_F(BpfReader, NothingIsLeftAfterAHundredKills) {
  constexpr int kOwn = 6;  // three programs, three maps: the keeper's of this test
  AwaitLoaded(kOwn);
  keeper_.reset();
  for (int turn = 0; turn < 100; ++turn) {
    std::array<int, 2> ready{};
    ASSERT_EQ(pipe(ready.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto keeper = LoadBpfKeeper("/");
      auto groups = Count(getpid());
      const HeldThread held = (*keeper)->Hold(getpid(), groups);
      const char done = held.records().empty() ? 'n' : 'y';
      if (write(ready[1], &done, 1) != 1) _exit(1);
      while (true) pause();
    }
    close(ready[1]);
    char done = 0;
    ASSERT_EQ(read(ready[0], &done, 1), 1);
    ASSERT_EQ(done, 'y');
    close(ready[0]);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  AwaitLoaded(0);
}

}  // namespace
}  // namespace vcpulse::kvm
