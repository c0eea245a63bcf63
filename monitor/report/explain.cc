#include "monitor/report/explain.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"

namespace vcpulse::report {
namespace {

constexpr size_t kListed = 20;

// A damaged timeline may hold any instants: differences wrap.
int64_t Minus(int64_t from, int64_t by) {
  return static_cast<int64_t>(static_cast<uint64_t>(from) - static_cast<uint64_t>(by));
}

// "VM 2 "web" (pid 4711)"
std::string Describe(uint32_t number, const v1::VmInstance& vm) {
  std::string text = absl::StrCat("VM ", number);
  if (!vm.name().empty()) absl::StrAppend(&text, " \"", Printable(vm.name()), "\"");
  if (vm.pid() != 0) absl::StrAppend(&text, " (pid ", vm.pid(), ")");
  return text;
}

// What an epoch's residency was computed by, where it was not by ref-cycles.
v1::ResidencyMethod WithoutRefCycles(const v1::Session& session) {
  const bool known =
      session.max_hz() > 0 || session.residency_method() == v1::RESIDENCY_METHOD_MAX_FREQUENCY;
  return known ? v1::RESIDENCY_METHOD_MAX_FREQUENCY : v1::RESIDENCY_METHOD_HIGHEST_RATE;
}

}  // namespace

absl::Status Explainer::Add(const timeline::Entry& entry) {
  if (const auto instant = timeline::InstantOf(entry); instant && entry.sequence != 0) {
    start_ns_ = std::min(start_ns_.value_or(*instant), *instant);
    end_ns_ = std::max(end_ns_.value_or(*instant), *instant);
  }
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    if (session_ && session_->stream_id() != session->stream_id()) {
      return absl::InvalidArgumentError(
          "a second recording begins after the first: they can only be explained one at a time");
    }
    if (!session_) session_ = *session;
  } else if (const auto* kept = std::get_if<v1::Profile>(&entry.record)) {
    if (!rejudge_) kept_ = *kept;
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    if (absl::Status status = Start(); !status.ok()) return status;
    AddSet(*set);
  } else if (const auto* read = std::get_if<v1::Statistics>(&entry.record)) {
    AddStatistics(*read);
  } else if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    if (absl::Status status = Start(); !status.ok()) return status;
    AddTick(*tick);
  }
  return absl::OkStatus();
}

absl::Status Explainer::Start() {
  if (rejudge_) return absl::OkStatus();
  if (!session_) return absl::InvalidArgumentError("its session record is lost");
  auto settings = replay::SettingsOf(*session_, kept_ ? &*kept_ : nullptr);
  if (!settings.ok()) return settings.status();
  settings_ = *std::move(settings);
  rejudge_.emplace(settings_.choice, settings_.profile.values);
  rejudge_->Take(*session_);
  return absl::OkStatus();
}

void Explainer::AddSet(const v1::VcpuSet& set) {
  rejudge_->Take(set);
  Vm& vm = vms_[set.vm()];
  vm.instance = set.instance();
  for (int i = 0; i < set.vcpus_size(); ++i) {
    vm.vcpus.insert(set.vcpus(i).index());
    if (set.vcpus(i).index() != target_.vcpu) continue;
    sets_.try_emplace({set.vm(), set.epoch()}, set);
    columns_.try_emplace(
        {set.vm(), set.epoch()},
        Column{.index = static_cast<size_t>(i),
               .classifier = rejudge_->ClassifierOf(set),
               .by_ref_cycles = replay::LayoutOf(set).slots.ref_cycles && session_->tsc_hz() > 0});
  }
}

void Explainer::AddTick(const timeline::TickEntry& tick) {
  const std::span<const core::Verdict> verdicts = rejudge_->Judge(tick);
  if (verdicts.empty()) ++unusable_ticks_;
  const auto found = columns_.find({tick.vm, tick.epoch});
  if (found == columns_.end() || found->second.index >= verdicts.size()) return;
  Column& column = found->second;
  const core::EpochClassifier* classifier = rejudge_->Find(tick.vm, tick.epoch);
  Moment moment{.key = found->first,
                .tick = tick.sample.tick,
                .wake_ns = tick.sample.wake_ns,
                .features = classifier->features(column.index),
                .verdict = verdicts[column.index],
                .recorded = {},
                .previous = column.previous,
                .read = column.read};
  if (column.index < tick.verdicts.size()) moment.recorded = tick.verdicts[column.index];
  column.previous = moment.verdict.band;
  std::optional<Moment>& best = vms_[tick.vm].best;
  if (IsBetter(moment, best)) best = moment;
}

