#include "kvm/events/event_probe.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/counters/counter_group.h"
#include "kvm/events/event_names.h"
#include "kvm/events/event_resolver.h"

namespace vcpulse::kvm {
namespace {

bool Matches(const std::string& pattern, const std::string& name) {
  const bool is_part = pattern.find_first_of("*?[") == std::string::npos;
  const std::string whole = is_part ? absl::StrCat("*", pattern, "*") : pattern;
  return fnmatch(whole.c_str(), name.c_str(), FNM_CASEFOLD | FNM_NOESCAPE) == 0;
}

bool Matches(const std::string& pattern, const ListedEvent& listed) {
  return absl::EqualsIgnoreCase(pattern, listed.kind) || Matches(pattern, listed.name) ||
         std::ranges::any_of(listed.aliases,
                             [&](const std::string& alias) { return Matches(pattern, alias); });
}

// An event that has its own name on this host only.
ListedEvent OfThisHost(std::string name, std::string kind, const EventCatalog& catalog) {
  ListedEvent listed = {.name = std::move(name), .kind = std::move(kind)};
  const auto request = ResolveEvents(listed.name, catalog);
  if (!request.ok()) {
    listed.obstacle = std::string(request.status().message());
  } else if (!request->absent.empty()) {
    listed.obstacle = request->absent.front().reason;
  } else {
    listed.event = request->groups.front().front();
  }
  return listed;
}

}  // namespace

std::vector<ListedEvent> ListEvents(const EventCatalog& catalog, std::string_view pattern_view) {
  const std::string pattern(pattern_view);
  std::vector<ListedEvent> events;
  const auto add = [&](ListedEvent listed) {
    if (Matches(pattern, listed)) events.push_back(std::move(listed));
  };
  for (const GenericEvent& generic : GenericEvents()) {
    add({.name = generic.event.name,
         .aliases = generic.aliases,
         .kind = std::string(ToString(generic.kind)),
         .event = generic.event});
  }
  for (const Pmu& pmu : catalog.core_pmus()) {
    for (const auto& [name, terms] : pmu.events) {
      add(OfThisHost(absl::StrCat(pmu.name, "/", name, "/"), "pmu", catalog));
    }
  }
  if (pattern.empty()) return events;
  const bool all = absl::EqualsIgnoreCase(pattern, "tracepoint");
  for (std::string& name : catalog.Tracepoints()) {
    if (!all && !Matches(pattern, name)) continue;
    events.push_back(OfThisHost(std::move(name), "tracepoint", catalog));
  }
  return events;
}

int TryToOpen(PerfEvents& perf, const Event& event) {
  perf_event_attr attr = AttrOf(event, /*leader=*/true);
  return perf.Open(attr, /*tid=*/0, /*group_fd=*/-1).error;
}

std::string OpenAnswer(int error) {
  switch (error) {
    case 0:
      return "opens";
    case EACCES:
    case EPERM:
      return "no permission";
    case ENOENT:
      return "no such event on this host";
    case ENODEV:
    case EOPNOTSUPP:
      return "the PMU cannot count it for guests now";
    case EINVAL:
      return "refused as invalid";
    case EBUSY:
      return "the PMU has an exclusive user";
    case EMFILE:
      return "too many open descriptors";
    default:
      return std::strerror(error);
  }
}

}  // namespace vcpulse::kvm
