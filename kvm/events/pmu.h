#pragma once

// The PMUs of a host as sysfs shows them
// (Documentation/ABI/testing/sysfs-bus-event_source-devices-*):
// /sys/bus/event_source/devices/NAME/{type,cpus,cpumask,format/,events/}.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vcpulse::kvm {

// Where one format term puts the bits of its value, lowest first.
struct PmuField {
  int word = 0;           // 0: config, 1: config1, 2: config2
  std::vector<int> bits;  // bit numbers within that word, ascending

  bool operator==(const PmuField&) const = default;
};

struct Pmu {
  std::string name;
  uint32_t type = 0;
  // Ascending, as `cpus` says (core PMUs of hybrid CPUs and of Arm); empty: all.
  std::vector<int> cpus;
  bool per_cpu_only = false;  // has a `cpumask`: counts whole CPUs or packages, never a thread
  std::map<std::string, PmuField> format;
  // Named event to its terms, such as "event=0x3c,umask=0x00".
  std::map<std::string, std::string> events;

  bool operator==(const Pmu&) const = default;
};

// "config:0-7,32-35" or "config1:1"; nothing for any other text.
std::optional<PmuField> ParsePmuField(std::string_view text);

// A kernel CPU list such as "0-3,8,10-11", ascending; nothing for any other text, an empty one too.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// All PMUs below ROOT/sys, by name. What cannot be read or parsed is left out: a term of a config
// word that vcpulse does not know alone, a PMU without a type or with an empty `cpus` (none of its
// CPUs is online) as a whole. `root` as in Discovery. Reads files; any thread.
std::vector<Pmu> ReadPmus(const std::string& root);

// Those that count instructions of a CPU's cores: `cpu`; `cpu_core` and `cpu_atom` on hybrid x86;
// on Arm those with a `cpus` file (armv8_pmuv3_0, armv8_cortex_a53, ...). More than one: a hybrid
// host, on which each counts on its own CPUs only.
std::vector<Pmu> CorePmus(std::span<const Pmu> pmus);

}  // namespace vcpulse::kvm