void Explainer::AddStatistics(const v1::Statistics& record) {
  const VmEpoch key(record.vm(), record.epoch());
  const auto found = columns_.find(key);
  if (found == columns_.end()) return;
  statistics_.Add(record, sets_.at(key));
  const auto read = statistics_.Take(record.vm(), record.epoch(), found->second.index);
  if (!read) return;
  std::optional<Moment>& best = vms_[record.vm()].best;
  metric::StatisticsDelta& latest = found->second.read;
  for (size_t s = 0; s < metric::kStatistics; ++s) {
    // The sources have their own times.
    const metric::StatisticsDelta::Progress& progress = read->progress[s];
    if (progress.time_ns == 0) continue;
    latest.progress[s] = progress;
    const bool tells = best && best->key == key && progress.end_ns >= best->wake_ns &&
                       Minus(progress.end_ns, progress.time_ns) < best->wake_ns;
    if (!tells) continue;
    best->read.progress[s] = progress;
  }
}

// Nothing where nothing was read about then.
std::optional<Explanation::Counted> Explainer::CountedOf(const Moment& moment) const {
  // A reading each second, or each tick: an older one is of a source that is gone.
  constexpr int64_t kSoon_ns = 2'000'000'000;
  metric::StatisticsDelta read;
  for (size_t s = 0; s < metric::kStatistics; ++s) {
    const metric::StatisticsDelta::Progress& progress = moment.read.progress[s];
    const bool is_recent =
        Minus(moment.wake_ns, progress.end_ns) <= std::max(kSoon_ns, progress.time_ns);
    if (progress.time_ns > 0 && is_recent) read.progress[s] = progress;
  }
  Explanation::Counted counted;
  std::optional<int64_t> from_ns;
  std::optional<int64_t> to_ns;
  for (const metric::StatisticsDelta::Progress& progress : read.progress) {
    if (progress.time_ns == 0) continue;
    const int64_t begin_ns = Minus(progress.end_ns, progress.time_ns);
    from_ns = std::min(from_ns.value_or(begin_ns), begin_ns);
    to_ns = std::max(to_ns.value_or(progress.end_ns), progress.end_ns);
  }
  if (!from_ns) return std::nullopt;
  const int64_t start_ns = start_ns_.value_or(0);
  counted.from_ns = Minus(*from_ns, start_ns);
  counted.to_ns = Minus(*to_ns, start_ns);
  for (const metric::Info& info : metric::Table()) {
    const auto value = metric::ValueOf(info.metric, read);
    if (value) counted.values.emplace_back(info.metric, *value);
  }
  for (const Cause& cause : kCauses) {
    // Of a share of readings one of them tells nothing.
    const auto value = cause.of_at_least > 0 ? std::nullopt : metric::ValueOf(cause.metric, read);
    if (value.value_or(0) >= cause.from) counted.causes.push_back(&cause);
  }
  return counted;
}

bool Explainer::IsBetter(const Moment& moment, const std::optional<Moment>& than) const {
  if (!target_.at_ns) return moment.verdict.band != core::Band::kNone;  // the last one
  if (!than) return true;
  // The first window that ends at that time or after it, else the last one before it. A millisecond
  // is what people read off a report. A damaged timeline may hold any stamps: differences wrap.
  constexpr uint64_t kRead_ns = 1'000'000;
  const auto from_wanted = [this](int64_t at_ns) {
    const uint64_t since = static_cast<uint64_t>(at_ns) + kRead_ns -
                           static_cast<uint64_t>(start_ns_.value_or(0)) -
                           static_cast<uint64_t>(*target_.at_ns);
    const bool before = since > std::numeric_limits<uint64_t>::max() / 2;
    return std::pair(before, before ? 0 - since : since);
  };
  return from_wanted(moment.wake_ns) < from_wanted(than->wake_ns);
}

