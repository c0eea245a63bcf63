#include "monitor/recorder/windows.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/hotspots/code_record.h"

namespace vcpulse::recorder {
namespace {

// A second at 499 Hz has no more places; other sources may, and a record stays short.
constexpr size_t kMostAddresses = 512;
// Places of which the code is read: QMP takes about 0.5 ms each.
constexpr size_t kMostCode = 4;

v1::GuestMode ModeOf(kvm::GuestMode mode) {
  switch (mode) {
    case kvm::GuestMode::kKernel:
      return v1::GUEST_MODE_KERNEL;
    case kvm::GuestMode::kUser:
      return v1::GUEST_MODE_USER;
    case kvm::GuestMode::kUnknown:
      break;
  }
  return v1::GUEST_MODE_UNSPECIFIED;
}

void AddCounts(const kvm::AddressCounts& counts, v1::HotAddresses& record) {
  record.set_lost(counts.lost);
  record.set_halted(counts.halted);
  std::vector<std::pair<kvm::GuestAddress, uint64_t>> places(counts.counts.begin(),
                                                             counts.counts.end());
  std::ranges::stable_sort(places, std::greater(), &decltype(places)::value_type::second);
  uint64_t further = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& [place, samples] = places[i];
    if (i >= kMostAddresses) {
      further += samples;
      continue;
    }
    record.add_addresses(place.address);
    record.add_samples(samples);
    record.add_modes(ModeOf(place.mode));
  }
  record.set_further_samples(further);
}

void AddAccount(const kvm::WaitAccount& account, v1::Competitors& record) {
  record.set_waited_ns(account.waited_ns);
  record.set_unattributed_ns(account.unattributed_ns);
  if (account.run_delay_ns) record.set_run_delay_ns(*account.run_delay_ns);
  record.set_lost(account.lost);
  for (const int cpu : account.cpus) record.add_cpus(static_cast<uint32_t>(cpu));
  for (const kvm::Competitor& one : account.competitors) {
    v1::Competitor& out = *record.add_competitors();
    out.set_tid(static_cast<uint32_t>(one.tid));
    out.set_pid(static_cast<uint32_t>(one.pid));
    out.set_thread_name(one.thread_name);
    out.set_process_name(one.process_name);
    out.set_vm_name(one.vm);
    out.set_ns(one.ns);
    out.set_kernel_thread(one.is_kernel);
  }
}

// Says whose window `record` is, and when it began.
template <typename Record>
void Begin(const WindowOf& of, int64_t mono_ns, Record& record) {
  record.set_vm(of.vm);
  record.set_epoch(of.epoch);
  record.set_vcpu_index(static_cast<uint32_t>(of.one.vcpus.front().index));
  record.set_begin_mono_ns(mono_ns);
}

class HotAddressWindow final : public Window {
 public:
  HotAddressWindow(const WindowOf& of, int64_t (*now_ns)(), const OpenAddresses& open,
                   ReadCode read_code)
      : now_ns_(now_ns), vm_(of.one), read_code_(std::move(read_code)) {
    record_.set_trigger(of.trigger == Trigger::kSpinning ? v1::HotAddresses::TRIGGER_SPINNING
                                                         : v1::HotAddresses::TRIGGER_STARVED);
    auto sampler = open(of.one);
    const absl::Status status = sampler.ok() ? (*sampler)->Start() : sampler.status();
    Begin(of, now_ns_(), record_);
    if (!status.ok()) {
      record_.set_refused(std::string(status.message()));
      return;
    }
    sampler_ = *std::move(sampler);
    record_.set_source(std::string(kvm::ToString(sampler_->source())));
    record_.set_refused(sampler_->refused());
  }

  bool is_open() const override { return sampler_ != nullptr; }

  absl::Status Collect() override {
    absl::Status status = sampler_->Collect();
    AddReason(status);
    return status;
  }

  v1::TimelineRecord Close() override {
    record_.set_mono_ns(record_.begin_mono_ns());
    if (sampler_) {
      AddReason(sampler_->Stop());
      record_.set_mono_ns(now_ns_());
      AddCounts(sampler_->counts().front(), record_);
      if (read_code_) AddCode();
    }
    v1::TimelineRecord record;
    *record.mutable_hot_addresses() = std::move(record_);
    return record;
  }

