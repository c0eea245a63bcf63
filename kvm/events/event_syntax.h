#pragma once

// perf's way to write events, taken apart:
//
//   list     = group { "," group }
//   group    = event | "{" event { "," event } "}" [ ":" modifiers ]
//   event    = ( NAME | "r" HEX | PMU "/" [ term { "," term } ] "/" | SYSTEM ":" NAME )
//              [ ":" modifiers ]               the colon may be missing behind the last "/"
//   term     = NAME [ "=" VALUE ]
//
// Blanks may stand around groups, events and terms. Pure: knows the generic names, no PMU and no
// tracepoint.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::kvm {

// Events of one list at most.
inline constexpr size_t kMaxRequestedEvents = 64;

struct EventTerm {
  std::string name;
  std::optional<std::string> value;  // of "name=value"

  bool operator==(const EventTerm&) const = default;
};

// One event as it was written.
struct EventItem {
  enum class Kind { kName, kRaw, kPmu, kTracepoint };
  Kind kind = Kind::kName;
  std::string text;              // without modifiers: "cpu/event=0x3c/"
  std::string name;              // kName: the name; kPmu: the PMU; kTracepoint: the event
  std::string system;            // kTracepoint: the subsystem
  uint64_t raw = 0;              // kRaw: the number
  std::vector<EventTerm> terms;  // kPmu
  std::string modifiers;         // letters behind the colon, its group's too

  bool operator==(const EventItem&) const = default;
};

// Events in braces, or one that stands alone.
using EventGroupItems = std::vector<EventItem>;

// Takes `text` apart: at least one event, at most kMaxRequestedEvents. Errors: InvalidArgument,
// one line that names the character (counted from 1) and what was expected there.
absl::StatusOr<std::vector<EventGroupItems>> ParseEventList(std::string_view text);

// The terms between the slashes, or of a file below a PMU's `events`: "event=0x3c,inv". Errors as
// above; an empty text has no terms.
absl::StatusOr<std::vector<EventTerm>> ParseEventTerms(std::string_view text);

// The number in "r1a8" or "r0x1a8", at most 64 bits of hex digits, or nothing.
std::optional<uint64_t> ParseRawEvent(std::string_view word);

// "0x1f", "31": an unsigned number as perf writes it, or nothing.
std::optional<uint64_t> ParseTermValue(std::string_view text);

}  // namespace vcpulse::kvm
