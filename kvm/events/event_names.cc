#include "kvm/events/event_names.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

using Words = std::vector<std::string_view>;

// PERF_COUNT_SW_CGROUP_SWITCHES: Linux 5.13; not in the headers of older systems.
constexpr uint64_t kCgroupSwitches = 11;

// A word of perf's cache names, in the order of the kernel's enum; the first spellings are printed.
struct CacheWords {
  uint64_t value = 0;
  Words words;
};

const std::vector<CacheWords>& Caches() {
  static const std::vector<CacheWords> caches = {
      {PERF_COUNT_HW_CACHE_L1D, {"L1-dcache", "l1-d", "l1d", "L1-data"}},
      {PERF_COUNT_HW_CACHE_L1I, {"L1-icache", "l1-i", "l1i", "L1-instruction"}},
      {PERF_COUNT_HW_CACHE_LL, {"LLC", "L2"}},
      {PERF_COUNT_HW_CACHE_DTLB, {"dTLB", "d-tlb", "Data-TLB"}},
      {PERF_COUNT_HW_CACHE_ITLB, {"iTLB", "i-tlb", "Instruction-TLB"}},
      {PERF_COUNT_HW_CACHE_BPU, {"branch", "bpu", "btb", "bpc"}},
      {PERF_COUNT_HW_CACHE_NODE, {"node"}},
  };
  return caches;
}

// Printed with an access: the second word ("loads"); with a miss: the first ("load-misses").
const std::vector<CacheWords>& Operations() {
  static const std::vector<CacheWords> operations = {
      {PERF_COUNT_HW_CACHE_OP_READ, {"load", "loads", "read"}},
      {PERF_COUNT_HW_CACHE_OP_WRITE, {"store", "stores", "write"}},
      {PERF_COUNT_HW_CACHE_OP_PREFETCH,
       {"prefetch", "prefetches", "speculative-read", "speculative-load"}},
  };
  return operations;
}

const std::vector<CacheWords>& Results() {
  static const std::vector<CacheWords> results = {
      {PERF_COUNT_HW_CACHE_RESULT_ACCESS, {"refs", "Reference", "ops", "access"}},
      {PERF_COUNT_HW_CACHE_RESULT_MISS, {"misses", "miss"}},
  };
  return results;
}

// perf_event_open(2): the config of a cache event.
uint64_t CacheConfig(uint64_t cache, uint64_t operation, uint64_t result) {
  return cache | operation << 8 | result << 16;
}

// Takes one of the words off the front of `text` and gives its value. The word ends with the text
// or with a dash, which is taken too.
std::optional<uint64_t> TakeWord(const std::vector<CacheWords>& choices, std::string_view& text) {
  for (const CacheWords& choice : choices) {
    for (const std::string_view word : choice.words) {
      if (!absl::StartsWithIgnoreCase(ToAbsl(text), ToAbsl(word))) continue;
      std::string_view rest = text.substr(word.size());
      if (rest.starts_with('-') && rest.size() > 1) {
        rest.remove_prefix(1);
      } else if (!rest.empty()) {
        continue;
      }
      text = rest;
      return choice.value;
    }
  }
  return std::nullopt;
}

// As perf reads them (tools/perf/util/parse-events.c): at most one operation and one result behind
// the cache, in either order.
std::optional<Event> FindCacheEvent(std::string_view name) {
  std::string_view rest = name;
  const std::optional<uint64_t> cache = TakeWord(Caches(), rest);
  if (!cache) return std::nullopt;
  std::optional<uint64_t> operation = TakeWord(Operations(), rest);
  const std::optional<uint64_t> result = TakeWord(Results(), rest);
  if (!operation) operation = TakeWord(Operations(), rest);
  if (!rest.empty()) return std::nullopt;
  return Event{
      .name = std::string(name),
      .type = PERF_TYPE_HW_CACHE,
      .config = CacheConfig(*cache, operation.value_or(PERF_COUNT_HW_CACHE_OP_READ),
                            result.value_or(PERF_COUNT_HW_CACHE_RESULT_ACCESS)),
  };
}

GenericEvent Hardware(uint64_t config, std::string name, std::vector<std::string> aliases = {}) {
  return {.kind = GenericKind::kHardware,
          .event = {.name = std::move(name), .type = PERF_TYPE_HARDWARE, .config = config},
          .aliases = std::move(aliases)};
}

