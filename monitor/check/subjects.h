#pragma once

// Whom an expectation is about. Pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "monitor/check/expression.h"
#include "monitor/check/timetable.h"

namespace vcpulse::check {

// One vCPU, or one VM, that was there in the judged time.
struct Subject {
  uint32_t vm = 0;               // number in the stream
  std::optional<uint32_t> vcpu;  // nothing: the VM
  std::string vm_name;           // as the timeline has it
  std::string label;             // "VM web vCPU 2", for people
  bool degraded = false;         // in all of the time no hardware counter was read
  // Where it, or a vCPU of it, could not be opened for all or part of the time: why.
  std::optional<std::string> unopened;
};

struct Selection {
  std::vector<Subject> subjects;  // by VM and vCPU
  std::vector<uint32_t> vms;      // numbers of those that the selector fits, there or not
  // Whom the selector names and who was not there, or was there and not recorded, for people.
  std::vector<std::string> missing;
  std::vector<std::string> skipped;  // names of VMs that were there and not recorded
};

// Those of `timetable` that were there in `spans`, or complaints that say who was. Whole VMs where
// `of_vms` (gaps). Where there is no subject there is a complaint.
Selection Select(const Timetable& timetable, const std::vector<TimeRange>& spans,
                 const Selector& selector, bool of_vms);

// "4-5, 8": which of `ranges` are not among `indexes`; empty where all are.
std::string NotAmong(const std::vector<IndexRange>& ranges, const std::set<uint32_t>& indexes);

// "vm=web vcpu=0-3"; "vm=*" or "vcpu=*" where nothing is named.
std::string ToString(const Selector& selector, bool of_vms);

// What a VM is called, for people: its name, or "pid-7"; with its PID where several have that name.
std::string LabelOf(const Timetable& timetable, uint32_t vm);

// reading::DegradedText of the VMs that had no hardware counter in all of their epochs.
std::string DegradedText(const Timetable& timetable);

}  // namespace vcpulse::check
