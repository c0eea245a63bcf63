// The table of what perf stat counted.
#include <algorithm>
#include <bitset>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/discovery/vmms.h"
#include "monitor/import/perf_json.h"

namespace vcpulse::importing {
namespace {

using Status = PerfCount::Status;

bool OnAllTheTime(const PerfCount& count) { return !count.timed || count.percent >= 100; }

// The thread was off its CPU throughout: perf calls that "not counted" too, and all of nothing.
bool WasOff(const PerfCount& count) {
  return count.status == Status::kNotCounted && count.timed && count.running_ns == 0 &&
         count.percent >= 100;
}

// Its event had no turn on the PMU.
bool HadNoTurn(const PerfCount& count) {
  return count.status == Status::kNotCounted && count.timed && !WasOff(count);
}

// Which events are counted together: as perf reads a group at once, its members' times are equal to
// the nanosecond. Those on the PMU all the time are together in any case.
class Together {
 public:
  explicit Together(size_t events) : apart_(events) {}

  void Add(std::span<const PerfCount> row) {
    for (const PerfCount& a : row) {
      for (const PerfCount& b : row) {
        if (a.event < b.event && AreApart(a, b)) apart_[a.event].set(b.event);
      }
    }
  }

  bool Are(uint32_t a, uint32_t b) const {
    return a == b || !apart_[std::min(a, b)][std::max(a, b)];
  }

 private:
  static bool AreApart(const PerfCount& a, const PerfCount& b) {
    const auto says = [](const PerfCount& count) {
      return count.status == Status::kCounted || HadNoTurn(count);
    };
    if (!says(a) || !says(b)) return false;
    if (OnAllTheTime(a) && OnAllTheTime(b)) return false;
    return a.running_ns != b.running_ns;
  }

  std::vector<std::bitset<kMaxTableEvents>> apart_;
};

// The number of each event's turn (Table::turns), such that no more groups are needed than a sample
// has: the last ones share one where they must.
std::vector<uint32_t> TurnsOf(const Together& together, const std::vector<std::string>& names) {
  std::vector<uint32_t> leaders;  // of each turn
  const auto cycles = std::ranges::find(names, "cycles");
  leaders.push_back(cycles == names.end() ? 0 : static_cast<uint32_t>(cycles - names.begin()));
  std::vector<uint32_t> turns(names.size());
  std::vector<size_t> sizes(1);
  for (uint32_t event = 0; event < names.size(); ++event) {
    const auto leader =
        std::ranges::find_if(leaders, [&](uint32_t known) { return together.Are(known, event); });
    turns[event] = static_cast<uint32_t>(leader - leaders.begin());
    if (leader == leaders.end()) {
      leaders.push_back(event);
      sizes.push_back(0);
    }
    ++sizes[turns[event]];
  }
  const auto groups = [&sizes] {
    size_t count = 0;
    for (const size_t size : sizes) count += (size + core::kMaxEvents - 1) / core::kMaxEvents;
    return count;
  };
  while (groups() > core::kMaxGroups && sizes.size() > 2) {
    sizes[sizes.size() - 2] += sizes.back();
    sizes.pop_back();
    for (uint32_t& turn : turns) turn = std::min(turn, static_cast<uint32_t>(sizes.size() - 1));
  }
  return turns;
}

// The time that the thread was on a CPU, from the shares of it that the events were on the PMU: in
// whole percents, cut, so that each event says where it lies between.
std::optional<uint64_t> EnabledOf(std::span<const PerfCount> row) {
  double least = 0;
  double most = static_cast<double>(kMaxTime_ns);
  uint64_t exact = 0;
  bool timed = false;
  bool on_all_the_time = false;
  for (const PerfCount& count : row) {
    if (!count.timed || count.status == Status::kNotSupported) continue;
    if (WasOff(count)) timed = true;
    if (count.running_ns == 0) continue;
    timed = true;
    if (count.percent >= 100) {
      on_all_the_time = true;
      exact = std::max(exact, count.running_ns);
      continue;
    }
    const double running = static_cast<double>(count.running_ns) * 100;
    const bool whole = count.percent == std::floor(count.percent);
    const double low = whole ? count.percent : count.percent - 0.005;
    const double high = whole ? count.percent + 1 : count.percent + 0.005;
    least = std::max(least, running / high);
    if (low > 0) most = std::min(most, running / low);
  }
  if (!timed) return std::nullopt;
  if (on_all_the_time) return exact;
  if (least == 0) return 0;
  return static_cast<uint64_t>(most >= static_cast<double>(kMaxTime_ns) ? least
                                                                        : (least + most) / 2);
}

class Tabler {
 public:
  explicit Tabler(const PerfStat& stat) : stat_(stat), builder_(stat.name) {}

  absl::StatusOr<Table> Make();