  // It stops the VM, and keeps the caller waiting.
  bool IsAlone() const override { return sampler_->source() == kvm::AddressSource::kQmp; }
  bool SharesPmu() const override { return sampler_->source() == kvm::AddressSource::kCycles; }

 private:
  // What was sampled before a failure counts; the record says that there was one.
  void AddReason(const absl::Status& status) {
    if (status.ok()) return;
    std::string reason = record_.refused();
    absl::StrAppend(&reason, reason.empty() ? "" : "; ", record_.source(), ": ", status.message());
    record_.set_refused(reason);
  }

  void AddCode() {
    const auto places = kvm::HottestPlaces(sampler_->counts().front(), kMostCode);
    if (places.empty()) return;
    const auto code = read_code_(vm_, vm_.vcpus.front().index, places);
    if (!code.ok()) {
      record_.set_code_refused(std::string(code.status().message()));
      return;
    }
    for (const kvm::GuestCode& piece : *code) {
      *record_.add_code() = hotspots::RecordOf(piece);
    }
  }

  int64_t (*const now_ns_)();
  const kvm::Vm vm_;
  const ReadCode read_code_;
  v1::HotAddresses record_;
  std::unique_ptr<kvm::AddressSampler> sampler_;
};

class CompetitorWindow final : public Window {
 public:
  CompetitorWindow(const WindowOf& of, int64_t (*now_ns)(), const OpenCompetitors& open)
      : now_ns_(now_ns) {
    auto sampler = open(of.one);
    Begin(of, now_ns_(), record_);
    if (sampler.ok()) {
      sampler_ = *std::move(sampler);
    } else {
      record_.set_refused(std::string(sampler.status().message()));
    }
  }

  bool is_open() const override { return sampler_ != nullptr; }

  absl::Status Collect() override {
    absl::Status status = sampler_->Collect();
    if (!status.ok()) record_.set_ended_by(std::string(status.message()));
    return status;
  }

  v1::TimelineRecord Close() override {
    record_.set_mono_ns(record_.begin_mono_ns());
    if (sampler_) {
      record_.set_mono_ns(now_ns_());
      AddAccount(sampler_->Stop(), record_);
    }
    v1::TimelineRecord record;
    *record.mutable_competitors() = std::move(record_);
    return record;
  }

 private:
  int64_t (*const now_ns_)();
  v1::Competitors record_;
  std::unique_ptr<kvm::CompetitorSampler> sampler_;
};

}  // namespace

ReadCode PatientCodeReader(ReadCode read, int64_t (*now_ns)()) {
  // By VM (its process), until when it is not asked.
  auto quiet_until_ns = std::make_shared<std::map<pid_t, int64_t>>();
  return [read = std::move(read), now_ns, quiet_until_ns](
             const kvm::Vm& vm, int vcpu,
             std::span<const uint64_t> addresses) -> absl::StatusOr<std::vector<kvm::GuestCode>> {
    constexpr int64_t kQuiet_ns = 60'000'000'000;
    int64_t& until_ns = (*quiet_until_ns)[vm.pid];
    if (now_ns() < until_ns) {
      return absl::UnavailableError("QMP did not answer before; it is asked again after a minute");
    }
    auto code = read(vm, vcpu, addresses);
    if (!code.ok()) until_ns = now_ns() + kQuiet_ns;
    return code;
  };
}

TriggeredWindows::Open HotAddressWindows(OpenAddresses open, ReadCode read_code) {
  return [open = std::move(open), read_code = std::move(read_code)](
             const WindowOf& of, int64_t (*now_ns)()) -> std::unique_ptr<Window> {
    return std::make_unique<HotAddressWindow>(of, now_ns, open, read_code);
  };
}

TriggeredWindows::Open CompetitorWindows(OpenCompetitors open) {
  return
      [open = std::move(open)](const WindowOf& of, int64_t (*now_ns)()) -> std::unique_ptr<Window> {
        return std::make_unique<CompetitorWindow>(of, now_ns, open);
      };
}

}  // namespace vcpulse::recorder
