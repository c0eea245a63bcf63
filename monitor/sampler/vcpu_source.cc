#include "monitor/sampler/vcpu_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace vcpulse::sampler {
namespace {

using core::ThreadState;

ThreadState StateOf(char letter) {
  switch (letter) {
    case 'S':
    case 'I':
      return ThreadState::kBlocked;
    case 'D':
      return ThreadState::kIoWait;
    case 'R':
      return ThreadState::kRunnable;
    case 'T':
    case 't':
      return ThreadState::kStopped;
    case 'Z':
    case 'X':
      return ThreadState::kExited;
    default:
      return ThreadState::kNotRead;
  }
}

// What the thread was for most of an interval in which it hardly ran and waited for a CPU for
// `waited_ns`, whatever it is at its end.
ThreadState StateOf(const kvm::KeptRecord& record, int64_t waited_ns, int64_t interval_ns) {
  const bool lives = record.state != kvm::KEPT_STOPPED && record.state != kvm::KEPT_EXITED;
  if (lives && waited_ns > interval_ns / 2) return ThreadState::kRunnable;
  switch (record.state) {
    case kvm::KEPT_WAITING:
    case kvm::KEPT_RUNNING:
    case kvm::KEPT_BLOCKED:
      return ThreadState::kBlocked;
    case kvm::KEPT_IO_WAIT:
      return ThreadState::kIoWait;
    case kvm::KEPT_STOPPED:
      return ThreadState::kStopped;
    case kvm::KEPT_EXITED:
      return ThreadState::kExited;
    default:
      return ThreadState::kNotRead;
  }
}

// Off its CPU for something to happen, and not for its turn.
bool IsAtRest(ThreadState state) {
  return state == ThreadState::kBlocked || state == ThreadState::kIoWait ||
         state == ThreadState::kStopped;
}

template <typename Group>
void CopyCounts(const kvm::KeptRecord& record, Group& out) {
  out.time_enabled_ns = record.enabled_ns;
  out.time_running_ns = record.running_ns;
  std::copy(std::begin(record.counts), std::end(record.counts), out.counts.begin());
}

// Those at `instant_ns`, which the record's own instant may lie before: what it did then goes on.
void CopySchedulerTimes(const kvm::KeptRecord& record, int64_t instant_ns, core::VcpuSample& out) {
  const auto since = [instant_ns](uint64_t begin_ns) {
    return static_cast<uint64_t>(std::max<int64_t>(instant_ns - static_cast<int64_t>(begin_ns), 0));
  };
  const bool runs = record.state == kvm::KEPT_RUNNING;
  const bool waits = record.state == kvm::KEPT_WAITING;
  out.run_ns = record.run_ns + (runs ? since(record.taken_ns) : 0);
  out.run_delay_ns = record.run_delay_ns + (waits ? since(record.since_ns) : 0);
  out.has_scheduler_times = true;
}

}  // namespace

VcpuSource::VcpuSource(kvm::VcpuGroups groups, kvm::ThreadScheduling scheduling)
    : groups_(std::move(groups)),
      scheduling_(std::move(scheduling)),
      last_further_(groups_.size() - 1) {}

int VcpuSource::Enable() {
  for (kvm::CounterGroup& group : groups_) {
    if (const int error = group.Enable(); error != 0) return error;
  }
  return 0;
}

void VcpuSource::KeepBy(kvm::ThreadKeeper* keeper, pid_t tid) {
  if (keeper != nullptr) held_ = keeper->Hold(tid, groups_);
  if (held_.records().empty() && groups_.size() == 1) page_ = groups_.front().Page();
}

int VcpuSource::ReadCounters(const ReadPolicy& policy, int64_t& now_ns, int64_t (*clock_ns)(),
                             core::VcpuSample& out, std::span<core::GroupSample> further) {
  state_ = ThreadState::kNotRead;
  if (HasRested(policy, now_ns)) {
    Repeat(out, further);
    out.read_begin_ns = out.read_end_ns = now_ns;
    state_ = last_.state;
    kept_ = Kept::kRested;
    return 0;
  }
  kept_ = TakeKept(policy, now_ns, out, further);
  if (kept_ == Kept::kAll) return 0;
  const std::optional<uint32_t> changes = page_.Changes();
  const kvm::OrErrno<kvm::GroupValues> values = groups_.front().Read();
  if (!values.ok()) return values.error;
  for (size_t g = 1; g < groups_.size(); ++g) {
    const kvm::OrErrno<kvm::GroupValues> more = groups_[g].Read();
    if (!more.ok()) return more.error;
    further[g - 1] = {more.value.time_enabled_ns, more.value.time_running_ns, more.value.counts};
  }
  // A group that has to share the PMU runs without changing its page.
  read_at_rest_ = changes && changes == changes_at_rest_ && changes == page_.Changes() &&
                  values.value.time_running_ns == values.value.time_enabled_ns;
  // The end of one read is the begin of the next: one clock read per vCPU.
  out.read_begin_ns = now_ns;
  now_ns = clock_ns();
  out.read_end_ns = now_ns;
  out.time_enabled_ns = values.value.time_enabled_ns;
  out.time_running_ns = values.value.time_running_ns;
  out.counts = values.value.counts;
  return 0;
}

