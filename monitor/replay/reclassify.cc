#include "monitor/replay/reclassify.h"

#include <algorithm>
#include <limits>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "monitor/replay/recorded_settings.h"

namespace vcpulse::replay {
namespace {

constexpr uint32_t kAllEpochs = std::numeric_limits<uint32_t>::max();

}  // namespace

Reclassify::Reclassify(std::string source, timeline::StreamId id, Decide decide,
                       timeline::RecordWriter& writer)
    : source_(std::move(source)), id_(id), decide_(std::move(decide)), writer_(writer) {}

absl::Status Reclassify::Take(const timeline::Entry& entry) {
  if (entry.sequence != 0) FollowSequence(entry.sequence);
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) return TakeSession(*session);
  if (const auto* kept = std::get_if<v1::Profile>(&entry.record)) {
    if (!rejudge_) kept_ = *kept;
    return absl::OkStatus();
  }
  const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record);
  if (clock != nullptr && entry.sequence == 0) return TakeClock(*clock);
  if (absl::Status status = Start(); !status.ok()) return status;
  if (std::holds_alternative<v1::VcpuSet>(entry.record)) {
    TakeSet(entry);
  } else if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    TakeTick(*tick);
  } else {
    TakeOther(entry);
  }
  return absl::OkStatus();
}

absl::Status Reclassify::Finish() {
  if (session_) {
    if (absl::Status status = Start(); !status.ok()) return status;
  }
  for (const auto& [key, epoch] : epochs_) writer_.EndEpoch(key.first, key.second);
  const v1::ClockSnapshot clock = clock_.value_or(v1::ClockSnapshot());
  AddWaiting(clock.mono_ns());
  return writer_.Flush(clock);
}

void Reclassify::FollowSequence(uint64_t sequence) {
  if (sequence != next_sequence_) hole_ = true;
  next_sequence_ = sequence + 1;
}

absl::Status Reclassify::TakeSession(const v1::Session& session) {
  if (!session_) {
    session_ = session;
  } else if (session_->stream_id() != session.stream_id()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source_,
        ": a second recording begins after the first: they can only be judged one at a time"));
  }
  return absl::OkStatus();
}

// All that decides how to judge has come, as other records follow.
absl::Status Reclassify::Start() {
  if (rejudge_) return absl::OkStatus();
  if (!session_) {
    return absl::InvalidArgumentError(absl::StrCat(source_, ": its session record is lost"));
  }
  const absl::StatusOr<Settings> with = decide_(*session_, kept_ ? &*kept_ : nullptr);
  if (!with.ok()) return with.status();
  rejudge_.emplace(with->choice, with->profile.values);
  rejudge_->Take(*session_);

  v1::TimelineRecord record;
  v1::Session& session = *record.mutable_session();
  session = *session_;
  session.set_derived_from(session_->stream_id());
  session.set_stream_id(id_.data(), id_.size());
  SetClassifier(with->choice, with->profile.values, with->profile.name, session);
  Add(std::move(record), std::nullopt);

  Add(KeepProfile(with->profile), std::nullopt);
  return absl::OkStatus();
}

// A chunk of the source begins: the one before it is written, with its own clock.
absl::Status Reclassify::TakeClock(const v1::ClockSnapshot& clock) {
  absl::Status status;
  if (clock_ && rejudge_) {
    status = writer_.Flush(*clock_);
    EndQuietEpochs();
  }
  clock_ = clock;
  return status;
}

// The last samples of an epoch may follow the record of its VM's end, and those of the set after
// it: they came through a queue. So it ends once a whole chunk had none.
void Reclassify::EndQuietEpochs() {
  for (auto& [key, epoch] : epochs_) {
    if (epoch.ending && epoch.quiet) {
      writer_.EndEpoch(key.first, key.second);
      rejudge_->EndEpoch(key.first, key.second);
    }
  }
  std::erase_if(epochs_,
                [](const auto& entry) { return entry.second.ending && entry.second.quiet; });
  for (auto& [key, epoch] : epochs_) epoch.quiet = true;
}

void Reclassify::MarkEnding(uint32_t vm, uint32_t before_epoch) {
  const auto first = epochs_.lower_bound({vm, 0});
  const auto last = before_epoch == kAllEpochs ? epochs_.upper_bound({vm, kAllEpochs})
                                               : epochs_.lower_bound({vm, before_epoch});
  std::for_each(first, last, [](auto& entry) { entry.second.ending = true; });
}

