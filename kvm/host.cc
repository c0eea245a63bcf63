#include "kvm/host.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "kvm/counters/counter_group.h"
#include "kvm/events/pmu.h"
#include "kvm/proc_files.h"
#include "kvm/proc_tree.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace vcpulse::kvm {
namespace {

std::string FirstLineOf(const std::string& path) {
  const std::optional<std::string> text = ReadSmallFile(path);
  return text ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

// The value of the first line "KEY : VALUE" of /proc/cpuinfo or /proc/meminfo.
std::string FieldOf(const std::string& file, const std::string& key) {
  for (const absl::string_view line : absl::StrSplit(file, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == ToAbsl(key)) {
      return std::string(absl::StripAsciiWhitespace(parts[1]));
    }
  }
  return "";
}

std::string CpuModel(const std::string& root) {
  const std::string cpuinfo = ReadSmallFile(root + "/proc/cpuinfo").value_or("");
  std::string name = FieldOf(cpuinfo, "model name");
  if (!name.empty()) return name;
  const std::string implementer = FieldOf(cpuinfo, "CPU implementer");
  if (implementer.empty()) return "";
  return absl::StrCat("implementer ", implementer, " part ", FieldOf(cpuinfo, "CPU part"));
}

// Whether one of `cpus` is in `list`, CPU numbers with blanks between them.
bool AnyOf(std::span<const int> cpus, const std::string& list) {
  for (const absl::string_view text : absl::StrSplit(list, ' ', absl::SkipEmpty())) {
    const auto cpu = ParseNumber<int>(ToStd(text));
    if (cpu && std::ranges::find(cpus, *cpu) != cpus.end()) return true;
  }
  return false;
}

// What the fields of one processor say, as text; the first of each.
struct Fields {
  std::optional<std::string_view> vendor_id, family, model, stepping, microcode;  // x86
  std::optional<std::string_view> implementer, part, variant, revision;           // arm64

  std::optional<std::string_view>* Find(std::string_view key) {
    if (key == "vendor_id") return &vendor_id;
    if (key == "cpu family") return &family;
    if (key == "model") return &model;
    if (key == "stepping") return &stepping;
    if (key == "microcode") return &microcode;
    if (key == "CPU implementer") return &implementer;
    if (key == "CPU part") return &part;
    if (key == "CPU variant") return &variant;
    if (key == "CPU revision") return &revision;
    return nullptr;
  }
};

// "85" or "0xd0c"; nothing where it is neither.
std::optional<uint32_t> Number(const std::optional<std::string_view>& text) {
  if (!text) return std::nullopt;
  if (text->starts_with("0x")) return ParseNumber<uint32_t>(text->substr(2), 16);
  return ParseNumber<uint32_t>(*text);
}

Fields FirstProcessor(std::string_view cpuinfo) {
  Fields fields;
  int processors = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(cpuinfo), '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    const auto key = ToStd(absl::StripAsciiWhitespace(line.substr(0, colon)));
    const auto value = ToStd(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (key == "processor" && ++processors > 1) break;
    std::optional<std::string_view>* const field = fields.Find(key);
    if (field != nullptr && !field->has_value()) *field = value;
  }
  return fields;
}

// CPUID gives twelve characters.
bool IsVendor(std::string_view text) {
  constexpr size_t kLongest = 12;
  return text.size() <= kLongest && std::ranges::all_of(text, absl::ascii_isgraph);
}

constexpr int kMostCpus = 1 << 16;

std::vector<std::optional<uint32_t>> CpuNodes(const std::string& root) {
  std::vector<std::optional<uint32_t>> nodes;
  std::set<uint32_t> known;
  std::error_code error;
  std::filesystem::directory_iterator folder(root + "/sys/devices/system/node", error);
  for (; !error && folder != std::filesystem::directory_iterator(); folder.increment(error)) {
    const std::string name = folder->path().filename();
    if (!name.starts_with("node")) continue;
    const auto node = ParseNumber<uint32_t>(std::string_view(name).substr(4));
    const auto cpus = ParseCpuList(FirstLineOf(folder->path() / "cpulist"));
    if (!node || *node == UINT32_MAX || !cpus) continue;
    for (const int cpu : *cpus) {
      if (cpu < 0 || cpu >= kMostCpus) continue;
      const auto place = static_cast<size_t>(cpu);
      if (nodes.size() <= place) nodes.resize(place + 1);
      nodes[place] = *node;
      known.insert(*node);
    }
  }
  if (known.size() < 2) nodes.clear();
  return nodes;
}

std::vector<std::optional<uint32_t>> CpuCores(const std::string& root) {
  const std::string cpus = root + "/sys/devices/system/cpu/cpu";
  std::vector<std::optional<uint32_t>> cores;
  bool any_siblings = false;
  const auto online = ParseCpuList(FirstLineOf(root + "/sys/devices/system/cpu/online"));
  for (const int cpu : online.value_or(std::vector<int>())) {
    if (cpu < 0 || cpu >= kMostCpus) continue;
    const auto threads =
        ParseCpuList(FirstLineOf(absl::StrCat(cpus, cpu, "/topology/thread_siblings_list")));
    if (!threads || threads->empty() || std::ranges::min(*threads) < 0) continue;
    const auto place = static_cast<size_t>(cpu);
    if (cores.size() <= place) cores.resize(place + 1);
    cores[place] = static_cast<uint32_t>(std::ranges::min(*threads));
    any_siblings |= threads->size() > 1;
  }
  if (!any_siblings) cores.clear();
  return cores;
}

}  // namespace

HostFacts ReadHostFacts(const std::string& root) {
  HostFacts facts;
  utsname name{};
  if (uname(&name) == 0) {
    const std::string node = name.nodename;
    if (node != "(none)") facts.host_name = node;  // the kernel's word before a name is set
    facts.kernel_release = name.release;
    facts.machine = name.machine;
  }
  facts.boot_id = FirstLineOf(root + "/proc/sys/kernel/random/boot_id");
  facts.cpu_model = CpuModel(root);
  facts.online_cpus = static_cast<uint32_t>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
  facts.cpu_nodes = CpuNodes(root);
  facts.cpu_cores = CpuCores(root);
  return facts;
}

std::optional<int> PerfEventParanoid(const std::string& root) {
  return ParseNumber<int>(FirstLineOf(root + "/proc/sys/kernel/perf_event_paranoid"));
}

std::string OwnerOfProcess(const std::string& root, pid_t pid) {
  struct stat info{};
  if (::stat(absl::StrCat(root, "/proc/", pid).c_str(), &info) != 0) return "";
  return absl::StrCat("uid ", info.st_uid);
}

std::optional<double> CpufreqMaxHz(const std::string& root, std::span<const int> cpus) {
  std::optional<double> highest;
  std::error_code error;
  const std::filesystem::path folder = root + "/sys/devices/system/cpu/cpufreq";
  for (const auto& policy : std::filesystem::directory_iterator(folder, error)) {
    if (!cpus.empty() && !AnyOf(cpus, FirstLineOf(policy.path() / "related_cpus"))) continue;
    const auto khz = ParseNumber<uint64_t>(FirstLineOf(policy.path() / "cpuinfo_max_freq"));
    if (khz) highest = std::max(highest.value_or(0), static_cast<double>(*khz) * 1e3);
  }
  return highest;
}

std::optional<double> RateBetween(std::span<const BracketedReading> begin,
                                  std::span<const BracketedReading> end) {
  if (begin.empty() || end.empty()) return std::nullopt;
  const auto width = [](const BracketedReading& reading) {
    return reading.after_ns - reading.before_ns;
  };
  const BracketedReading& first = *std::ranges::min_element(begin, {}, width);
  const BracketedReading& last = *std::ranges::min_element(end, {}, width);
  // Twice the instants in the middle of the brackets.
  const int64_t twice_ns = (last.before_ns + last.after_ns) - (first.before_ns + first.after_ns);
  if (last.count <= first.count || twice_ns <= 0) return std::nullopt;
  return static_cast<double>(last.count - first.count) * 2e9 / static_cast<double>(twice_ns);
}

#if defined(__x86_64__)
namespace {

using TscReadings = std::array<BracketedReading, 16>;

TscReadings ReadTsc() {
  TscReadings readings;
  for (BracketedReading& reading : readings) {
    reading.before_ns = ClockNow_ns(CLOCK_MONOTONIC_RAW);
    reading.count = __rdtsc();
    reading.after_ns = ClockNow_ns(CLOCK_MONOTONIC_RAW);
  }
  return readings;
}

}  // namespace
#endif

std::optional<double> MeasureTscHz(absl::Duration span) {
#if defined(__x86_64__)
  const TscReadings begin = ReadTsc();
  absl::SleepFor(span);
  return RateBetween(begin, ReadTsc());
#else
  static_cast<void>(span);
  return std::nullopt;
#endif
}

namespace {

// What `event` counts of the calling thread in user mode while it does `work`. Errors: errno;
// ENODATA where the event was never on the PMU.
OrErrno<GroupValues> CountOnSelf(PerfEvents& perf, const Event& event,
                                 void (*work)(absl::Duration)) {
  perf_event_attr attr = AttrOf(event, /*leader=*/true);
  attr.exclude_host = 0;
  attr.exclude_guest = 1;
  attr.exclude_kernel = 1;  // an ordinary user may count that of himself
  attr.exclude_hv = 1;
  OrErrno<Fd> fd = perf.Open(attr, /*tid=*/0, /*group_fd=*/-1);
  if (!fd.ok()) return {.error = fd.error};
  const OrErrno<uint64_t> id = perf.Id(fd.value.get());
  if (!id.ok()) return {.error = id.error};
  if (const int error = perf.EnableGroup(fd.value.get()); error != 0) return {.error = error};
  work(absl::Milliseconds(5));

  std::array<uint64_t, kGroupWords> words;
  const OrErrno<size_t> got = perf.Read(fd.value.get(), words);
  if (!got.ok()) return {.error = got.error};
  const std::optional<GroupValues> values =
      ParseGroupRead(std::span(words).first(got.value), std::span(&id.value, 1));
  if (!values || values->time_running_ns == 0) return {.error = ENODATA};
  return {.value = *values};
}

}  // namespace

OrErrno<double> ProbeCycleHz(PerfEvents& perf, const Event& cycles) {
  const OrErrno<GroupValues> seen = CountOnSelf(perf, cycles, BurnCpu);
  if (!seen.ok()) return {.error = seen.error};
  if (seen.value.counts[0] == 0) return {.error = ENODATA};
  return {.value = static_cast<double>(seen.value.counts[0]) * 1e9 /
                   static_cast<double>(seen.value.time_running_ns)};
}

std::string WhyPauseIsNotBelieved(PerfEvents& perf, const Event& pause) {
  const OrErrno<GroupValues> seen = CountOnSelf(perf, pause, PauseCpu);
  if (!seen.ok() || seen.value.counts[0] > 0) return "";
  return "it opens here, but stays 0 through a loop of PAUSEs";
}

void BurnCpu(absl::Duration span) {
  const int64_t end_ns = ClockNow_ns(CLOCK_MONOTONIC_RAW) + absl::ToInt64Nanoseconds(span);
  volatile uint64_t sink = 0;
  while (ClockNow_ns(CLOCK_MONOTONIC_RAW) < end_ns) {
    for (int i = 0; i < 1000; ++i) sink = sink + 1;
  }
}

void PauseCpu(absl::Duration span) {
  const int64_t end_ns = ClockNow_ns(CLOCK_MONOTONIC_RAW) + absl::ToInt64Nanoseconds(span);
  while (ClockNow_ns(CLOCK_MONOTONIC_RAW) < end_ns) {
    for (int i = 0; i < 100; ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  }
}

CpuIdentity ParseCpuIdentity(std::string_view cpuinfo) {
  const Fields fields = FirstProcessor(cpuinfo);
  CpuIdentity cpu;
  if (fields.vendor_id) {
    if (IsVendor(*fields.vendor_id)) cpu.vendor = *fields.vendor_id;
    cpu.family = Number(fields.family).value_or(0);
    cpu.model = Number(fields.model).value_or(0);
    cpu.stepping = Number(fields.stepping).value_or(0);
    if (const auto microcode = Number(fields.microcode)) {
      cpu.microcode = absl::StrCat("0x", absl::Hex(*microcode));
    }
  } else if (const auto implementer = Number(fields.implementer)) {
    cpu.vendor = absl::StrCat("0x", absl::Hex(*implementer, absl::kZeroPad2));
    cpu.model = Number(fields.part).value_or(0);
    // Four bits each in MIDR_EL1.
    cpu.stepping = (Number(fields.variant).value_or(0) & 0xf) << 4 |
                   (Number(fields.revision).value_or(0) & 0xf);
  }
  return cpu;
}

std::optional<uint64_t> AvailableBytes(const std::string& root) {
  const std::string meminfo = ReadSmallFile(root + "/proc/meminfo").value_or("");
  const std::string text = FieldOf(meminfo, "MemAvailable");  // "1024 kB"
  const auto available_kib = ParseNumber<uint64_t>(text.substr(0, text.find(' ')));
  if (!available_kib) return std::nullopt;
  const uint64_t available = *available_kib << 10;
  // "max" is no limit.
  const auto most = ParseNumber<uint64_t>(FirstLineOf(root + "/sys/fs/cgroup/memory.max"));
  const auto taken = ParseNumber<uint64_t>(FirstLineOf(root + "/sys/fs/cgroup/memory.current"));
  if (!most || !taken) return available;
  return std::min(available, *most - std::min(*most, *taken));
}

CpuIdentity ReadCpuIdentity(const std::string& root) {
  return ParseCpuIdentity(ReadSmallFile(root + "/proc/cpuinfo").value_or(""));
}

}  // namespace vcpulse::kvm
