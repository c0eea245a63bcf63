#include "kvm/events/event_resolver.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/closest_name.h"
#include "kvm/events/event_modifiers.h"
#include "kvm/events/event_names.h"
#include "kvm/events/event_syntax.h"
#include "kvm/events/pmu_event.h"

namespace vcpulse::kvm {
namespace {

constexpr absl::string_view kWhereToLook = "`vcpulse list events` shows them";

absl::Status Prefixed(const absl::Status& status, const EventItem& item) {
  return absl::Status(status.code(),
                      absl::StrCat("event ", absl::CHexEscape(item.text), ": ", status.message()));
}

// PMUs of the kernel that are no hardware: their events are raised by the host's kernel, which asks
// exclude_host of none of them.
bool IsHostSide(const Pmu& pmu) {
  constexpr std::array<std::string_view, 5> kKernelPmus = {"software", "tracepoint", "breakpoint",
                                                           "kprobe", "uprobe"};
  return std::ranges::find(kKernelPmus, pmu.name) != kKernelPmus.end();
}

// Arm's PMUv3 driver names its PMUs so (drivers/perf/arm_pmuv3.c).
bool IsArmPmuV3(const Pmu& pmu) {
  return pmu.name.starts_with("armv8_") || pmu.name.starts_with("armv9_");
}

constexpr uint64_t kArmEventNumber = 0xffff;  // ARMV8_PMU_EVTYPE_EVENT
constexpr uint64_t kArmListedBelow = 0x40;    // ARMV8_PMUV3_MAX_COMMON_EVENTS

bool Lists(const Pmu& pmu, uint64_t number) {
  return std::ranges::any_of(pmu.events, [&](const auto& named) {
    const auto terms = ParseEventTerms(named.second);
    if (!terms.ok()) return false;
    const auto event = EncodePmuEvent(pmu, *terms);
    return event.ok() && (event->config & kArmEventNumber) == number;
  });
}

// Why a 0 of this event could not be believed (ResolveEvents says on what grounds), or nothing.
std::optional<std::string> Disbelief(const Event& event, const EventCatalog& catalog) {
  const uint64_t number = event.config & kArmEventNumber;
  std::string names;
  for (const Pmu& pmu : catalog.core_pmus()) {
    if (event.type != PERF_TYPE_RAW && event.type != pmu.type) continue;
    // Without a list, or on another PMU, nothing is known.
    if (!IsArmPmuV3(pmu) || pmu.events.empty()) return std::nullopt;
    if (number >= kArmListedBelow || Lists(pmu, number)) return std::nullopt;
    absl::StrAppend(&names, names.empty() ? "" : " and ", pmu.name);
  }
  if (names.empty()) return std::nullopt;
  return absl::StrCat("event 0x", absl::Hex(number), " is not among those that ", names,
                      " implements by its own list; it would count 0 whatever the guest does");
}

class Resolver {
 public:
  explicit Resolver(const EventCatalog& catalog) : catalog_(catalog) {}

  absl::StatusOr<Event> Resolve(const EventItem& item) const {
    if (std::string refusal = ModifierRefusal(item.modifiers); !refusal.empty()) {
      return absl::InvalidArgumentError(refusal);
    }
    switch (item.kind) {
      case EventItem::Kind::kName:
        return Named(item);
      case EventItem::Kind::kRaw:
        return Event{.name = item.text, .type = PERF_TYPE_RAW, .config = item.raw};
      case EventItem::Kind::kPmu:
        return OfPmu(item);
      case EventItem::Kind::kTracepoint:
        return Tracepoint(item);
    }
    return absl::InternalError("an event of no kind");
  }

 private:
  absl::StatusOr<Event> Named(const EventItem& item) const {
    if (std::optional<Event> event = FindGenericEvent(item.name)) return *std::move(event);
    std::vector<const Pmu*> owners;
    for (const Pmu& pmu : catalog_.core_pmus()) {
      if (pmu.events.contains(item.name)) owners.push_back(&pmu);
    }
    if (owners.empty()) return absl::NotFoundError(UnknownName(item.name));
    if (owners.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("more than one PMU has it: write ",
                                                     owners[0]->name, "/", item.name, "/ or ",
                                                     owners[1]->name, "/", item.name, "/"));
    }
    absl::StatusOr<Event> event =
        EncodePmuEvent(*owners[0], std::array{EventTerm{.name = item.name}});
    if (event.ok()) {
      event->name = item.text;
      event->pmu = owners[0]->name;
    }
    return event;
  }

