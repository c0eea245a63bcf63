#include "monitor/live/session.h"

#include <linux/perf_event.h>
#include <time.h>

#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/bpf/bpf_keeper.h"
#include "kvm/doctor/proof.h"
#include "kvm/events/pmu.h"
#include "kvm/host.h"
#include "monitor/recorder/session_record.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/sampler/tick_thread.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::live {
namespace {

uint64_t OwnCpuTime_ns() { return static_cast<uint64_t>(ClockNow_ns(CLOCK_PROCESS_CPUTIME_ID)); }

v1::CounterProof::Outcome OutcomeOf(kvm::doctor::Proven proven) {
  switch (proven) {
    case kvm::doctor::Proven::kYes:
      return v1::CounterProof::OUTCOME_PROVEN;
    case kvm::doctor::Proven::kNo:
      return v1::CounterProof::OUTCOME_DISPROVEN;
    case kvm::doctor::Proven::kNotTold:
      return v1::CounterProof::OUTCOME_NOT_TOLD;
  }
  return v1::CounterProof::OUTCOME_UNSPECIFIED;
}

v1::CounterProof ProofOf(const std::vector<kvm::doctor::Finding>& findings) {
  v1::CounterProof proof;
  proof.set_outcome(OutcomeOf(kvm::doctor::IsProven(findings)));
  for (const kvm::doctor::Finding& finding : findings) {
    v1::CounterProof::Claim& claim = *proof.add_claims();
    claim.set_id(finding.id);
    claim.set_state(std::string(kvm::doctor::ToString(finding.state)));
    claim.set_answer(finding.answered);
  }
  return proof;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Options& options) {
  const std::string of_others =
      profile::WhatIsOfOtherCpus(options.profile, kvm::ReadCpuIdentity(options.target.root));
  if (!of_others.empty() && !options.force_profile) {
    return absl::FailedPreconditionError(
        absl::StrCat(of_others, ": name another one, or force it (record --force-profile)"));
  }
  std::unique_ptr<Session> session(new Session());

  const timeline::StreamId stream_id = timeline::RandomStreamId();
  kvm::OpenOptions open = options.open;
  open.core_pmus = kvm::CorePmus(kvm::ReadPmus(options.target.root));
  if (options.profile.pause) open.wanted.pause = options.profile.pause->ToEvent();
  recorder::SessionFacts facts{
      .stream_id = stream_id,
      .tool_version = options.tool_version,
      .identity = options.identity,
      .interval_ns = absl::ToInt64Nanoseconds(options.interval),
      .realtime = options.realtime,
      .classifier = options.classifier,
      .profile = options.profile.values,
      .profile_name = options.profile.name,
      .residency = recorder::FindResidencyBasis(session->perf_, options.target.root, open.core_pmus,
                                                open.force_mediated_vpmu),
      .core_pmus = open.core_pmus};
  const std::string& no_counters_reason = facts.residency.no_counters_reason;
  if (open.wanted.HasPause() && no_counters_reason.empty()) {
    open.wanted.pause_distrust = kvm::WhyPauseIsNotBelieved(session->perf_, *open.wanted.pause);
  }
  if (options.open.require_counters && !no_counters_reason.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no hardware counter can be read, and --require-counters is given: ", no_counters_reason));
  }

  if (absl::Status status = session->LoadKeeper(options); !status.ok()) return status;
  facts.reader = session->reader();
  facts.no_bpf_reason = session->no_keeper_reason_;
  if (absl::Status status = session->OpenOutput(options, stream_id); !status.ok()) return status;
  if (options.prove) {
    session->proof_ = ProofOf(kvm::doctor::Prove(
        session->perf_, {.root = options.target.root, .pause = open.wanted.pause}));
  }
  if (options.wrap_writer) session->writer_ = options.wrap_writer(std::move(session->writer_));

  v1::TimelineRecord record;
  const kvm::HostFacts host = kvm::ReadHostFacts(options.target.root);
  *record.mutable_session() = recorder::MakeSession(host, facts);
  if (session->proof_) *record.mutable_session()->mutable_counter_proof() = *session->proof_;
  session->writer_->Add(std::move(record), MonotonicNow_ns());
  session->writer_->Add(replay::KeepProfile(options.profile), MonotonicNow_ns());
  session->AddClock();  // the recording begins here, whenever its first VM comes
  session->recording_ = std::make_unique<recorder::Recording>(
      recorder::Recording::Options{.root = options.target.root,
                                   .interval = options.interval,
                                   .open = open,
                                   .classifier = options.classifier,
                                   .profile = options.profile.values,
                                   .residency = facts.residency.bases,
                                   .statistics = options.statistics,
                                   .kernel_release = host.kernel_release,
                                   .hotspots = options.hotspots,
                                   .hotspots_source = options.hotspots_source,
                                   .guest_code = options.guest_code,
                                   .competitors = options.competitors,
                                   .keeper = session->keeper_.get(),
                                   .now_ns = MonotonicNow_ns},
      session->perf_, *session->writer_);
  return session;
}

absl::Status Session::LoadKeeper(const Options& options) {
  if (options.reader == Reader::kRead) return absl::OkStatus();
  auto keeper = kvm::LoadBpfKeeper(options.target.root);
  if (keeper.ok()) {
    keeper_ = *std::move(keeper);
    return absl::OkStatus();
  }
  no_keeper_reason_ = std::string(keeper.status().message());
  if (options.reader == Reader::kAuto) return absl::OkStatus();
  std::string message = absl::StrCat("--reader bpf: ", no_keeper_reason_);
  if (const auto log = keeper.status().GetPayload(kvm::kVerifierLog)) {
    absl::StrAppend(&message, "\n", std::string(*log));
  }
  return {keeper.status().code(), message};
}

absl::Status Session::OpenOutput(const Options& options, const timeline::StreamId& stream_id) {
  if (options.output.empty() && !options.chunk_sink) {
    return absl::InvalidArgumentError("a recording needs an output file, or a collector");
  }
  if (options.delimited && options.chunk_sink) {
    return absl::InvalidArgumentError("delimited records are no chunks: they cannot be streamed");
  }
  if (!options.output.empty()) {
    auto output = OutputFile::Create(options.output);
    if (!output.ok()) return output.status();
    output_ = std::make_unique<OutputThread>(*std::move(output));
  }
  chunk_sink_ = options.chunk_sink;
  timeline::ByteSink sink = [this](std::span<const uint8_t> bytes) { return HandOver(bytes); };
  if (options.delimited) {
    writer_ = timeline::NewDelimitedWriter(std::move(sink));
    return absl::OkStatus();
  }
  timeline::ChunkWriterOptions chunks;
  if (chunk_sink_) chunks.max_buffered_bytes = timeline::kBufferedBytesForWire;
  writer_ = timeline::NewChunkWriter(stream_id, std::move(sink), chunks);
  return absl::OkStatus();
}

absl::Status Session::HandOver(std::span<const uint8_t> bytes) {
  if (chunk_sink_) chunk_sink_->take(bytes);
  if (output_ != nullptr) {
    if (absl::Status status = output_->Append(bytes); !status.ok()) return status;
  }
  bytes_ += bytes.size();
  return absl::OkStatus();
}

std::string Session::Destination() const {
  const std::string sink = chunk_sink_ ? chunk_sink_->name : "";
  if (output_ == nullptr) return sink.empty() ? "" : absl::StrCat(" to ", sink);
  return absl::StrCat(" in ", output_->name(), sink.empty() ? "" : " and ", sink);
}

absl::Status Session::Flush() { return writer_->Flush(timeline::TakeClockSnapshot()); }

absl::Status Session::Settle(const Deadline& deadline) const {
  return output_ != nullptr ? output_->Settle(deadline) : absl::OkStatus();
}

bool Session::backlogged() const { return output_ != nullptr && output_->backlogged(); }

absl::Status Session::Finish(const Deadline& deadline) {
  return output_ != nullptr ? output_->Finish(deadline) : absl::OkStatus();
}

void Session::AddClock() {
  v1::TimelineRecord record;
  *record.mutable_clock_snapshot() = timeline::TakeClockSnapshot();
  writer_->Add(std::move(record), MonotonicNow_ns());
}

void Session::Summarize(uint64_t ticks, const std::string& end_reason) {
  // Where VMs are recorded, it ends with their last samples: what follows is no gap.
  if (recording_->idle()) AddClock();
  const recorder::Progress progress = recording_->progress();
  v1::TimelineRecord record;
  v1::Summary& summary = *record.mutable_summary();
  summary.set_ticks(ticks);
  summary.set_vcpu_samples(progress.vcpu_samples);
  summary.set_gaps(progress.gaps);
  summary.set_cpu_ns(OwnCpuTime_ns());
  summary.set_end_reason(end_reason);
  writer_->Add(std::move(record), MonotonicNow_ns());
}

}  // namespace vcpulse::live
