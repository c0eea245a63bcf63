#include "monitor/import/perf_json.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/events/event_names.h"
#include "kvm/events/event_syntax.h"
#include "monitor/import/json_lines.h"

namespace vcpulse::importing {
namespace {

namespace json = boost::json;

constexpr size_t kMaxTargets = kMaxVcpu + 1;  // they may all be of one VM
constexpr size_t kMaxNameBytes = 256;

constexpr char kText[] = "no JSON object: messages of others";
constexpr char kComment[] = "comments";
constexpr char kBroken[] = "broken JSON";
constexpr char kTruncated[] = "cut off in the middle";
constexpr char kTooLong[] = "too long for perf's";
constexpr char kNoCount[] = "a metric, no count";
constexpr char kNoInterval[] = "no \"interval\": totals of a whole run (perf stat -I 100 has them)";
constexpr char kAggregated[] =
    "counts of a core, die, socket or node: no vCPU can be told there (--per-thread)";
constexpr char kNoNumber[] = "a count that is not a whole number";
constexpr char kNoName[] = "an event or thread without a name";
constexpr char kRepeated[] = "a count of the same event, interval and thread once more";
constexpr char kOtherRun[] = "of a later run in the same file: import each run alone";

// Where the decimal sign of a number is. A sign that comes twice stands between thousands, and so
// does a lone comma before three digits (perf writes six decimals).
std::optional<size_t> DecimalSign(std::string_view written) {
  const size_t last = written.find_last_of(".,");
  if (last == std::string_view::npos) return std::nullopt;
  if (std::ranges::count(written, written[last]) > 1) return std::nullopt;
  const bool lone = written.find_first_of(".,' ") == last;
  if (lone && written[last] == ',' && written.size() - last - 1 == 3) return std::nullopt;
  return last;
}

// A number as perf writes it: as such or as text, with thousands separators and the decimal sign of
// any locale. Nothing where it is none.
std::optional<double> ReadNumber(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    json::error_code error;
    const auto number = value->to_number<double>(error);
    return error ? std::nullopt : std::optional(number);
  }
  const json::string* text = value->if_string();
  if (text == nullptr || text->empty() || text->size() > 64) return std::nullopt;
  const std::string_view written = ViewOf(*text);
  const std::optional<size_t> decimal = DecimalSign(written);
  std::string plain;
  for (size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    if (c >= '0' && c <= '9') {
      plain.push_back(c);
    } else if (i == decimal) {
      plain.push_back('.');
    } else if (i == 0 || (std::string_view(".,' ").find(c) == std::string_view::npos &&
                          static_cast<unsigned char>(c) < 0x80)) {
      return std::nullopt;
    }
  }
  double number = 0;
  const auto read = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (read.ec != std::errc() || read.ptr != plain.data() + plain.size()) return std::nullopt;
  return number;
}

// A count of perf's: a double with six decimals. Times in ms are counts of ns.
std::optional<uint64_t> ReadCount(const json::value* value, std::string_view unit) {
  std::optional<double> number = ReadNumber(value);
  if (!number) return std::nullopt;
  if (unit == "msec") number = std::round(*number * 1e6);
  constexpr double kTooMany = 18446744073709551616.0;
  if (!(*number >= 0 && *number < kTooMany) || std::floor(*number) != *number) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

void ReadTimes(const json::object& object, PerfCount& count) {
  const json::value* const runtime = object.if_contains("event-runtime");
  const uint64_t running_ns =
      runtime == nullptr ? kMaxTime_ns : WholeNumber(*runtime).value_or(kMaxTime_ns);
  const double percent = ReadNumber(object.if_contains("pcnt-running")).value_or(-1);
  if (running_ns >= kMaxTime_ns || !(percent >= 0 && percent <= 100)) return;
  count.timed = true;
  count.running_ns = running_ns;
  count.percent = percent;
}

class PerfReader {
 public:
  PerfReader(std::string_view text, const std::string& name) : text_(text), lines_(text_) {
    stat_.name = name;
  }

  absl::StatusOr<PerfStat> Read();

 private:
  void Skip(std::string_view what) { skipped_.Skip(what, lines_.line()); }
  // Takes one object in, or tells why it is passed over.
  absl::Status TakeObject(const json::object& object);
  // Nothing, having told why, where the line's is none that can be told.
  std::optional<PerfTarget> ReadTarget(const json::object& object);
  // The counts of the interval that ended become rows.
  absl::Status EndInterval();

  template <typename Key>
  static uint32_t NumberOf(const Key& key, std::map<Key, uint32_t>& known, std::vector<Key>& all) {
    const auto [found, is_new] = known.try_emplace(key, static_cast<uint32_t>(all.size()));
    if (is_new) all.push_back(key);
    return found->second;
  }

  WholeText text_;
  JsonLines lines_;
  PerfStat stat_;
  Table skipped_;  // its list of kinds
  std::map<std::string, uint32_t> events_;
  std::map<PerfTarget, uint32_t> targets_;
  std::optional<uint64_t> t_ns_;  // of the interval that is being read
  bool other_run_ = false;
  uint64_t last_t_ns_ = 0;
  std::vector<std::pair<uint32_t, PerfCount>> open_;  // its counts, by target
};

std::optional<PerfTarget> PerfReader::ReadTarget(const json::object& object) {
  PerfTarget target;
  if (const auto* cgroup = object.if_contains("cgroup"); cgroup != nullptr && cgroup->is_string()) {
    target.cgroup = ViewOf(cgroup->get_string());
  }
  if (const auto* thread = object.if_contains("thread")) {
    const json::string* text = thread->if_string();
    const std::string_view written = text != nullptr ? ViewOf(*text) : "";
    const size_t dash = written.rfind('-');
    const auto tid = dash == std::string_view::npos
                         ? std::nullopt
                         : ParseNumber<uint32_t>(written.substr(dash + 1));
    if (!tid || written.size() > kMaxNameBytes) {
      Skip(kNoName);
      return std::nullopt;
    }
    target.kind = PerfTarget::Kind::kThread;
    target.comm = written.substr(0, dash);
    target.number = *tid;
    return target;
  }
  if (const auto* cpu = object.if_contains("cpu")) {
    const json::string* text = cpu->if_string();
    std::string_view written = text != nullptr ? ViewOf(*text) : "";
    if (written.starts_with("CPU")) written.remove_prefix(3);
    const auto number = text != nullptr ? ParseNumber<uint64_t>(written) : WholeNumber(*cpu);
    if (!number || *number > kMaxVcpu) {
      Skip(kNoName);
      return std::nullopt;
    }
    target.kind = PerfTarget::Kind::kCpu;
    target.number = *number;
    return target;
  }
  for (const char* key : {"core", "die", "socket", "node", "cache", "cluster"}) {
    if (!object.contains(key)) continue;
    Skip(kAggregated);
    return std::nullopt;
  }
  return target;
}

absl::Status PerfReader::TakeObject(const json::object& object) {
  const json::value* const value = object.if_contains("counter-value");
  const json::value* const event = object.if_contains("event");
  const auto skip = [this](std::string_view what) {
    Skip(what);
    return absl::OkStatus();
  };
  if (value == nullptr || event == nullptr) return skip(kNoCount);
  const std::optional<double> seconds = ReadNumber(object.if_contains("interval"));
  const std::optional<uint64_t> t_ns = seconds ? SecondsAsNs(*seconds) : std::nullopt;
  if (!t_ns || *t_ns == 0) return skip(kNoInterval);
  if (!event->is_string() || event->get_string().empty() ||
      event->get_string().size() > kMaxNameBytes) {
    return skip(kNoName);
  }
  std::optional<PerfTarget> target = ReadTarget(object);
  if (!target) return absl::OkStatus();
  if (target->cgroup.size() > kMaxNameBytes) return skip(kNoName);

  PerfCount count{.line = lines_.line()};
  const std::string_view written = value->is_string() ? ViewOf(value->get_string()) : "";
  const json::value* const unit = object.if_contains("unit");
  if (written == "<not counted>") {
    count.status = PerfCount::Status::kNotCounted;
  } else if (written == "<not supported>") {
    count.status = PerfCount::Status::kNotSupported;
  } else {
    const bool has_unit = unit != nullptr && unit->is_string();
    const auto number = ReadCount(value, has_unit ? ViewOf(unit->get_string()) : "");
    if (!number) return skip(kNoNumber);
    count.value = *number;
  }
  ReadTimes(object, count);

  // Where time goes back another run was appended: none of it belongs to this one.
  other_run_ = other_run_ || (t_ns_ && *t_ns < *t_ns_);
  if (other_run_) return skip(kOtherRun);
  if (t_ns_ != t_ns) {
    if (absl::Status status = EndInterval(); !status.ok()) return status;
    t_ns_ = t_ns;
  }
  const std::string name(ViewOf(event->get_string()));
  count.event = NumberOf(name, events_, stat_.events);
  const uint32_t number = NumberOf(*target, targets_, stat_.targets);
  if (stat_.events.size() > kMaxTableEvents || stat_.targets.size() > kMaxTargets) {
    return absl::ResourceExhaustedError(absl::StrCat(stat_.name, ": line ", lines_.line(),
                                                     ": more than ", kMaxTableEvents, " events or ",
                                                     kMaxTargets, " threads"));
  }
  open_.emplace_back(number, count);
  if (stat_.counts.size() + open_.size() > kMaxCounts) {
    return absl::ResourceExhaustedError(
        absl::StrCat(stat_.name, ": more than ", kMaxCounts, " counts: split it"));
  }
  return absl::OkStatus();
}

absl::Status PerfReader::EndInterval() {
  if (open_.empty()) return absl::OkStatus();
  std::ranges::stable_sort(open_, {}, [](const std::pair<uint32_t, PerfCount>& count) {
    return std::pair(count.first, count.second.event);
  });
  const uint64_t dt_ns = *t_ns_ - last_t_ns_;
  for (size_t i = 0; i < open_.size(); ++i) {
    const auto& [target, count] = open_[i];
    const bool same_target = i > 0 && open_[i - 1].first == target;
    if (same_target && open_[i - 1].second.event == count.event) {
      skipped_.Skip(kRepeated, count.line);
      continue;
    }
    if (!same_target) {
      stat_.rows.push_back({.t_ns = *t_ns_,
                            .dt_ns = dt_ns,
                            .target = target,
                            .first = stat_.counts.size(),
                            .size = 0});
    }
    ++stat_.rows.back().size;
    stat_.counts.push_back(count);
  }
  open_.clear();
  last_t_ns_ = *t_ns_;
  if (stat_.rows.size() > kMaxRows) {
    return absl::ResourceExhaustedError(
        absl::StrCat(stat_.name, ": more than ", kMaxRows, " rows: split it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PerfStat> PerfReader::Read() {
  using Line = JsonLines::Line;
  for (Line line = lines_.Next(); line != Line::kEnd; line = lines_.Next()) {
    switch (line) {
      case Line::kObject:
        if (absl::Status status = TakeObject(lines_.object()); !status.ok()) return status;
        break;
      case Line::kComment:
        Skip(kComment);
        break;
      case Line::kText:
        Skip(kText);
        break;
      case Line::kBroken:
        Skip(kBroken);
        break;
      case Line::kTruncated:
        Skip(kTruncated);
        break;
      case Line::kTooLong:
        Skip(kTooLong);
        break;
      default:
        break;  // blank
    }
  }
  if (absl::Status status = EndInterval(); !status.ok()) return status;
  stat_.skipped = std::move(skipped_.skipped);
  if (stat_.rows.empty()) {
    std::vector<std::string> kinds;
    kinds.reserve(stat_.skipped.size());
    for (const Skipped& kind : stat_.skipped) {
      kinds.push_back(
          absl::StrCat(kind.what, " (", kind.lines, ", first in line ", kind.first, ")"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        stat_.name, ": no line holds a count of an interval, as `perf stat -I 100 -j` writes it",
        kinds.empty() ? "" : "; lines are: ", absl::StrJoin(kinds, "; ")));
  }
  return std::move(stat_);
}

using kvm::EventItem;

bool HasLetter(std::string_view modifiers, char letter) {
  return modifiers.find(letter) != std::string_view::npos;
}

// Generic events of the PMU whose cores run everything: `cpu/cycles/` is "cycles".
std::string WithoutCpu(const EventItem& item) {
  const bool plain = item.kind == EventItem::Kind::kPmu && item.name == "cpu" &&
                     item.terms.size() == 1 && !item.terms.front().value &&
                     kvm::FindGenericEvent(item.terms.front().name);
  return plain ? item.terms.front().name : item.text;
}

}  // namespace

absl::StatusOr<PerfStat> ReadPerfJson(std::string_view text, const std::string& name) {
  return PerfReader(text, name).Read();
}

PerfEvent ReadPerfEvent(std::string_view written) {
  const auto list = kvm::ParseEventList(written);
  if (!list.ok() || list->size() != 1 || list->front().size() != 1) {
    return {.name = std::string(written)};
  }
  const EventItem& item = list->front().front();
  std::string plain = WithoutCpu(item);
  const auto generic = kvm::FindGenericEvent(plain);
  const bool software = generic && generic->type == PERF_TYPE_SOFTWARE;
  if (software || item.kind == EventItem::Kind::kTracepoint) {
    return {.name = std::string(written), .counts_host = true, .by_nature = true};
  }
  // The parser knows a name of the CPU's own list by its dot; any other was given by somebody.
  const bool own_name = item.kind == EventItem::Kind::kName && !generic && item.modifiers.empty() &&
                        item.name.find('.') == std::string::npos;
  if (own_name) return {.name = std::string(written)};
  if (generic) plain = generic->name;

  const bool guest = HasLetter(item.modifiers, 'G');
  const bool host = HasLetter(item.modifiers, 'H') || !guest;
  // Both are all that there is.
  const bool one_level = HasLetter(item.modifiers, 'u') != HasLetter(item.modifiers, 'k');
  if (guest && !host && !one_level) return {.name = plain};
  if (!item.modifiers.empty()) {
    return {.name = absl::StrCat(plain, ":", item.modifiers), .counts_host = host};
  }
  return {.name = absl::StrCat(plain, ":H"), .counts_host = true};
}

}  // namespace vcpulse::importing