 private:
  // Which VM and vCPU a target is; nothing where it is none.
  struct Place {
    uint32_t vm = 0;
    uint64_t vcpu = 0;
  };
  void NameEvents();
  void PlaceTargets();
  void PlaceThreads(const std::string& cgroup, std::vector<uint32_t> threads);
  absl::Status AddRow(const PerfRow& row);
  // Once, however many cgroups it is true of: each set of the timeline has all notes.
  void Note(const std::string& text) {
    std::vector<std::string>& notes = builder_.table().notes;
    if (std::ranges::find(notes, text) == notes.end()) notes.push_back(text);
  }
  void NoteWhatWasFound();

  std::span<const PerfCount> CountsOf(const PerfRow& row) const {
    return std::span(stat_.counts).subspan(row.first, row.size);
  }

  const PerfStat& stat_;
  TableBuilder builder_;
  std::vector<std::string> names_;  // of stat_.events, in vcpulse's words
  std::vector<uint32_t> turns_;
  std::vector<std::optional<Place>> places_;  // of stat_.targets
  uint64_t other_threads_ = 0;
  uint64_t extrapolated_ = 0;  // counts
  uint64_t too_long_ = 0;      // rows with a time beyond their interval
};

void Tabler::NameEvents() {
  std::vector<std::string> host;
  for (const std::string& written : stat_.events) {
    const PerfEvent event = ReadPerfEvent(written);
    const auto taken = [this](const std::string& name) {
      return std::ranges::find(names_, name) != names_.end();
    };
    // Two of one name (cycles and cpu-cycles) stay two.
    std::string name = taken(event.name) ? written : event.name;
    while (taken(name)) name.push_back('_');
    names_.push_back(std::move(name));
    if (event.counts_host) builder_.table().host_side_events.push_back(names_.back());
    if (event.counts_host && !event.by_nature) host.push_back(written);
  }
  if (host.empty()) return;
  Note(absl::StrCat(absl::StrJoin(host, ", "),
                    ": counts the host too, or (before perf 6.13) the host alone, and says nothing "
                    "of the guest: `perf stat -e cycles:G,instructions:G` counts guests"));
}

void Tabler::PlaceThreads(const std::string& cgroup, std::vector<uint32_t> threads) {
  std::ranges::sort(threads, {}, [this](uint32_t t) { return stat_.targets[t].number; });
  const auto name_of = [this](uint32_t t) {
    return kvm::ParseVcpuThreadName(stat_.targets[t].comm);
  };
  const bool named =
      std::ranges::any_of(threads, [&](uint32_t t) { return name_of(t).has_value(); });
  if (!named) {
    const uint32_t vm = builder_.Vm({.name = cgroup.empty() ? "perf" : cgroup});
    for (size_t i = 0; i < threads.size(); ++i) places_[threads[i]] = Place{.vm = vm, .vcpu = i};
    Note(
        "no thread is named as vCPUs are (QEMU: -name X,debug-threads=on): each thread is a vCPU, "
        "in the order of their TIDs");
    return;
  }
  // By rising TIDs a VM's vCPUs follow each other: a number that comes again is another VM's.
  std::vector<std::set<uint64_t>> vms(1);
  std::vector<std::pair<uint32_t, std::pair<size_t, uint64_t>>> found;
  for (const uint32_t t : threads) {
    const auto name = name_of(t);
    if (!name || name->index < 0 || static_cast<uint64_t>(name->index) > kMaxVcpu) {
      ++other_threads_;
      continue;
    }
    const auto vcpu = static_cast<uint64_t>(name->index);
    if (vms.back().contains(vcpu)) vms.emplace_back();
    vms.back().insert(vcpu);
    found.push_back({t, {vms.size() - 1, vcpu}});
  }
  for (const auto& [t, place] : found) {
    std::string name = cgroup.empty() ? "perf" : cgroup;
    if (vms.size() > 1) absl::StrAppend(&name, "-", place.first + 1);
    places_[t] =
        Place{.vm = builder_.Vm({.name = name, .number = place.first + 1}), .vcpu = place.second};
  }
  if (vms.size() > 1) {
    Note(absl::StrCat("perf does not tell whose vCPU a thread is: ", vms.size(),
                      " VMs are distinguished by vCPU numbers that repeat with rising TIDs"));
  }
}

void Tabler::PlaceTargets() {
  places_.resize(stat_.targets.size());
  std::map<std::string, std::vector<uint32_t>> threads;  // by cgroup
  bool cpus = false;
  bool totals = false;
  for (uint32_t t = 0; t < stat_.targets.size(); ++t) {
    const PerfTarget& target = stat_.targets[t];
    const std::string& cgroup = target.cgroup;
    switch (target.kind) {
      case PerfTarget::Kind::kThread:
        threads[cgroup].push_back(t);
        break;
      case PerfTarget::Kind::kCpu:
        places_[t] = Place{.vm = builder_.Vm({.name = cgroup.empty() ? "host-cpus" : cgroup}),
                           .vcpu = target.number};
        cpus = true;
        break;
      case PerfTarget::Kind::kTotal:
        places_[t] =
            Place{.vm = builder_.Vm({.name = cgroup.empty() ? "perf-total" : cgroup}), .vcpu = 0};
        totals = true;
        break;
    }
  }
  for (auto& [cgroup, members] : threads) PlaceThreads(cgroup, std::move(members));
  if (cpus) {
    Note("rows are of CPUs of the host, whatever ran there: what is called a vCPU here is a CPU");
  }
  if (totals) {
    Note(
        "perf stat counted all threads together: what is called a vCPU here is their sum "
        "(--per-thread tells them apart)");
  }
}

absl::Status Tabler::AddRow(const PerfRow& row) {
  const std::optional<Place>& place = places_[row.target];
  if (!place) return absl::OkStatus();
  const std::span<const PerfCount> counts = CountsOf(row);
  const PerfTarget& target = stat_.targets[row.target];
  Row made{.number = counts.front().line, .vm = place->vm};
  made.Set(Field::kT, row.t_ns);
  made.Set(Field::kDt, row.dt_ns);
  made.Set(Field::kVcpu, place->vcpu);
  if (target.kind == PerfTarget::Kind::kThread) made.Set(Field::kTid, target.number);

  // Of each turn: whether an event of it was counted.
  std::set<uint32_t> counted;
  for (const PerfCount& count : counts) {
    if (count.status == Status::kCounted || WasOff(count)) counted.insert(turns_[count.event]);
  }
  const std::optional<uint64_t> enabled = EnabledOf(counts);
  if (enabled || !counted.contains(0)) {
    const uint64_t slack = std::max<uint64_t>(row.dt_ns / 100, 100'000);
    uint64_t enabled_ns = enabled.value_or(0);
    if (enabled_ns > row.dt_ns + slack) ++too_long_;
    const bool none_had_a_turn = std::ranges::any_of(counts, HadNoTurn) && enabled_ns == 0;
    if (enabled_ns > row.dt_ns + slack || none_had_a_turn) enabled_ns = row.dt_ns;
    const bool timed = enabled || none_had_a_turn;
    if (timed) {
      made.Set(Field::kTimeEnabled, enabled_ns);
      // perf has extrapolated what it counted to all of the time enabled.
      made.Set(Field::kTimeRunning, counted.contains(0) ? enabled_ns : 0);
    }
  }
  Layout layout;
  std::vector<uint64_t> values;
  std::vector<double> shares;
  for (const PerfCount& count : counts) {
    const bool turn_counted = counted.contains(turns_[count.event]);
    const bool no_turn = HadNoTurn(count) && !turn_counted;
    if (count.status != Status::kCounted && !WasOff(count) && !no_turn) {
      layout.absent.push_back(count.event);
      continue;
    }
    if (count.status == Status::kCounted && count.timed && count.percent < 100) ++extrapolated_;
    layout.events.push_back(count.event);
    values.push_back(count.value);
    shares.push_back(no_turn ? 0 : 1);
  }
  return builder_.Add(made, layout, values, shares);
}

void Tabler::NoteWhatWasFound() {
  if (extrapolated_ > 0) {
    Note(absl::StrCat(extrapolated_,
                      " counts are perf's extrapolations to all of the time enabled: their events "
                      "took turns on the PMU; only those that were on it with cycles count for "
                      "verdicts"));
  }
  if (too_long_ > 0) {
    Note(absl::StrCat(too_long_,
                      " intervals with a time beyond their length, as of several threads together: "
                      "the length stands for it"));
  }
  if (other_threads_ > 0) {
    Note(
        absl::StrCat("left out ", Plural(other_threads_, "thread"), " without the name of a vCPU"));
  }
}

absl::StatusOr<Table> Tabler::Make() {
  Table& table = builder_.table();
  table.unit = "line";
  table.absent_reason = "perf stat wrote no count of it: <not supported> or <not counted>";
  table.skipped = stat_.skipped;
  for (const Field field : {Field::kT, Field::kDt, Field::kVcpu, Field::kTid}) {
    table.columns.set(static_cast<size_t>(field));
  }
  if (std::ranges::any_of(stat_.counts, &PerfCount::timed)) {
    table.columns.set(static_cast<size_t>(Field::kTimeEnabled));
    table.columns.set(static_cast<size_t>(Field::kTimeRunning));
  }
  NameEvents();
  PlaceTargets();
  Together together(names_.size());
  for (const PerfRow& row : stat_.rows) together.Add(CountsOf(row));
  turns_ = TurnsOf(together, names_);
  for (size_t event = 0; event < names_.size(); ++event) {
    const absl::StatusOr<uint32_t> number = builder_.Event(names_[event]);
    if (!number.ok()) return number.status();
    table.turns[*number] = turns_[event];
  }
  for (const PerfRow& row : stat_.rows) {
    if (absl::Status status = AddRow(row); !status.ok()) return status;
  }
  NoteWhatWasFound();
  return builder_.Finish();
}

}  // namespace

absl::StatusOr<Table> ParsePerfJson(std::string_view text, const std::string& name) {
  const absl::StatusOr<PerfStat> stat = ReadPerfJson(text, name);
  if (!stat.ok()) return stat.status();
  return Tabler(*stat).Make();
}

}  // namespace vcpulse::importing
