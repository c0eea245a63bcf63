#include "monitor/import/perf_event.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "kvm/events/event_names.h"
#include "kvm/events/event_syntax.h"

namespace vcpulse::importing {
namespace {

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
