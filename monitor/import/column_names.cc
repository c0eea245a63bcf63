#include "monitor/import/column_names.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "kvm/events/event_names.h"
#include "kvm/events/event_syntax.h"
#include "monitor/core/event_slots.h"
#include "monitor/metric/metric.h"

namespace vcpulse::importing {
namespace {

struct FieldNames {
  std::string_view column;
  std::string_view key;
};

// In the order of Field.
constexpr std::array<FieldNames, kFields> kFieldNames = {{{"t_ns", "t_mono_ns"},
                                                          {"dt_ns", "interval_s"},
                                                          {"tick", "tick"},
                                                          {"t_wall_ns", "t_wall_ns"},
                                                          {"vcpu", "vcpu"},
                                                          {"epoch", "epoch"},
                                                          {"tid", "tid"},
                                                          {"kvm_id", "kvm_id"},
                                                          {"time_enabled_ns", "time_enabled_ns"},
                                                          {"time_running_ns", "time_running_ns"},
                                                          {"run_ns", "run_ns"},
                                                          {"run_delay_ns", "run_delay_ns"}}};

constexpr auto kDerived =
    std::to_array<std::string_view>({"band", "raw_band", "rule", "confidence", "starved"});

constexpr size_t kMaxEventName = 256;

std::optional<Field> FindField(std::string_view name, std::string_view FieldNames::* form) {
  const auto* const found = std::ranges::find(kFieldNames, name, form);
  if (found == kFieldNames.end()) return std::nullopt;
  return static_cast<Field>(found - kFieldNames.begin());
}

}  // namespace

std::string_view ColumnName(Field field) { return kFieldNames[static_cast<size_t>(field)].column; }

std::optional<Field> FieldOfColumn(std::string_view column) {
  return FindField(column, &FieldNames::column);
}

std::optional<Field> FieldOfKey(std::string_view key) { return FindField(key, &FieldNames::key); }

std::optional<std::string_view> EventOfColumn(std::string_view column) {
  const auto* const found = std::ranges::find(kEventColumns, column, &EventColumn::column);
  if (found == kEventColumns.end()) return std::nullopt;
  return found->event;
}

std::optional<size_t> EventColumnOf(std::string_view event) {
  const core::EventSlots slots = core::FindSlots(std::array{event});
  const std::array<bool, kEventColumns.size()> is = {
      slots.cycles.has_value(),
      slots.instructions.has_value(),
      slots.branches.has_value(),
      slots.branch_misses.has_value(),
      slots.cache_misses.has_value(),
      slots.ref_cycles.has_value(),
      slots.pause.has_value() && !slots.pause_in_cycles,
      slots.pause.has_value() && slots.pause_in_cycles};
  const auto* const found = std::ranges::find(is, true);
  if (found == is.end()) return std::nullopt;
  return static_cast<size_t>(found - is.begin());
}

std::string_view WithoutEventPrefix(std::string_view name) {
  constexpr std::string_view kPrefix = "event:";
  while (name.starts_with(kPrefix) && name.size() > kPrefix.size()) {
    name.remove_prefix(kPrefix.size());
  }
  return name;
}

bool IsDerived(std::string_view name) {
  const std::optional<metric::Metric> metric = metric::FindMetric(name);
  return std::ranges::find(kDerived, name) != kDerived.end() ||
         (metric && metric::InfoOf(*metric).row_decimals > 0);
}

bool IsEventName(std::string_view name, bool of_an_export) {
  if (name.empty() || name.size() > kMaxEventName) return false;
  if (!std::ranges::all_of(name, absl::ascii_isgraph)) return false;
  // In perf's own letters: "Cycles" is somebody's column.
  const auto generic = kvm::FindGenericEvent(name);
  if (generic &&
      (generic->type == PERF_TYPE_HW_CACHE || std::ranges::none_of(name, absl::ascii_isupper))) {
    return true;
  }
  const auto list = kvm::ParseEventList(name);
  if (!list.ok() || list->size() != 1 || list->front().size() != 1) return false;
  if (name.front() == '{') return false;
  if (of_an_export) return true;
  const kvm::EventItem& item = list->front().front();
  switch (item.kind) {
    case kvm::EventItem::Kind::kRaw:
      return std::ranges::any_of(name, [](char c) { return c >= '0' && c <= '9'; });
    case kvm::EventItem::Kind::kPmu:
    case kvm::EventItem::Kind::kTracepoint:
      return true;
    case kvm::EventItem::Kind::kName:
      break;
  }
  return item.name.find('.') != std::string::npos ||
         (!item.modifiers.empty() && IsEventName(item.name, false));
}

std::string AsCompared(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::optional<core::ThreadState> ParseState(std::string_view text) {
  using core::ThreadState;
  if (text.empty()) return ThreadState::kNotRead;
  if (text == "S" || text == "I" || text == "blocked") return ThreadState::kBlocked;
  if (text == "R" || text == "runnable") return ThreadState::kRunnable;
  if (text == "T" || text == "t" || text == "stopped") return ThreadState::kStopped;
  if (text == "Z" || text == "X" || text == "exited") return ThreadState::kExited;
  if (text == "paused") return ThreadState::kPaused;
  if (text == "D" || text == "io-wait") return ThreadState::kIoWait;
  return std::nullopt;
}

}  // namespace vcpulse::importing
