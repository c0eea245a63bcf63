#pragma once

#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "monitor/core/sample.h"
#include "monitor/sampler/epoch.h"

namespace vcpulse::sampler {

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

// Reads all vCPUs of all VMs, one counter read and one scheduler read each. Two threads: control
// gives epochs and takes handovers, the tick thread calls Tick and TakeCommands. Between them only
// single-producer single-consumer queues with fixed bounds. Tick and TakeCommands allocate nothing,
// take no lock, format nothing.
class Sampler {
 public:
  struct Options {
    int64_t (*now_ns)() = nullptr;  // CLOCK_MONOTONIC, injected
    // The thread's state is read where at most this share of the interval was enabled: where a
    // vCPU may be called HALTED, its thread must not be waiting for a CPU. Negative: never.
    double state_below = 0.10;
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
  // Reads all groups; the position of the one that failed and its errno in `gap`.
  bool ReadGroups(Epoch& epoch, core::Sample& sample, Handover& gap);
  // Scheduler times and, where hardly anything ran, thread states. True where a thread has exited.
  bool ReadScheduling(Epoch& epoch, core::Sample& sample);
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
