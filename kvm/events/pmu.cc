#include "kvm/events/pmu.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kvm/base/text.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxBit = 63;
// Far above what any kernel is built for (NR_CPUS), so that a wrong text cannot fill the memory.
constexpr int kMaxCpu = 65535;

// "3" or "0-7", both ends at most `max`.
std::optional<std::pair<int, int>> ParseRange(std::string_view text, int max) {
  const size_t dash = text.find('-');
  const auto first = ParseNumber<unsigned>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : ParseNumber<unsigned>(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last > static_cast<unsigned>(max)) return std::nullopt;
  return std::pair(static_cast<int>(*first), static_cast<int>(*last));
}

// "0-7,32-35": each number once, ascending in whatever order they were written.
std::optional<std::vector<int>> ParseRanges(std::string_view text, int max) {
  std::vector<int> numbers;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    const auto range = ParseRange(ToStd(part), max);
    // More numbers than there are different ones: some of them twice, and again and again.
    if (!range || numbers.size() > static_cast<size_t>(max)) return std::nullopt;
    for (int number = range->first; number <= range->second; ++number) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
  return numbers;
}

std::optional<std::string> ReadLine(const std::string& path) {
  const std::optional<std::string> text = ReadSmallFile(path);
  if (!text) return std::nullopt;
  return std::string(absl::StripAsciiWhitespace(*text));
}

std::vector<std::string> Entries(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    names.push_back(it->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// Beside an event's own file there may be some that say how to scale or add up its count.
bool IsEventFile(std::string_view name) {
  constexpr std::array<std::string_view, 4> kBesideEvents = {".unit", ".scale", ".per-pkg",
                                                             ".snapshot"};
  return std::ranges::none_of(kBesideEvents,
                              [name](std::string_view suffix) { return name.ends_with(suffix); });
}

std::optional<Pmu> ReadPmu(const std::string& folder, const std::string& name) {
  Pmu pmu;
  pmu.name = name;
  const auto type = ReadLine(folder + "/type");
  const auto number = type ? ParseNumber<uint32_t>(*type) : std::nullopt;
  if (!number) return std::nullopt;
  pmu.type = *number;
  if (const auto text = ReadLine(folder + "/cpus")) {
    const auto cpus = ParseCpuList(*text);
    if (!cpus) return std::nullopt;
    pmu.cpus = *cpus;
  }
  std::error_code error;
  pmu.per_cpu_only = fs::exists(folder + "/cpumask", error);
  for (const std::string& term : Entries(folder + "/format")) {
    const auto text = ReadLine(absl::StrCat(folder, "/format/", term));
    const auto field = text ? ParsePmuField(*text) : std::nullopt;
    if (field) pmu.format[term] = *field;
  }
  for (const std::string& event : Entries(folder + "/events")) {
    if (!IsEventFile(event)) continue;
    const auto terms = ReadLine(absl::StrCat(folder, "/events/", event));
    if (terms && !terms->empty()) pmu.events[event] = *terms;
  }
  return pmu;
}

}  // namespace

std::optional<PmuField> ParsePmuField(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"config", "config1", "config2"};
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto word = std::ranges::find(kWords, text.substr(0, colon));
  const auto bits = ParseRanges(text.substr(colon + 1), kMaxBit);
  if (word == kWords.end() || !bits) return std::nullopt;
  return PmuField{static_cast<int>(word - kWords.begin()), *bits};
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  return ParseRanges(text, kMaxCpu);
}

std::vector<Pmu> ReadPmus(const std::string& root) {
  const std::string folder =
      absl::StrCat(root, root.ends_with('/') ? "" : "/", "sys/bus/event_source/devices");
  std::vector<Pmu> pmus;
  for (const std::string& name : Entries(folder)) {
    std::optional<Pmu> pmu = ReadPmu(absl::StrCat(folder, "/", name), name);
    if (pmu) pmus.push_back(*std::move(pmu));
  }
  return pmus;
}

std::vector<Pmu> CorePmus(std::span<const Pmu> pmus) {
  std::vector<Pmu> core;
  for (const Pmu& pmu : pmus) {
    if (pmu.per_cpu_only) continue;
    if (pmu.name == "cpu" || !pmu.cpus.empty()) core.push_back(pmu);
  }
  return core;
}

}  // namespace vcpulse::kvm