absl::StatusOr<uint32_t> Explainer::FindVm() const {
  if (vms_.empty()) return absl::InvalidArgumentError("no VM was recorded");
  std::map<uint32_t, const v1::VmInstance*> instances;
  for (const auto& [number, vm] : vms_) instances[number] = &vm.instance;
  std::vector<uint32_t> meant;
  if (target_.vm) {
    meant = reading::VmsMeant(*target_.vm, instances);
  } else {
    for (const auto& [number, vm] : vms_) meant.push_back(number);
  }
  if (meant.size() == 1) return meant.front();

  std::vector<std::string> choice;
  for (const auto& [number, vm] : vms_) {
    const bool listed = meant.empty() || std::ranges::find(meant, number) != meant.end();
    if (listed) choice.push_back(Describe(number, vm.instance));
  }
  const std::string listed = Listed(choice, kListed);
  if (meant.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--explain: no VM '", Printable(*target_.vm), "' here: ", listed));
  }
  if (!target_.vm) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--explain: several VMs, so vm= is needed, with a name, UUID, PID or number: ", listed));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--explain: several VMs are '", Printable(*target_.vm),
                   "', so vm= is needed with a PID or number: ", listed));
}

absl::Status Explainer::CheckTarget(uint32_t number, const Vm& vm) const {
  if (!vm.vcpus.contains(target_.vcpu)) {
    std::vector<std::string> known;
    known.reserve(vm.vcpus.size());
    for (const uint32_t index : vm.vcpus) known.push_back(absl::StrCat(index));
    return absl::InvalidArgumentError(absl::StrCat(
        "--explain: no vCPU ", target_.vcpu, " was recorded: ", Describe(number, vm.instance),
        " has ",
        known.empty()
            ? "none"
            : absl::StrCat(known.size() == 1 ? "vCPU " : "vCPUs ", Listed(known, kListed))));
  }
  const uint64_t length_ns =
      static_cast<uint64_t>(end_ns_.value_or(0)) - static_cast<uint64_t>(start_ns_.value_or(0));
  const auto at_ns = static_cast<uint64_t>(target_.at_ns.value_or(0));
  if (at_ns > length_ns && at_ns - length_ns > session_->interval_ns()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--explain: at=", DurationText(static_cast<double>(*target_.at_ns)),
        " is after the end: there are ", DurationText(static_cast<double>(length_ns))));
  }
  return absl::OkStatus();
}

absl::StatusOr<Explanation> Explainer::Finish() const {
  const absl::StatusOr<uint32_t> number = FindVm();
  if (!number.ok()) return number.status();
  const Vm& vm = vms_.at(*number);
  if (absl::Status status = CheckTarget(*number, vm); !status.ok()) return status;
  if (!vm.best) {
    return absl::InvalidArgumentError(absl::StrCat("--explain: vCPU ", target_.vcpu, " of ",
                                                   Describe(*number, vm.instance),
                                                   " has no verdict to explain"));
  }
  const Moment& moment = *vm.best;
  const Column& column = columns_.at(moment.key);
  Explanation out{.vm = moment.key.first,
                  .vm_name = vm.instance.name(),
                  .vm_pid = vm.instance.pid(),
                  .epoch = moment.key.second,
                  .vcpu = target_.vcpu,
                  .tick = moment.tick,
                  .at_ns = moment.wake_ns - start_ns_.value_or(moment.wake_ns),
                  .classifier = column.classifier,
                  .profile = settings_.profile.name,
                  .remark = settings_.remark,
                  .features = moment.features,
                  .verdict = moment.verdict,
                  .recorded = metric::WithinKnown(moment.recorded)};
  out.counted = CountedOf(moment);
  if (moment.features.residency) {
    out.residency_method = std::string(*reading::ResidencyMethodName(
        column.by_ref_cycles ? v1::RESIDENCY_METHOD_REF_CYCLES : WithoutRefCycles(*session_)));
  }
  if (moment.verdict.band == core::Band::kNone) return out;
  const auto reasons_after = [&](core::Band previous) {
    return FindReasons(moment.features, settings_.profile.values, column.classifier, previous);
  };
  out.reasons = reasons_after(moment.previous);
  // After a hole the band before was of the sample that its chunk brought along, and is not known.
  if (out.reasons.raw.rule != moment.verdict.raw_rule) {
    out.reasons = reasons_after(moment.previous == core::Band::kHalted ? core::Band::kNone
                                                                       : core::Band::kHalted);
  }
  return out;
}

}  // namespace vcpulse::report
