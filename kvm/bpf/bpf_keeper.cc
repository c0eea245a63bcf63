#include "kvm/bpf/bpf_keeper.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/bpf/bpf_host.h"
#include "kvm/counters/perf_events.h"

extern "C" {
extern const char vcpulse_bpf_program[];
extern const char vcpulse_bpf_program_end[];
}

namespace vcpulse::kvm {
namespace {

constexpr size_t kMappedBytes = sizeof(KeptRecord) * kKeptRecords;

struct ObjectCloser {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
struct LinkDestroyer {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Object = std::unique_ptr<bpf_object, ObjectCloser>;
using Link = std::unique_ptr<bpf_link, LinkDestroyer>;

// What libbpf says from the begin to the end of this object. It has one function for the whole
// process, which others may have set.
class Said {
 public:
  Said() : lock_(mutex), before_(libbpf_set_print(Listen)) { text.clear(); }
  ~Said() { libbpf_set_print(before_); }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;

  static const std::string& Text() { return text; }

 private:
  __attribute__((format(printf, 2, 0))) static int Listen(libbpf_print_level level,
                                                          const char* format, va_list arguments) {
    constexpr size_t kMost = size_t{256} << 10;
    if (level == LIBBPF_DEBUG || text.size() > kMost) return 0;
    va_list again;
    va_copy(again, arguments);
    const int size = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    if (size <= 0) return 0;
    const size_t before = text.size();
    text.resize(before + static_cast<size_t>(size) + 1);
    std::vsnprintf(text.data() + before, static_cast<size_t>(size) + 1, format, arguments);
    text.pop_back();
    return size;
  }

  static inline std::mutex mutex;
  static inline std::string text;  // under mutex
  std::lock_guard<std::mutex> lock_;
  libbpf_print_fn_t before_;
};

// While there is a Said.
absl::Status Refused(const BpfHost& host, int error) {
  const std::string why = WhyBpfWasRefused(host, error);
  absl::Status status =
      error == EPERM ? absl::PermissionDeniedError(why) : absl::FailedPreconditionError(why);
  const bool by_verifier = error == EACCES || error == EINVAL;
  if (by_verifier && !Said::Text().empty()) {
    status.SetPayload(kVerifierLog, absl::Cord(Said::Text()));
  }
  return status;
}

class BpfKeeper final : public ThreadKeeper {
 public:
  BpfKeeper(Object object, std::vector<Link> links, const KeptRecord* records)
      : object_(std::move(object)),
        links_(std::move(links)),
        records_(records),
        current_(kKeptRecords),
        places_(bpf_object__find_map_fd_by_name(object_.get(), "vcp_places")),
        counters_(bpf_object__find_map_fd_by_name(object_.get(), "vcp_counters")),
        clean_(bpf_object__find_map_fd_by_name(object_.get(), "vcp_records")) {
    for (uint32_t i = 0; i < kKeptRecords; ++i) free_.push_back(i);
  }
  ~BpfKeeper() override {
    links_.clear();
    munmap(const_cast<KeptRecord*>(records_), kMappedBytes);
  }
  BpfKeeper(const BpfKeeper&) = delete;
  BpfKeeper& operator=(const BpfKeeper&) = delete;

  HeldThread Hold(pid_t tid, std::span<const CounterGroup> groups) override {
    if (groups.size() > kKeptGroups) return {};
    const std::optional<uint32_t> first = TakeRecords(groups.size());
    if (!first) return {};
    KeptPlace place{.first = *first, .groups = static_cast<uint32_t>(groups.size())};
    for (size_t g = 0; g < groups.size(); ++g) {
      const uint32_t record = *first + static_cast<uint32_t>(g);
      if (!Clean(record, tid) || !PutCounters(record, groups[g])) {
        PutBack(*first, groups.size());
        return {};
      }
      place.events[g] = static_cast<uint32_t>(groups[g].events().size());
    }
    const auto before = of_threads_.find(tid);
    if (before != of_threads_.end()) current_[before->second].store(false);
    current_[*first].store(true);
    const auto key = static_cast<uint32_t>(tid);
    if (bpf_map_update_elem(places_, &key, &place, BPF_ANY) != 0) {
      current_[*first].store(false);
      PutBack(*first, groups.size());
      return {};
    }
    of_threads_[tid] = *first;
    return HeldThread(this, tid, {records_ + *first, groups.size()}, &current_[*first]);
  }

  void Release(const HeldThread& held) override {
    const auto first = static_cast<uint32_t>(held.records().data() - records_);
    const auto current = of_threads_.find(held.tid());
    if (current != of_threads_.end() && current->second == first) {
      const auto key = static_cast<uint32_t>(held.tid());
      bpf_map_delete_elem(places_, &key);
      of_threads_.erase(current);
    }
    current_[first].store(false);
    PutBack(first, held.records().size());
  }