GenericEvent Software(uint64_t config, std::string name, std::vector<std::string> aliases = {}) {
  return {.kind = GenericKind::kSoftware,
          .event = {.name = std::move(name),
                    .type = PERF_TYPE_SOFTWARE,
                    .config = config,
                    .host_side = true},
          .aliases = std::move(aliases)};
}

void AddHardware(std::vector<GenericEvent>& events) {
  events.push_back(Hardware(PERF_COUNT_HW_CPU_CYCLES, "cycles", {"cpu-cycles"}));
  events.push_back(Hardware(PERF_COUNT_HW_INSTRUCTIONS, "instructions"));
  events.push_back(Hardware(PERF_COUNT_HW_CACHE_REFERENCES, "cache-references"));
  events.push_back(Hardware(PERF_COUNT_HW_CACHE_MISSES, "cache-misses"));
  events.push_back(
      Hardware(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches", {"branch-instructions"}));
  events.push_back(Hardware(PERF_COUNT_HW_BRANCH_MISSES, "branch-misses"));
  events.push_back(Hardware(PERF_COUNT_HW_BUS_CYCLES, "bus-cycles"));
  events.push_back(Hardware(PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend",
                            {"idle-cycles-frontend"}));
  events.push_back(Hardware(PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "stalled-cycles-backend",
                            {"idle-cycles-backend"}));
  events.push_back(Hardware(PERF_COUNT_HW_REF_CPU_CYCLES, "ref-cycles"));
}

void AddSoftware(std::vector<GenericEvent>& events) {
  events.push_back(Software(PERF_COUNT_SW_CPU_CLOCK, "cpu-clock"));
  events.push_back(Software(PERF_COUNT_SW_TASK_CLOCK, "task-clock"));
  events.push_back(Software(PERF_COUNT_SW_PAGE_FAULTS, "page-faults", {"faults"}));
  events.push_back(Software(PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches", {"cs"}));
  events.push_back(Software(PERF_COUNT_SW_CPU_MIGRATIONS, "cpu-migrations", {"migrations"}));
  events.push_back(Software(PERF_COUNT_SW_PAGE_FAULTS_MIN, "minor-faults"));
  events.push_back(Software(PERF_COUNT_SW_PAGE_FAULTS_MAJ, "major-faults"));
  events.push_back(Software(PERF_COUNT_SW_ALIGNMENT_FAULTS, "alignment-faults"));
  events.push_back(Software(PERF_COUNT_SW_EMULATION_FAULTS, "emulation-faults"));
  events.push_back(Software(PERF_COUNT_SW_DUMMY, "dummy"));
  events.push_back(Software(PERF_COUNT_SW_BPF_OUTPUT, "bpf-output"));
  events.push_back(Software(kCgroupSwitches, "cgroup-switches"));
}

void AddCache(std::vector<GenericEvent>& events) {
  for (const CacheWords& cache : Caches()) {
    for (const CacheWords& operation : Operations()) {
      for (const CacheWords& result : Results()) {
        const bool miss = result.value == PERF_COUNT_HW_CACHE_RESULT_MISS;
        const std::string name =
            absl::StrCat(ToAbsl(cache.words[0]), "-", ToAbsl(operation.words[miss ? 0 : 1]),
                         miss ? "-misses" : "");
        events.push_back(
            {.kind = GenericKind::kCache,
             .event = {.name = name,
                       .type = PERF_TYPE_HW_CACHE,
                       .config = CacheConfig(cache.value, operation.value, result.value)}});
      }
    }
  }
}

std::vector<GenericEvent> MakeGenericEvents() {
  std::vector<GenericEvent> events;
  AddHardware(events);
  AddSoftware(events);
  AddCache(events);
  return events;
}

}  // namespace

std::string_view ToString(GenericKind kind) {
  switch (kind) {
    case GenericKind::kHardware:
      return "hardware";
    case GenericKind::kSoftware:
      return "software";
    case GenericKind::kCache:
      return "cache";
  }
  return "";
}

std::span<const GenericEvent> GenericEvents() {
  static const std::vector<GenericEvent> events = MakeGenericEvents();
  return events;
}

std::optional<Event> FindGenericEvent(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(ToAbsl(name));
  for (const GenericEvent& generic : GenericEvents()) {
    if (generic.kind == GenericKind::kCache) continue;
    if (generic.event.name == lower) return generic.event;
    if (std::ranges::find(generic.aliases, lower) == generic.aliases.end()) continue;
    Event event = generic.event;
    if (event.name != "cycles" && event.name != "branches") event.name = lower;
    return event;
  }
  return FindCacheEvent(name);
}

}  // namespace vcpulse::kvm
