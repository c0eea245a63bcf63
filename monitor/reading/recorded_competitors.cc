#include "monitor/reading/recorded_competitors.h"

#include <algorithm>
#include <array>
#include <functional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"

namespace vcpulse::reading {
namespace {

// A window lasts a second; a damaged file may say anything.
uint64_t Believable(uint64_t ns) { return std::min(ns, uint64_t{3600} * 1'000'000'000); }

// Longer names are a damaged file's.
std::string Cut(const std::string& name) { return name.substr(0, 256); }

std::string InProcess(const std::string& thread, const std::string& process, uint32_t pid) {
  std::vector<std::string> words = {thread.empty() ? "a thread without a name" : thread};
  if (!process.empty() && process != thread) words.push_back("of " + process);
  if (pid != 0) words.push_back(absl::StrCat("[", pid, "]"));
  return absl::StrJoin(words, " ");
}

}  // namespace

std::string SharesOf(const CompetitorTotals& totals) {
  constexpr size_t kMost = 3;
  constexpr double kSmallest = 0.01;
  if (totals.waited_ns == 0) return "";
  const auto waited_ns = static_cast<double>(totals.waited_ns);
  std::vector<std::string> shares;
  const auto add = [&](uint64_t ns, const std::string& whose) {
    shares.push_back(
        absl::StrFormat("%.1f %% %s", 100 * static_cast<double>(ns) / waited_ns, whose));
  };
  uint64_t others_ns = totals.further_ns;
  for (const CompetitorTotal& one : totals.competitors) {
    if (shares.size() < kMost && static_cast<double>(one.ns) >= kSmallest * waited_ns) {
      add(one.ns, Printable(one.label));
    } else {
      others_ns += one.ns;
    }
  }
  const auto is_worth_it = [&](uint64_t ns) {
    return static_cast<double>(ns) >= 0.0005 * waited_ns;
  };
  if (is_worth_it(others_ns)) add(others_ns, "others");
  if (is_worth_it(totals.unattributed_ns)) add(totals.unattributed_ns, "unattributed");
  return absl::StrFormat("%s of the %.0f ms that it waited", absl::StrJoin(shares, ", "),
                         waited_ns * 1e-6);
}

void RecordedCompetitors::Add(const timeline::Entry& entry) {
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) Add(*set);
  if (const auto* window = std::get_if<v1::Competitors>(&entry.record)) Add(*window);
}

void RecordedCompetitors::Add(const v1::VcpuSet& set) {
  vm_names_[set.vm()] = set.instance().name();
  for (const v1::Vcpu& vcpu : set.vcpus()) {
    known_.insert({set.vm(), vcpu.index()});
    members_[vcpu.tid()] = {.vm = set.vm(), .vcpu = vcpu.index()};
  }
}

void RecordedCompetitors::Add(const v1::Competitors& window) {
  const std::pair key(window.vm(), window.vcpu_index());
  if (!known_.contains(key)) return;
  if (!window.refused().empty()) {
    refused_[key] = Cut(window.refused());
    return;
  }
  Vcpu& vcpu = vcpus_[key];
  CompetitorTotals& sums = vcpu.sums;
  ++sums.windows;
  sums.lost += Believable(window.lost());
  if (!window.ended_by().empty()) sums.ended_by = Cut(window.ended_by());
  if (!window.has_run_delay_ns()) sums.run_delay_ns.reset();
  if (sums.run_delay_ns) *sums.run_delay_ns += Believable(window.run_delay_ns());
  for (const uint32_t cpu : window.cpus()) {
    if (sums.cpus.size() < kMostCpus) sums.cpus.insert(cpu);
  }
  // Sums of the parts, so that shares are those of a whole whatever a damaged file says.
  const uint64_t waited_ns = Believable(window.waited_ns());
  const uint64_t unattributed_ns = Believable(window.unattributed_ns());
  uint64_t seen_ns = 0;
  for (const v1::Competitor& one : window.competitors()) {
    const uint64_t ns = Believable(one.ns());
    if (ns == 0) continue;
    seen_ns += ns;
    const bool is_ours = members_.contains(one.tid());
    const Who who = one.tid() == 0 ? Who{.is_idle = true}
                    : is_ours      ? Who{.vcpu_tid = one.tid()}
                                   : Who{.is_kernel = one.kernel_thread(),
                                         .thread_name = Cut(one.thread_name()),
                                         .process_name = Cut(one.process_name()),
                                         .vm_name = Cut(one.vm_name())};
    const bool is_new = !vcpu.shares.contains(who);
    if (is_new && vcpu.shares.size() >= kMostPerVcpu) {
      sums.further_ns += ns;
      continue;
    }
    Share& share = vcpu.shares[who];
    share.pid = is_new || share.pid == one.pid() ? one.pid() : 0;
    share.ns += ns;
  }
  const uint64_t further_ns = waited_ns - std::min(waited_ns, unattributed_ns + seen_ns);
  sums.further_ns += further_ns;
  sums.unattributed_ns += unattributed_ns;
  sums.waited_ns += unattributed_ns + seen_ns + further_ns;
}

CompetitorTotal RecordedCompetitors::Named(const Who& who, const Share& share) const {
  CompetitorTotal total{.thread_name = who.thread_name,
                        .process_name = who.process_name,
                        .pid = share.pid,
                        .ns = share.ns};
  using Kind = CompetitorTotal::Kind;
  if (who.is_idle) {
    total.kind = Kind::kIdle;
    total.label = "nobody, an idle CPU";
  } else if (who.vcpu_tid != 0) {
    const Member& member = members_.at(who.vcpu_tid);
    total.kind = Kind::kVcpu;
    total.vm = vm_names_.at(member.vm);
    total.vcpu = member.vcpu;
    total.label = absl::StrCat("vCPU ", *total.vcpu, " of ", total.vm);
  } else if (!who.vm_name.empty()) {
    total.kind = Kind::kVm;
    total.vm = who.vm_name;
    total.label = absl::StrCat(who.thread_name, " of VM ", who.vm_name);
    if (share.pid != 0) absl::StrAppend(&total.label, " (PID ", share.pid, ")");
  } else {
    if (who.is_kernel) total.kind = Kind::kKernel;
    total.label = who.is_kernel ? "kernel thread " : "";
    total.label += InProcess(who.thread_name, who.process_name, share.pid);
  }
  return total;
}

std::optional<CompetitorTotals> RecordedCompetitors::Of(uint32_t vm, uint32_t vcpu) const {
  const auto found = vcpus_.find({vm, vcpu});
  if (found == vcpus_.end()) return std::nullopt;
  CompetitorTotals totals = found->second.sums;
  for (const auto& [who, share] : found->second.shares) {
    totals.competitors.push_back(Named(who, share));
  }
  std::ranges::stable_sort(totals.competitors, std::greater(), &CompetitorTotal::ns);
  return totals;
}

std::optional<std::string> RecordedCompetitors::Refused(uint32_t vm) const {
  for (auto it = refused_.lower_bound({vm, 0}); it != refused_.end() && it->first.first == vm;
       ++it) {
    if (!vcpus_.contains(it->first))
      return absl::StrCat("vCPU ", it->first.second, ": ", it->second);
  }
  return std::nullopt;
}

std::string_view ToString(CompetitorTotal::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"vcpu", "vm", "process", "kernel", "idle"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace vcpulse::reading
