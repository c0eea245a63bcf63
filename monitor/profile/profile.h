#pragma once

// monitor/profile is where the classifiers' numbers come from: JSON texts, built in (data/, also
// installed for people to read and copy) or from a file, each number with its origin. It chooses
// the one for this CPU. docs/bands.md has the fields.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/events/event.h"
#include "kvm/host.h"
#include "monitor/core/profile.h"

namespace vcpulse::profile {

// Both ends inclusive.
struct CodeRange {
  uint32_t from = 0;
  uint32_t to = 0;

  bool operator==(const CodeRange&) const = default;
};

// The CPUs that a built-in profile is for.
struct CpuMatch {
  std::vector<std::string> vendors;  // one or more, as in kvm::CpuIdentity; "arm64": any of Arm
  uint32_t family = 0;               // x86
  std::vector<CodeRange> models;     // x86: models; arm64: parts. Empty: all of the vendor
  std::vector<CodeRange> steppings;  // x86. Empty: all

  // Whether the vendor's models are numbered within families: not on arm64, which has parts.
  bool HasFamilies() const;
  bool Matches(const kvm::CpuIdentity& cpu) const;
  // "GenuineIntel family 6 model 0x55 stepping 5-7", for people.
  std::string ToText() const;

  bool operator==(const CpuMatch&) const = default;
};

// The event of one CPU model that counts PAUSE.
struct PauseEvent {
  std::string name;     // perf's, one of those that core::FindSlots knows
  uint64_t config = 0;  // of a raw event: umask << 8 | event

  kvm::Event ToEvent() const;

  bool operator==(const PauseEvent&) const = default;
};

struct Profile {
  std::string name;
  std::string description;
  std::string source;  // "built-in", or the name of the file
  core::Profile values;
  std::optional<PauseEvent> pause;  // nothing where the CPU has none, or none is known
  std::optional<CpuMatch> cpu;      // the CPUs it is chosen for; nothing: for none by itself
  // The CPUs that `pause` and the IPCs of spins are those of. Nothing: a file gave them itself, for
  // whatever CPU it is used on, or there are none.
  std::optional<CpuMatch> pause_cpu;
  std::optional<CpuMatch> spin_ipc_cpu;
  // Where each number comes from, by its field ("loop_ipc_from", "spin_ipc[0]", "pause").
  std::map<std::string, std::string> origins;
};

// The profiles that are built in, the generic ones first.
std::span<const Profile> BuiltIn();

// data/*.json as they were when the program was built, bases before what is based on them: it may
// run where no file is.
struct BuiltInText {
  std::string_view file;
  std::string_view json;
};
std::span<const BuiltInText> BuiltInTexts();

// Of JSON text: larger ones are refused.
inline constexpr size_t kMostBytes = size_t{1} << 20;

// A whole profile from JSON text. What it leaves out comes from the one of `bases` that it names
// (field "base"), or from the first, or from core::Profile{} where there are none. `source` goes
// into the result and begins every error message. InvalidArgument: one line that names the field,
// what it holds and what it should; for text that is no JSON the line and column.
absl::StatusOr<Profile> Parse(std::string_view json, const std::string& source,
                              std::span<const Profile> bases = BuiltIn());

// OK, or InvalidArgument as Parse gives it for a number out of its limits, without the source.
absl::Status Check(const core::Profile& values);

// The resolved profile as JSON that Parse takes again: every number with its origin.
std::string ToJson(const Profile& profile);

// The built-in profile of that name, or the file of that name. Errors: NotFound where it is
// neither, naming both meanings and the nearest built-in name; those of Parse.
absl::StatusOr<Profile> Load(const std::string& name_or_file);

// What of a profile is of other CPUs than this one, and must not be used here: one line for people.
// Empty where nothing is.
std::string WhatIsOfOtherCpus(const Profile& profile, const kvm::CpuIdentity& cpu);

// The built-in profile for a CPU: that of its model, else the generic one of its vendor, else
// "generic".
const Profile& ChooseFor(const kvm::CpuIdentity& cpu);

}  // namespace vcpulse::profile
