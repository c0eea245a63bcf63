#include "kvm/hotspots/address_sampler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/group_opener.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/events/pmu.h"
#include "kvm/host.h"
#include "kvm/hotspots/guest_code.h"
#include "kvm/hotspots/kvm_exit_format.h"
#include "kvm/hotspots/registers_text.h"
#include "kvm/proc_files.h"
#include "kvm/proc_tree.h"
#include "kvm/tracing/sample_ring.h"
#include "kvm/tracing/tracepoint_format.h"

namespace vcpulse::kvm {
namespace {

constexpr std::array<std::string_view, 3> kSources = {"cycles", "kvm-exit", "qmp"};
constexpr absl::Duration kQmpTimeout = absl::Milliseconds(200);
constexpr int64_t kQmpPause_ns = 250'000'000;
constexpr size_t kMostStacks = 4;  // in one look, over the vCPUs in turn

// A ring per vCPU.
class RingSampler final : public AddressSampler {
 public:
  RingSampler(std::vector<SampleRing> rings, std::optional<KvmExitFormat> exits)
      : AddressSampler(rings.size()), rings_(std::move(rings)), exits_(std::move(exits)) {}

  AddressSource source() const override {
    return exits_ ? AddressSource::kKvmExit : AddressSource::kCycles;
  }

  absl::Status Start() override { return ForEach(&SampleRing::Enable, "starting"); }

  absl::Status Stop() override {
    absl::Status status = ForEach(&SampleRing::Disable, "stopping");
    status.Update(Collect());
    return status;
  }

  absl::Status Collect() override {
    bool whole = true;
    for (size_t i = 0; i < rings_.size(); ++i) {
      AddressCounts& counts = counts_[i];
      RingRecords into;
      into.address = [&counts](GuestAddress address) { ++counts.counts[address]; };
      into.lost = [&counts](uint64_t lost) { counts.lost += lost; };
      into.raw = [&](const RawSample& sample) {
        const auto address = exits_->AddressOf(sample.record);
        if (address) ++counts.counts[{.address = *address, .mode = ModeOfAddress(*address)}];
      };
      rings_[i].Take([&](std::span<const uint8_t> records) {
        whole = ReadRecords(records, exits_.has_value(), into) && whole;
      });
    }
    return whole ? absl::OkStatus() : absl::DataLossError("the kernel's samples make no sense");
  }

 private:
  absl::Status ForEach(int (SampleRing::*action)() const, std::string_view what) {
    for (const SampleRing& ring : rings_) {
      const int error = (ring.*action)();
      if (error != 0)
        return absl::ErrnoToStatus(error, absl::StrCat(ToAbsl(what), " the sampling"));
    }
    return absl::OkStatus();
  }

  std::vector<SampleRing> rings_;
  std::optional<KvmExitFormat> exits_;  // of kKvmExit
};

class QmpSampler final : public AddressSampler {
 public:
  QmpSampler(const Vm& vm, bool stacks)
      : AddressSampler(vm.vcpus.size()), vm_(vm), stacks_(stacks) {}

  AddressSource source() const override { return AddressSource::kQmp; }
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Stop() override { return absl::OkStatus(); }

  absl::Status Collect() override {
    if (MonotonicNow_ns() < not_before_ns_) return absl::OkStatus();
    const absl::Status status = Look();
    // From its end on: a look at many vCPUs takes its time, and the VM shall run in between.
    not_before_ns_ = MonotonicNow_ns() + kQmpPause_ns;
    return status;
  }

 private:
  absl::Status Look() {
    const absl::StatusOr<std::vector<std::string>> texts = Registers();
    if (!texts.ok()) return texts.status();
    for (size_t i = 0; i < texts->size(); ++i) {
      const auto address = AddressInRegisters((*texts)[i]);
      if (!address) continue;
      ++(IsHaltedInRegisters((*texts)[i]) ? counts_[i].halted : counts_[i].counts[*address]);
    }
    if (stacks_) LookAtStacks(*texts);
    return absl::OkStatus();
  }

  // In the order of our vCPUs; empty where QEMU has none of that index.
  absl::StatusOr<std::vector<std::string>> Registers() const {
    absl::StatusOr<QmpReply> reply =
        QueryQmp(vm_.qmp_address, kQmpTimeout, QmpQuestions::kRegisters);
    if (!reply.ok()) return reply.status();
    std::vector<std::string> texts(vm_.vcpus.size());
    for (size_t i = 0; i < reply->answers.cpus.size(); ++i) {
      const auto vcpu = std::ranges::find(vm_.vcpus, reply->answers.cpus[i].index, &Vcpu::index);
      if (vcpu == vm_.vcpus.end()) continue;
      texts[static_cast<size_t>(vcpu - vm_.vcpus.begin())] =
          std::move(reply->answers.monitor_texts[i]);
    }
    return texts;
  }

  // RBP is any value on x86: kernels are built without frame pointers.
  static bool StandsAt(const StackRegisters& now, const StackRegisters& before) {
    return now.stack == before.stack && (now.isa == Isa::kX86 || now.frame == before.frame);
  }

