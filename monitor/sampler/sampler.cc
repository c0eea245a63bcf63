#include "monitor/sampler/sampler.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::sampler {
namespace {

constexpr size_t kCommandQueue = 2 * kMaxEpochs;
constexpr size_t kResultQueue = 16384;

constexpr absl::Duration kBufferedTime = absl::Seconds(2);
constexpr absl::Duration kLeastBufferedTime = absl::Milliseconds(200);
constexpr size_t kFewestBuffers = 16;
constexpr size_t kMostBuffers = 2048;
constexpr size_t kBufferBudgetBytes = size_t{64} << 20;
constexpr size_t kShareOfBudget = 4;

core::ThreadState StateOf(char letter) {
  switch (letter) {
    case 'S':
    case 'I':
      return core::ThreadState::kBlocked;
    case 'D':
      return core::ThreadState::kIoWait;
    case 'R':
      return core::ThreadState::kRunnable;
    case 'T':
    case 't':
      return core::ThreadState::kStopped;
    case 'Z':
    case 'X':
      return core::ThreadState::kExited;
    default:
      return core::ThreadState::kNotRead;
  }
}

}  // namespace

size_t SampleBytes(size_t vcpus, size_t groups) {
  return sizeof(core::Sample) + vcpus * sizeof(core::VcpuSample) +
         vcpus * (groups - 1) * sizeof(core::GroupSample);
}

size_t BuffersFor(absl::Duration interval, size_t sample_bytes, size_t taken_bytes) {
  const auto in = [interval](absl::Duration time) {
    return static_cast<size_t>(std::min(absl::FDivDuration(time, interval), 1e6)) + 1;
  };
  const size_t left = kBufferBudgetBytes - std::min(taken_bytes, kBufferBudgetBytes);
  const size_t share = left / kShareOfBudget / sample_bytes;
  const size_t least = std::max(kFewestBuffers, in(kLeastBufferedTime));
  return std::clamp(std::min(in(kBufferedTime), share), least, kMostBuffers);
}

Sampler::Sampler(const Options& options)
    : options_(options), commands_(kCommandQueue), results_(kResultQueue) {
  epochs_.reserve(2 * kMaxEpochs);  // each VM's next epoch is added before its last one is let go
}

bool Sampler::Add(Epoch* epoch) { return commands_.push({Command::Kind::kAdd, epoch}); }

bool Sampler::Retire(Epoch* epoch) { return commands_.push({Command::Kind::kRetire, epoch}); }

void Sampler::TakeCommands() {
  Command command;
  while (epochs_.size() < epochs_.capacity() && commands_.pop(command)) {
    if (command.kind == Command::Kind::kAdd) {
      epochs_.push_back(command.epoch);
    } else {
      command.epoch->retiring = true;
    }
  }
  LetGoOfRetired();
}

void Sampler::LetGoOfRetired() {
  std::erase_if(epochs_, [this](Epoch* epoch) {
    if (!epoch->retiring || !FlushDropped(*epoch)) return false;
    return results_.push(
        {.kind = Handover::Kind::kRetired, .epoch = epoch, .mono_ns = options_.now_ns()});
  });
}

void Sampler::Tick(uint64_t tick, int64_t deadline_ns, int64_t wake_ns) {
  if (missed_pending_) Missed(missed_, wake_ns);
  for (Epoch* epoch : epochs_) {
    if (!epoch->retiring && !epoch->ended) TickOne(*epoch, tick, deadline_ns, wake_ns);
  }
}

void Sampler::Missed(TickRange ticks, int64_t now_ns) {
  if (missed_pending_) ticks.first = std::min(ticks.first, missed_.first);
  missed_ = ticks;
  missed_pending_ =
      !results_.push({.kind = Handover::Kind::kTickMissed, .ticks = ticks, .mono_ns = now_ns});
}

void Sampler::TickOne(Epoch& epoch, uint64_t tick, int64_t deadline_ns, int64_t wake_ns) {
  // Room for a pending kQueueFull and for this tick, or ticks add up to one gap.
  core::Sample* sample = nullptr;
  if (epoch.free.read_available() == 0 || results_.write_available() < 2 || !FlushDropped(epoch) ||
      !epoch.free.pop(sample)) {
    Drop(epoch, tick);
    return;
  }
  sample->tick = tick;
  sample->deadline_ns = deadline_ns;
  sample->wake_ns = wake_ns;

  Handover handover{.epoch = &epoch, .ticks = {tick, tick}};
  if (!ReadGroups(epoch, *sample, handover)) {
    handover.kind = Handover::Kind::kReadFailed;
    handover.mono_ns = options_.now_ns();
    // The memory goes back through the control thread: it alone may push to the free queue.
    handover.sample = sample;
  } else {
    handover.sample = sample;
    handover.last = ReadScheduling(epoch, *sample);
    handover.mono_ns = wake_ns;
    epoch.ended = handover.last;
  }
  results_.push(handover);
}