VcpuSource::Kept VcpuSource::TakeKept(const ReadPolicy& policy, int64_t now_ns,
                                      core::VcpuSample& out, std::span<core::GroupSample> further) {
  if (!held_.CopyTo(records_)) return Kept::kNothing;
  const kvm::KeptRecord& main = records_.front();
  // Off its CPU its counters stand still: they are those of now.
  const int64_t instant_ns = main.state == kvm::KEPT_RUNNING
                                 ? static_cast<int64_t>(main.taken_ns)
                                 : std::max(now_ns, static_cast<int64_t>(main.since_ns));
  if (now_ns - instant_ns > policy.oldest_ns) return Kept::kScheduling;
  if (instant_ns < last_.read_end_ns) {  // read(2) has told more
    Repeat(out, further);
    return Kept::kAll;
  }
  CopyCounts(main, out);
  for (size_t g = 0; g < further.size(); ++g) CopyCounts(records_[g + 1], further[g]);
  out.read_begin_ns = out.read_end_ns = instant_ns;
  CopySchedulerTimes(main, instant_ns, out);
  return Kept::kAll;
}

bool VcpuSource::HasRested(const ReadPolicy& policy, int64_t now_ns) const {
  // By its record, or by `stat` where nothing has happened to it so far; whatever does is in the
  // record.
  const uint32_t kept = records_.front().state;
  if (IsAtRest(last_.state) && kept != kvm::KEPT_RUNNING && kept != kvm::KEPT_WAITING &&
      held_.IsStillAs(records_.front())) {
    return now_ns >= last_.read_end_ns;
  }
  return read_at_rest_ && now_ns - state_read_ns_ < policy.state_holds_ns &&
         page_.Changes() == changes_at_rest_;
}

void VcpuSource::Repeat(core::VcpuSample& out, std::span<core::GroupSample> further) const {
  out = last_;
  std::ranges::copy(last_further_, further.begin());
}

bool VcpuSource::ReadScheduling(const ReadPolicy& policy, core::VcpuSample& out,
                                std::span<const core::GroupSample> further) {
  const int64_t interval_ns = out.read_end_ns - last_.read_end_ns;
  const auto ran_ns = static_cast<double>(out.time_enabled_ns - last_.time_enabled_ns);
  const bool wants_state = last_.read_end_ns != 0 && interval_ns > 0 &&
                           ran_ns <= policy.state_below * static_cast<double>(interval_ns);
  if (kept_ == Kept::kNothing) {
    ReadFiles(policy, wants_state, out);
  } else if (kept_ == Kept::kScheduling) {
    CopySchedulerTimes(records_.front(), out.read_end_ns, out);
  }
  const bool by_record = kept_ == Kept::kScheduling || kept_ == Kept::kAll;
  // A wait that goes on is in a record, and not yet in schedstat; the kernel's clock leaves out
  // what CLOCK_MONOTONIC has. Neither may take back what was said.
  out.run_ns = std::max(out.run_ns, last_.run_ns);
  out.run_delay_ns = std::max(out.run_delay_ns, last_.run_delay_ns);
  if (by_record) {
    const auto waited_ns = static_cast<int64_t>(out.run_delay_ns - last_.run_delay_ns);
    state_ = StateOf(records_.front(), waited_ns, interval_ns);
  }
  const bool exited = state_ == ThreadState::kExited;
  last_ = out;
  last_.state =
      by_record && records_.front().state <= kvm::KEPT_WAITING ? ThreadState::kNotRead : state_;
  std::ranges::copy(further, last_further_.begin());
  out.state = wants_state || exited ? state_ : ThreadState::kNotRead;
  return exited;
}

void VcpuSource::ReadFiles(const ReadPolicy& policy, bool wants_state, core::VcpuSample& out) {
  // Its group's time goes on whenever the thread is on a CPU, and schedstat changes only then.
  const bool ran = last_.read_end_ns == 0 || out.time_enabled_ns != last_.time_enabled_ns;
  if (ran) {
    const kvm::OrErrno<kvm::SchedulerTimes> times = scheduling_.Read();
    out.has_scheduler_times = times.ok();
    out.run_ns = times.value.run_ns;
    out.run_delay_ns = times.value.run_delay_ns;
    if (times.error == ESRCH) {
      state_ = ThreadState::kExited;
      return;
    }
  } else {
    out.has_scheduler_times = last_.has_scheduler_times;
    out.run_ns = last_.run_ns;
    out.run_delay_ns = last_.run_delay_ns;
  }
  if (!wants_state) return;
  // Without a CPU one that waits for it goes on to wait. One at rest may have been woken since.
  const bool holds = !IsKept() && IsAtRest(last_.state) &&
                     out.read_end_ns - state_read_ns_ < policy.state_holds_ns;
  if (!ran && (holds || last_.state == ThreadState::kRunnable)) {
    state_ = last_.state;
    return;
  }
  const std::optional<uint32_t> changes = page_.Changes();  // before: it may be woken meanwhile
  const kvm::OrErrno<char> letter = scheduling_.State();
  if (letter.ok()) state_ = StateOf(letter.value);
  if (letter.error == ESRCH) state_ = ThreadState::kExited;
  state_read_ns_ = out.read_end_ns;
  changes_at_rest_ = IsAtRest(state_) ? changes : std::nullopt;
}

}  // namespace vcpulse::sampler