void Reclassify::TakeSet(const timeline::Entry& entry) {
  const auto& set = std::get<v1::VcpuSet>(entry.record);
  const VmEpoch key(set.vm(), set.epoch());
  if (epochs_.contains(key) || !timeline::IsWritable(set)) return;
  epochs_.emplace(key, Epoch{.vcpus = static_cast<size_t>(set.vcpus_size()),
                             .further_groups = static_cast<size_t>(set.further_groups_size())});
  rejudge_->Take(set);
  v1::TimelineRecord record;
  *record.mutable_vcpu_set() = set;
  record.mutable_vcpu_set()->set_classifier(
      std::string(core::ToString(rejudge_->ClassifierOf(set))));
  Add(std::move(record), set.mono_ns());
}

void Reclassify::TakeTick(const timeline::TickEntry& tick) {
  if (hole_) AddGap(tick);
  hole_ = false;
  last_tick_ = std::max(last_tick_.value_or(0), tick.sample.tick);
  const auto found = epochs_.find({tick.vm, tick.epoch});
  const auto fits = [&](const core::Sample& sample) {
    return sample.vcpus.size() == found->second.vcpus &&
           sample.further.size() == sample.vcpus.size() * found->second.further_groups;
  };
  if (found == epochs_.end() || !fits(tick.sample)) {
    ++unusable_ticks_;
    return;
  }
  Epoch& epoch = found->second;
  if (tick.epoch > 0) MarkEnding(tick.vm, tick.epoch);
  AddWaiting(tick.sample.wake_ns);
  last_mono_ns_ = tick.sample.wake_ns;
  const core::Sample* before = tick.previous;
  if (before != nullptr && before->tick != epoch.last_tick && fits(*before)) {
    writer_.AddTick(tick.vm, tick.epoch, *before, std::vector<core::Verdict>(epoch.vcpus));
  }
  writer_.AddTick(tick.vm, tick.epoch, tick.sample, rejudge_->Judge(tick));
  ++ticks_;
  epoch.quiet = false;
  epoch.last_tick = tick.sample.tick;
}

void Reclassify::AddGap(const timeline::TickEntry& tick) {
  const uint64_t first = last_tick_ ? *last_tick_ + 1 : 0;
  if (tick.sample.tick <= first) return;  // other records were lost, but no tick
  v1::TimelineRecord record;
  v1::Gap& gap = *record.mutable_gap();
  gap.set_reason(v1::Gap::REASON_SOURCE_LOST);
  gap.set_first_tick(first);
  gap.set_last_tick(tick.sample.tick - 1);
  gap.set_mono_ns(tick.sample.wake_ns);
  Add(std::move(record), tick.sample.wake_ns);
  ++gaps_added_;
}

void Reclassify::TakeOther(const timeline::Entry& entry) {
  v1::TimelineRecord record = timeline::RecordOf(entry);
  if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    // These ticks were never recorded: a hole cannot have taken them.
    if (gap->vm() == 0) last_tick_ = std::max(last_tick_.value_or(0), gap->last_tick());
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    if (change->kind() == v1::LifeCycle::KIND_VM_ENDED) MarkEnding(change->vm(), kAllEpochs);
  }
  if (record.has_summary()) {
    record.mutable_summary()->set_gaps(record.summary().gaps() + gaps_added_);
  }
  Add(std::move(record), InstantOf(entry));
}

// Records without an instant take that of the record before them, the first ones of that after.
void Reclassify::Add(v1::TimelineRecord record, std::optional<int64_t> mono_ns) {
  if (mono_ns) {
    AddWaiting(*mono_ns);
    last_mono_ns_ = mono_ns;
  }
  if (last_mono_ns_) {
    writer_.Add(std::move(record), *last_mono_ns_);
  } else {
    waiting_.push_back(std::move(record));
  }
}

void Reclassify::AddWaiting(int64_t mono_ns) {
  for (v1::TimelineRecord& record : waiting_) writer_.Add(std::move(record), mono_ns);
  waiting_.clear();
}

}  // namespace vcpulse::replay