  absl::StatusOr<Event> OfPmu(const EventItem& item) const {
    const Pmu* pmu = catalog_.FindPmu(item.name);
    if (pmu == nullptr) return absl::NotFoundError(UnknownPmu(item.name));
    if (pmu->per_cpu_only) {
      return absl::InvalidArgumentError(
          absl::StrCat(pmu->name,
                       " counts whole CPUs or packages and no thread (it has a cpumask), so what a "
                       "guest's share of it is unknown"));
    }
    absl::StatusOr<Event> event = GenericOnCorePmu(*pmu, item);
    if (event.ok() && event->name.empty()) event = EncodePmuEvent(*pmu, item.terms);
    if (!event.ok()) return event.status();
    if (event->name != item.text && FindGenericEvent(event->name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "name=", event->name, " is the name of a generic event, by which vcpulse would know it"));
    }
    if (event->name.empty()) event->name = item.text;
    event->pmu = pmu->name;
    event->host_side = IsHostSide(*pmu);
    return event;
  }

  // `cpu/L1-dcache-loads/`, as newer perfs print it: a generic event for which a core PMU has no
  // named one. Where there are several core PMUs, config holds the type of the one that is meant in
  // its upper half (PERF_PMU_TYPE_SHIFT, Linux 5.13). An event without a name where it is not that.
  absl::StatusOr<Event> GenericOnCorePmu(const Pmu& pmu, const EventItem& item) const {
    const std::span<const Pmu> core = catalog_.core_pmus();
    if (item.terms.size() != 1 || item.terms[0].value ||
        std::ranges::find(core, pmu.name, &Pmu::name) == core.end() ||
        EncodePmuEvent(pmu, item.terms).ok()) {
      return Event{};
    }
    std::optional<Event> event = FindGenericEvent(item.terms[0].name);
    if (!event || event->type == PERF_TYPE_SOFTWARE) return Event{};
    event->name = item.text;
    if (core.size() > 1) event->config |= uint64_t{pmu.type} << 32;
    return *std::move(event);
  }

  absl::StatusOr<Event> Tracepoint(const EventItem& item) const {
    if (item.text.find_first_of("*?[]!") != std::string::npos) {
      return absl::InvalidArgumentError(
          "wildcards are not taken: name each tracepoint, so that every recording has the same "
          "columns (`vcpulse list events 'kvm:*'` shows them)");
    }
    const absl::StatusOr<uint64_t> id = catalog_.TracepointId(item.system, item.name);
    if (absl::IsNotFound(id.status())) {
      return absl::NotFoundError(absl::StrCat(
          id.status().message(), DidYouMean(item.text, catalog_.Tracepoints()),
          " (`vcpulse list events '", absl::CHexEscape(item.system), ":*'` shows them)"));
    }
    if (!id.ok()) return id.status();
    return Event{.name = item.text, .type = PERF_TYPE_TRACEPOINT, .config = *id, .host_side = true};
  }

  std::string UnknownName(const std::string& name) const {
    std::vector<std::string> names;
    for (const GenericEvent& generic : GenericEvents()) {
      names.push_back(generic.event.name);
      names.insert(names.end(), generic.aliases.begin(), generic.aliases.end());
    }
    for (const Pmu& pmu : catalog_.core_pmus()) {
      for (const auto& [event, terms] : pmu.events) names.push_back(event);
    }
    return absl::StrCat("there is no such event", DidYouMean(name, names), " (", kWhereToLook, ")");
  }

  std::string UnknownPmu(const std::string& name) const {
    if (FindGenericEvent(name)) {
      return absl::StrCat(name, " is an event and no PMU: terms stand behind a PMU's name only");
    }
    std::vector<std::string> names;
    for (const Pmu& pmu : catalog_.pmus()) names.push_back(pmu.name);
    return absl::StrCat("this host has no PMU ", absl::CHexEscape(name),
                        names.empty() ? "" : absl::StrCat("; it has ", absl::StrJoin(names, ", ")),
                        DidYouMean(name, names));
  }

  const EventCatalog& catalog_;
};

// Counts are kept by name. The same event under two names is allowed, as perf allows it.
absl::Status CheckNew(const Event& event, const std::vector<Event>& before) {
  if (std::ranges::find(before, event.name, &Event::name) != before.end()) {
    return absl::InvalidArgumentError("named twice");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EventRequest> ResolveEvents(std::string_view text, const EventCatalog& catalog) {
  const auto list = ParseEventList(text);
  if (!list.ok()) return list.status();
  const Resolver resolver(catalog);
  EventRequest request;
  std::vector<Event> known;
  for (const EventGroupItems& items : *list) {
    std::vector<Event> group;
    for (const EventItem& item : items) {
      absl::StatusOr<Event> event = resolver.Resolve(item);
      if (!event.ok()) return Prefixed(event.status(), item);
      if (absl::Status status = CheckNew(*event, known); !status.ok()) {
        return Prefixed(status, item);
      }
      known.push_back(*event);
      if (std::optional<std::string> reason = Disbelief(*event, catalog)) {
        request.absent.push_back({.name = event->name, .reason = *std::move(reason)});
      } else {
        group.push_back(*std::move(event));
      }
    }
    if (!group.empty()) request.groups.push_back(std::move(group));
  }
  return request;
}

}  // namespace vcpulse::kvm