bool Sampler::ReadGroups(Epoch& epoch, core::Sample& sample, Handover& gap) {
  // The end of one read is the begin of the next: one clock read per vCPU.
  int64_t now_ns = options_.now_ns();
  core::GroupSample* further = sample.further.data();
  for (size_t i = 0; i < epoch.vcpus.size(); ++i) {
    core::VcpuSample& out = sample.vcpus[i];
    kvm::VcpuGroups& groups = epoch.vcpus[i].groups;
    const kvm::OrErrno<kvm::GroupValues> values = groups.front().Read();
    if (!values.ok()) {
      gap.vcpu = i;
      gap.error = values.error;
      return false;
    }
    for (size_t g = 1; g < groups.size(); ++g) {
      const kvm::OrErrno<kvm::GroupValues> more = groups[g].Read();
      if (!more.ok()) {
        gap.vcpu = i;
        gap.error = more.error;
        return false;
      }
      *further++ = {more.value.time_enabled_ns, more.value.time_running_ns, more.value.counts};
    }
    out.read_begin_ns = now_ns;
    now_ns = options_.now_ns();
    out.read_end_ns = now_ns;
    out.time_enabled_ns = values.value.time_enabled_ns;
    out.time_running_ns = values.value.time_running_ns;
    out.counts = values.value.counts;
  }
  return true;
}

bool Sampler::ReadScheduling(Epoch& epoch, core::Sample& sample) {
  bool exited = false;
  for (size_t i = 0; i < epoch.vcpus.size(); ++i) {
    VcpuSource& source = epoch.vcpus[i];
    core::VcpuSample& out = sample.vcpus[i];
    const kvm::OrErrno<kvm::SchedulerTimes> times = source.scheduling.Read();
    out.has_scheduler_times = times.ok();
    out.run_ns = times.value.run_ns;
    out.run_delay_ns = times.value.run_delay_ns;
    out.state = core::ThreadState::kNotRead;
    bool gone = times.error == ESRCH;

    const bool first = source.previous_read_ns == 0;
    const int64_t interval_ns = out.read_end_ns - source.previous_read_ns;
    const auto ran_ns = static_cast<double>(out.time_enabled_ns - source.previous_enabled_ns);
    const bool hardly_ran = ran_ns <= options_.state_below * static_cast<double>(interval_ns);
    if (!first && hardly_ran && !gone) {
      const kvm::OrErrno<char> letter = source.scheduling.State();
      if (letter.ok()) out.state = StateOf(letter.value);
      gone = letter.error == ESRCH;
    }
    if (gone) out.state = core::ThreadState::kExited;
    exited = exited || gone;
    source.previous_enabled_ns = out.time_enabled_ns;
    source.previous_read_ns = out.read_end_ns;
  }
  return exited;
}

void Sampler::Drop(Epoch& epoch, uint64_t tick) {
  if (!epoch.dropped) epoch.dropped = TickRange{tick, tick};
  epoch.dropped->last = tick;
}

bool Sampler::FlushDropped(Epoch& epoch) {
  if (!epoch.dropped) return true;
  if (!results_.push({.kind = Handover::Kind::kQueueFull,
                      .epoch = &epoch,
                      .ticks = *epoch.dropped,
                      .mono_ns = options_.now_ns()})) {
    return false;
  }
  epoch.dropped.reset();
  return true;
}

Epoch::Epoch(uint32_t vm_number, uint32_t epoch_number, size_t samples)
    : vm(vm_number), number(epoch_number), buffers(samples), free(samples) {}

absl::StatusOr<std::unique_ptr<Epoch>> Epoch::Start(uint32_t vm, uint32_t number,
                                                    kvm::OpenedGroups& opened, size_t buffers) {
  auto epoch = std::make_unique<Epoch>(vm, number, buffers);
  for (size_t i = 0; i < opened.groups.size(); ++i) {
    epoch->vcpus.push_back(
        {.groups = std::move(opened.groups[i]), .scheduling = std::move(opened.scheduling.at(i))});
  }
  opened.groups.clear();
  opened.scheduling.clear();
  const size_t further = epoch->vcpus.empty() ? 0 : epoch->vcpus.front().groups.size() - 1;
  for (core::Sample& sample : epoch->buffers) {
    sample.vcpus.resize(epoch->vcpus.size());
    sample.further.resize(epoch->vcpus.size() * further);
    epoch->free.push(&sample);
  }
  for (size_t i = 0; i < epoch->vcpus.size(); ++i) {
    for (kvm::CounterGroup& group : epoch->vcpus[i].groups) {
      if (const int error = group.Enable(); error != 0) {
        return absl::ErrnoToStatus(
            error, absl::StrCat("enabling the counters of vCPU ", opened.vcpus.at(i).index,
                                ", thread ", opened.vcpus.at(i).tid));
      }
    }
  }
  return epoch;
}

}  // namespace vcpulse::sampler