 private:
  // Records that follow each other. Those given back wait behind all others: the program may still
  // be at work on them for a moment.
  std::optional<uint32_t> TakeRecords(size_t count) {
    for (size_t tries = 0; tries < free_.size() && free_.size() >= count; ++tries) {
      bool adjacent = true;
      for (size_t i = 1; i < count; ++i) adjacent = adjacent && free_[i] == free_[0] + i;
      if (adjacent) {
        const uint32_t first = free_.front();
        free_.erase(free_.begin(), free_.begin() + static_cast<ptrdiff_t>(count));
        return first;
      }
      free_.push_back(free_.front());
      free_.pop_front();
    }
    return std::nullopt;
  }

  void PutBack(uint32_t first, size_t count) {
    for (size_t g = 0; g < count; ++g) {
      const uint32_t record = first + static_cast<uint32_t>(g);
      for (uint32_t k = 0; k < kKeptEvents; ++k) {
        const uint32_t at = record * kKeptEvents + k;
        bpf_map_delete_elem(counters_, &at);  // the kernel lets go of the event
      }
      free_.push_back(record);
    }
  }

  // The sequence goes on: a write that is under way there must not look like a whole one.
  bool Clean(uint32_t record, pid_t tid) {
    KeptRecord nothing{};
    nothing.sequence = (__atomic_load_n(&records_[record].sequence, __ATOMIC_RELAXED) | 1) + 1;
    nothing.tid = static_cast<uint32_t>(tid);
    return bpf_map_update_elem(clean_, &record, &nothing, BPF_ANY) == 0;
  }

  bool PutCounters(uint32_t record, const CounterGroup& group) {
    uint32_t at = record * kKeptEvents;
    for (const Fd& counter : group.descriptors()) {
      const int fd = counter.get();
      if (bpf_map_update_elem(counters_, &at, &fd, BPF_ANY) != 0) return false;
      ++at;
    }
    return true;
  }

  Object object_;
  std::vector<Link> links_;
  const KeptRecord* records_;
  std::vector<std::atomic<bool>> current_;          // by a thread's first record
  std::unordered_map<pid_t, uint32_t> of_threads_;  // the first record of each
  std::deque<uint32_t> free_;
  int places_;
  int counters_;
  int clean_;
};

// Whether what is kept of this very thread is what it did: the tracepoints are no promise of the
// kernel's, and a thread's number here may be another's there.
std::string WhyNotKept(ThreadKeeper& keeper) {
  const Event clock{
      .name = "task-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
  KernelPerfEvents perf;
  std::vector<RefusedEvent> refused;
  OrErrno<CounterGroup> group = CounterGroup::Open(perf, gettid(), {&clock, 1}, refused);
  if (!group.ok() || group.value.Enable() != 0) return "";  // nothing to try it with
  const HeldThread held = keeper.Hold(gettid(), {&group.value, 1});
  std::array<KeptRecord, kKeptGroups> records{};
  for (int i = 0; i < 100; ++i) {
    const int64_t before_ns = MonotonicNow_ns();
    const timespec nap{.tv_sec = 0, .tv_nsec = 200'000};
    nanosleep(&nap, nullptr);
    if (!held.CopyTo(records)) continue;
    const auto taken_ns = static_cast<int64_t>(records[0].taken_ns);
    const bool plausible = taken_ns > before_ns && taken_ns <= MonotonicNow_ns();
    if (plausible && records[0].counts[0] > 0) return "";
  }
  return "the kernel takes the program, but nothing comes of it";
}

absl::StatusOr<std::unique_ptr<ThreadKeeper>> LoadAndAttach(const BpfHost& host) {
  const Said said;
  const std::string_view bytes(vcpulse_bpf_program,
                               static_cast<size_t>(vcpulse_bpf_program_end - vcpulse_bpf_program));
  const bpf_object_open_opts options{.sz = sizeof(bpf_object_open_opts), .object_name = "vcpulse"};
  Object object(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
  if (!object) return Refused(host, errno);
  if (const int error = bpf_object__load(object.get()); error != 0) return Refused(host, -error);
  std::vector<Link> links;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    links.emplace_back(bpf_program__attach(program));
    if (!links.back()) return Refused(host, errno);
  }
  const int records_fd = bpf_object__find_map_fd_by_name(object.get(), "vcp_records");
  void* const mapped = mmap(nullptr, kMappedBytes, PROT_READ, MAP_SHARED, records_fd, 0);
  if (mapped == MAP_FAILED) return Refused(host, errno);
  return std::make_unique<BpfKeeper>(std::move(object), std::move(links),
                                     static_cast<const KeptRecord*>(mapped));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadKeeper>> LoadBpfKeeper(const std::string& root) {
  const BpfHost host = ReadBpfHost(root);
  if (const std::string why = WhyNoBpf(host); !why.empty()) {
    return absl::PermissionDeniedError(why);
  }
  auto keeper = LoadAndAttach(host);
  if (!keeper.ok()) return keeper;
  if (const std::string why = WhyNotKept(**keeper); !why.empty()) {
    return absl::FailedPreconditionError(why);
  }
  return keeper;
}

}  // namespace vcpulse::kvm
