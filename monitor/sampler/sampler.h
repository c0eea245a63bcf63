#pragma once

// monitor/sampler is the tick: it reads every counter group and scheduler time of every VM into
// memory taken beforehand, and hands whole samples over. No Asio, no protobuf, no formatting here.

#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/bpf/thread_keeper.h"
#include "kvm/counters/group_opener.h"
#include "monitor/core/sample.h"
#include "monitor/sampler/vcpu_source.h"

namespace vcpulse::sampler {

// A span of ticks, both ends inclusive.
struct TickRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

// One VM in one epoch: its open groups and descriptors, and the memory for its samples. Made and
// destroyed by the control thread; between Sampler::Add and the kRetired handover only the tick
// thread touches it, but for `vm`, `number` and Recycle.
struct Epoch {
  // Takes over the groups and the scheduling of every vCPU in `opened`, enables the groups, and
  // takes memory for `buffers` samples. A thread that is gone already shows at the first tick. With
  // no vCPU at all its samples stand for the ticks alone. Where there is a `keeper`, which must
  // outlive it, the threads are kept by it. Errors: what enabling said.
  static absl::StatusOr<std::unique_ptr<Epoch>> Start(uint32_t vm, uint32_t number,
                                                      kvm::OpenedGroups& opened, size_t buffers,
                                                      kvm::ThreadKeeper* keeper);

  Epoch(uint32_t vm, uint32_t number, size_t buffers);

  // Gives the memory of a sample back. Control thread.
  void Recycle(core::Sample* sample) { free.push(sample); }

  const uint32_t vm;
  const uint32_t number;
  std::vector<VcpuSource> vcpus;
  std::vector<core::Sample> buffers;
  boost::lockfree::spsc_queue<core::Sample*> free;
  // Taken from `free`. The one that was used last is used next: its memory is still in a cache.
  std::vector<core::Sample*> spare;
  bool retiring = false;
  bool ended = false;                // a vCPU thread has exited: nothing more to read
  std::optional<TickRange> dropped;  // ticks without room for a sample, not yet handed over
};

// Bytes of one sample of so many vCPUs with so many groups each.
size_t SampleBytes(size_t vcpus, size_t groups);

// Samples that an epoch takes memory for, where all others took `taken_bytes`: 2 s stand between
// the tick and a writer that stalls. All epochs together have 64 MiB, of which one takes a quarter
// of what is left at most; but 16 samples and 200 ms, four drains, it gets whatever the others
// took.
size_t BuffersFor(absl::Duration interval, size_t sample_bytes, size_t taken_bytes);

// What the tick thread hands to the control thread.
struct Handover {
  enum class Kind {
    kSample,      // `sample` is whole; return it with epoch->Recycle
    kReadFailed,  // a gap: `vcpu` (position in the epoch) and `error`
    kQueueFull,   // a gap: `ticks` of this VM found no free memory
    kTickMissed,  // a gap of every VM (epoch is null): `ticks` passed while the thread was late
    kRetired,     // the tick thread has let go of the epoch for good
  };
  Kind kind = Kind::kSample;
  Epoch* epoch = nullptr;
  core::Sample* sample = nullptr;
  bool last = false;  // of kSample: a vCPU thread has exited, no sample follows in this epoch
  TickRange ticks;
  int64_t mono_ns = 0;  // CLOCK_MONOTONIC, when it was noticed
  size_t vcpu = 0;
  int error = 0;  // errno
};

// VMs at most; more are refused by the recorder.
inline constexpr size_t kMaxEpochs = 4096;

// Reads all vCPUs of all VMs, one counter read and one scheduler read each at most. Two threads:
// control gives epochs and takes handovers, the tick thread calls Tick and TakeCommands. Between
// them only single-producer single-consumer queues with fixed bounds. Tick and TakeCommands
// allocate nothing, take no lock, format nothing.
class Sampler {
 public:
  struct Options {
    int64_t (*now_ns)() = nullptr;  // CLOCK_MONOTONIC, injected
    ReadPolicy policy;
  };

  explicit Sampler(const Options& options);

  // Control thread: the sampler reads `epoch` from the next tick on, until Retire. False where the
  // command queue is full (try again after a tick).
  bool Add(Epoch* epoch);
  // Control thread: no more ticks for `epoch`; a kRetired handover follows its last one.
  bool Retire(Epoch* epoch);
  // Control thread: the next handover, false where there is none.
  bool Take(Handover& handover) { return results_.pop(handover); }

  // Tick thread: takes in what Add and Retire said.
  void TakeCommands();
  // Tick thread: one sample or one gap per VM.
  void Tick(uint64_t tick, int64_t deadline_ns, int64_t wake_ns);
  // Tick thread: these ticks were not taken.
  void Missed(TickRange ticks, int64_t now_ns);

 private:
  struct Command {
    enum class Kind { kAdd, kRetire } kind = Kind::kAdd;
    Epoch* epoch = nullptr;
  };

  void TickOne(Epoch& epoch, uint64_t tick, int64_t deadline_ns, int64_t wake_ns);
  // Reads all counters; the position of the vCPU that failed and its errno in `gap`.
  bool ReadCounters(Epoch& epoch, core::Sample& sample, Handover& gap) const;
  // Scheduler times and states. True where a thread has exited.
  bool ReadScheduling(Epoch& epoch, core::Sample& sample) const;
  void Drop(Epoch& epoch, uint64_t tick);
  // Hands a pending kQueueFull over first. False where there is no room.
  bool FlushDropped(Epoch& epoch);
  void LetGoOfRetired();

  Options options_;
  std::vector<Epoch*> epochs_;
  bool missed_pending_ = false;
  TickRange missed_;
  boost::lockfree::spsc_queue<Command> commands_;
  boost::lockfree::spsc_queue<Handover> results_;
};

}  // namespace vcpulse::sampler
