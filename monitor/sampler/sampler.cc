#include "monitor/sampler/sampler.h"

#include <algorithm>
#include <span>
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

// The further groups of one vCPU.
std::span<core::GroupSample> FurtherOf(core::Sample& sample, size_t vcpu) {
  const size_t count = sample.FurtherGroups();
  return std::span(sample.further).subspan(vcpu * count, count);
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
  epoch.free.consume_all([&](core::Sample* free) { epoch.spare.push_back(free); });
  if (epoch.spare.empty() || results_.write_available() < 2 || !FlushDropped(epoch)) {
    Drop(epoch, tick);
    return;
  }
  core::Sample* const sample = epoch.spare.back();
  epoch.spare.pop_back();
  sample->tick = tick;
  sample->deadline_ns = deadline_ns;
  sample->wake_ns = wake_ns;

  Handover handover{.epoch = &epoch, .ticks = {tick, tick}};
  if (!ReadCounters(epoch, *sample, handover)) {
    handover.kind = Handover::Kind::kReadFailed;
    handover.mono_ns = options_.now_ns();
    // The memory goes back as that of a whole sample does.
    handover.sample = sample;
  } else {
    handover.sample = sample;
    handover.last = ReadScheduling(epoch, *sample);
    handover.mono_ns = wake_ns;
    epoch.ended = handover.last;
  }
  results_.push(handover);
}

bool Sampler::ReadCounters(Epoch& epoch, core::Sample& sample, Handover& gap) const {
  int64_t now_ns = options_.now_ns();
  for (size_t i = 0; i < epoch.vcpus.size(); ++i) {
    gap.error = epoch.vcpus[i].ReadCounters(options_.policy, now_ns, options_.now_ns,
                                            sample.vcpus[i], FurtherOf(sample, i));
    if (gap.error == 0) continue;
    gap.vcpu = i;
    return false;
  }
  return true;
}

bool Sampler::ReadScheduling(Epoch& epoch, core::Sample& sample) const {
  bool exited = false;
  for (size_t i = 0; i < epoch.vcpus.size(); ++i) {
    const bool gone =
        epoch.vcpus[i].ReadScheduling(options_.policy, sample.vcpus[i], FurtherOf(sample, i));
    exited = exited || gone;
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
    : vm(vm_number), number(epoch_number), buffers(samples), free(samples) {
  spare.reserve(samples);
}

absl::StatusOr<std::unique_ptr<Epoch>> Epoch::Start(uint32_t vm, uint32_t number,
                                                    kvm::OpenedGroups& opened, size_t buffers,
                                                    kvm::ThreadKeeper* keeper) {
  auto epoch = std::make_unique<Epoch>(vm, number, buffers);
  const size_t further = opened.groups.empty() ? 0 : opened.groups.front().size() - 1;
  for (size_t i = 0; i < opened.groups.size(); ++i) {
    epoch->vcpus.emplace_back(std::move(opened.groups[i]), std::move(opened.scheduling.at(i)));
  }
  opened.groups.clear();
  opened.scheduling.clear();
  for (core::Sample& sample : epoch->buffers) {
    sample.vcpus.resize(epoch->vcpus.size());
    sample.further.resize(epoch->vcpus.size() * further);
    epoch->free.push(&sample);
  }
  for (size_t i = 0; i < epoch->vcpus.size(); ++i) {
    const kvm::Vcpu& vcpu = opened.vcpus.at(i);
    if (const int error = epoch->vcpus[i].Enable(); error != 0) {
      return absl::ErrnoToStatus(
          error, absl::StrCat("enabling the counters of vCPU ", vcpu.index, ", thread ", vcpu.tid));
    }
    epoch->vcpus[i].KeepBy(keeper, vcpu.tid);
  }
  return epoch;
}

}  // namespace vcpulse::sampler