  // The vCPUs run on between two questions, so the registers are asked for once more: a stack that
  // has moved meanwhile is not kept.
  // Where QEMU does not answer there are none: the registers were the matter.
  void LookAtStacks(const std::vector<std::string>& before) {
    std::vector<std::optional<StackLook>> read(vm_.vcpus.size());
    size_t stacks = 0;
    for (size_t turn = 0; turn < before.size() && stacks < kMostStacks; ++turn) {
      const size_t i = next_++ % before.size();
      const auto registers = StackRegistersIn(before[i]);
      if (!registers || registers->at.mode != GuestMode::kKernel ||
          IsHaltedInRegisters(before[i]) || looks_[i].size() == kMostLooks) {
        continue;
      }
      auto memory = ReadGuestMemory(vm_, vm_.vcpus[i].index, registers->stack, kStackBytes);
      if (!memory.ok()) break;
      read[i] = {.registers = *registers, .memory = *std::move(memory)};
      ++stacks;
    }
    if (stacks == 0) return;
    const absl::StatusOr<std::vector<std::string>> after = Registers();
    if (!after.ok()) return;
    for (size_t i = 0; i < read.size(); ++i) {
      const auto now = StackRegistersIn((*after)[i]);
      if (!read[i] || !now || !StandsAt(*now, read[i]->registers)) continue;
      looks_[i].push_back(*std::move(read[i]));
    }
  }

  Vm vm_;
  bool stacks_;
  size_t next_ = 0;  // vCPU whose stack is read next
  int64_t not_before_ns_ = 0;
};

using Opened = absl::StatusOr<std::unique_ptr<AddressSampler>>;

Opened OpenRings(PerfEvents& perf, const Vm& vm, const std::string& root,
                 const perf_event_attr& attr, const std::string& event,
                 std::optional<KvmExitFormat> exits) {
  std::vector<SampleRing> rings;
  const ProcTree tree(root);
  for (const Vcpu& vcpu : vm.vcpus) {
    OrErrno<SampleRing> ring = SampleRing::Open(perf, attr, vcpu.tid);
    if (!ring.ok()) {
      return absl::FailedPreconditionError(
          AdviseOnOpenFailure({.error = ring.error,
                               .event = event,
                               .tid = vcpu.tid,
                               .paranoid = PerfEventParanoid(root),
                               .owner = OwnerOfProcess(root, vm.pid)}));
    }
    if (const int error = ring.value.Map(); error != 0) {
      return absl::ErrnoToStatus(
          error,
          "no memory for samples (limits of this user: kernel.perf_event_mlock_kb, ulimit -l)");
    }
    // The TID may be another thread's by now.
    const auto thread = tree.ThreadStat(vm.pid, vcpu.tid);
    if (!thread || thread->start_time_ticks != vcpu.start_time_ticks) {
      return absl::NotFoundError(absl::StrCat("the thread of vCPU ", vcpu.index, " has ended"));
    }
    // Without a filter the same exits are sorted out here.
    if (exits) static_cast<void>(ring.value.SetFilter(exits->filter()));
    rings.push_back(std::move(ring.value));
  }
  return std::make_unique<RingSampler>(std::move(rings), std::move(exits));
}

Opened OpenCycles(PerfEvents& perf, const Vm& vm, const AddressSamplerOptions& options) {
  const std::string obstacle = MediatedVpmuObstacle(options.root);
  if (!obstacle.empty() && !options.force_mediated_vpmu) {
    return absl::FailedPreconditionError(obstacle);
  }
  if (CorePmus(ReadPmus(options.root)).size() > 1) {
    return absl::UnimplementedError("on a hybrid CPU it would sample the cores of one kind alone");
  }
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_CPU_CYCLES;
  attr.exclude_host = 1;
  attr.precise_ip = 0;  // PEBS of a guest would be taken from it
  attr.freq = 1;
  attr.sample_freq = options.frequency_hz;
  attr.sample_type = kIpSampleType;
  return OpenRings(perf, vm, options.root, attr, "cycles", std::nullopt);
}

Opened OpenKvmExits(PerfEvents& perf, const Vm& vm, const AddressSamplerOptions& options) {
  const absl::StatusOr<TracepointFormat> format =
      ReadTracepointFormat(options.root, "kvm", "kvm_exit");
  if (!format.ok()) return format.status();
  std::optional<KvmExitFormat> exits = KvmExitFormat::From(*format);
  if (!exits) {
    return absl::UnimplementedError("kvm:kvm_exit has other fields on this kernel than are known");
  }
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = exits->id();
  attr.sample_period = 1;
  attr.sample_type = kRawSampleType;
  return OpenRings(perf, vm, options.root, attr, "kvm:kvm_exit", std::move(exits));
}

Opened OpenQmp(const Vm& vm, bool stacks) {
  if (absl::Status status = MayLookInside(vm); !status.ok()) return status;
  return std::make_unique<QmpSampler>(vm, stacks);
}

}  // namespace

std::string_view ToString(AddressSource source) { return kSources[static_cast<size_t>(source)]; }

std::optional<AddressSource> FindAddressSource(std::string_view name) {
  const auto found = std::ranges::find(kSources, name);
  if (found == kSources.end()) return std::nullopt;
  return static_cast<AddressSource>(found - kSources.begin());
}

absl::StatusOr<std::unique_ptr<AddressSampler>> AddressSampler::Open(
    PerfEvents& perf, const Vm& vm, const AddressSamplerOptions& options) {
  std::string refused;
  for (size_t i = 0; i < kSources.size(); ++i) {
    const auto source = static_cast<AddressSource>(i);
    const bool is_meant = options.source ? options.source == source
                                         : options.qmp_too || source != AddressSource::kQmp;
    if (!is_meant) continue;
    Opened opened = source == AddressSource::kCycles    ? OpenCycles(perf, vm, options)
                    : source == AddressSource::kKvmExit ? OpenKvmExits(perf, vm, options)
                                                        : OpenQmp(vm, options.stacks);
    if (opened.ok()) {
      (*opened)->refused_ = refused;
      return opened;
    }
    absl::StrAppend(&refused, refused.empty() ? "" : "; ", ToAbsl(kSources[i]), ": ",
                    opened.status().message());
  }
  return absl::FailedPreconditionError(
      absl::StrCat("VM ", vm.name, " (PID ", vm.pid, ") cannot be sampled: ", refused));
}

}  // namespace vcpulse::kvm
