#pragma once

// Names of the schema's values, shared by text and JSON.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/core/features.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::reading {

std::string_view GapReasonName(v1::Gap::Reason reason);    // "read-failed", ...
std::string_view ClassifierOf(const v1::VcpuSet& set);     // that judged it: "ipc-bands", ...
std::string_view LifeCycleName(v1::LifeCycle::Kind kind);  // "vm-found", ...
// "no-kvm", ...; nothing where the record does not say, or is of another kind.
std::optional<std::string_view> SkipReasonName(const v1::LifeCycle& change);
// The one character of a band in strips and lines of text: . HALTED, S SPINNING, # PRODUCTIVE,
// ? UNKNOWN, - no verdict; of a starved vCPU : $ % ! instead.
char BandLetter(core::Band band, bool starved);
std::optional<std::string_view> BandName(core::Band band);  // "halted"; nothing for kNone
std::optional<std::string_view> StateName(
    core::ThreadState state);  // "blocked"; nothing if not read
std::optional<std::string_view> ResidencyMethodName(v1::ResidencyMethod method);
// The key of a feature in JSON: "ipc", "branch_misses_per_kcycle", ...
std::string_view FeatureName(core::Feature feature);
std::optional<std::string_view> SchedulingName(v1::Scheduling scheduling);

// "ENOENT"; nothing for 0 and for numbers that are no errno.
std::optional<std::string> ErrnoName(int32_t error);
// "ENOENT: No such file or directory", or "errno N".
std::string ErrnoText(int32_t error);

// What is said first of a timeline without hardware counters, behind "DEGRADED: ": the VMs of which
// none was read, of how many, and why (empty: not known). Nothing where all had one; of no VM at
// all the reason alone decides.
std::string DegradedText(const std::vector<std::string>& vms, size_t of, std::string_view why);

// Whether verdicts of this rule are UNKNOWN, so that the rule is the reason.
bool IsUnknownReason(core::Rule rule);
// What an UNKNOWN of this rule means, for people: "IPC between the two bands".
std::string_view Explain(core::Rule rule);
// Why a rule that asks whether a vCPU ran gave its band, for people.
std::string WhyByPresence(core::Rule rule);

// The VMs, by number, that a user means by `text`: those of this name or UUID; else of this PID;
// else of this number, as a name may be a number. Several where a name is not unique.
std::vector<uint32_t> VmsMeant(const std::string& text,
                               const std::map<uint32_t, const v1::VmInstance*>& vms);

// Why an agent does not send records that it had, in the words of a person who runs it: "the
// agent's spool was full".
const char* WhyLost(v1::LostRecords::Reason reason);

}  // namespace vcpulse::reading
