#include <sys/utsname.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kvm/counters/group_opener.h"
#include "kvm/discovery/discovery.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/doctor/checks.h"
#include "kvm/events/pmu.h"

namespace vcpulse::kvm::doctor {
namespace {

constexpr int kSleeps = 60;
constexpr size_t kMostQmp = 8;
constexpr size_t kMostVms = 8;
// A live server greets within milliseconds.
constexpr absl::Duration kQmpTimeout = absl::Milliseconds(300);

void Append(std::vector<Finding> more, std::vector<Finding>& findings) {
  std::ranges::move(more, std::back_inserter(findings));
}

std::vector<Finding> CheckCounters(PerfEvents& perf, const std::string& root, const OwnRights& own,
                                   const std::vector<Pmu>& cores) {
  utsname name{};
  uname(&name);
  const CounterContext context{.perf = perf,
                               .own = own,
                               .cores = cores,
                               .mediated = MediatedVpmuObstacle(root),
                               .machine = name.machine};
  std::vector<Finding> findings = CheckPmus(context);
  findings.push_back(CheckHostCycles(context));
  findings.push_back(CheckGuestOnly(context));
  Append(CheckEventSets(context), findings);
  findings.push_back(CheckNmiWatchdog(root));
  return findings;
}

}  // namespace

std::vector<Finding> Examine(PerfEvents& perf, const std::string& root) {
  const OwnRights own = ReadOwnRights(root);
  const std::vector<Vm> vms = Discovery(root).FindAll();
  const std::vector<Pmu> cores = CorePmus(ReadPmus(root));
  const std::vector<SeenVm> seen = LookAt(root, vms);

  std::vector<Finding> findings = {CheckKvm(root), CheckMediatedVpmu(root), CheckNested(root),
                                   CheckVirtualHost(root)};
  Append(CheckPermission(perf, root, own, vms), findings);
  Append(CheckCounters(perf, root, own, cores), findings);
  Append(CheckVms(seen), findings);
  Append(CheckThreadNames(seen), findings);
  Append(
      CheckQmp(
          seen, [](const std::string& address) { return QueryQmp(address, kQmpTimeout).status(); },
          kMostQmp),
      findings);
  findings.push_back(CheckIsolatedCpus(root, vms));
  findings.push_back(CheckDebugfs(root));
  findings.push_back(CheckDescriptors(own, vms, cores.size() > 1 ? 15 : 8));
  findings.push_back(CheckHotAddresses(perf, root));
  findings.push_back(CheckCompetitors(perf, root));
  findings.push_back(CheckReader(root));
  Append(CheckStatistics(root, vms, kMostVms), findings);
  findings.push_back(CheckLateness(MeasureLateness_ns(kSleeps, absl::Milliseconds(1))));
  return findings;
}

std::string_view ToString(Finding::State state) {
  switch (state) {
    case Finding::State::kOk:
      return "ok";
    case Finding::State::kFail:
      return "fail";
    case Finding::State::kNote:
      return "note";
    case Finding::State::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kComplete:
      return "complete";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kDegraded:
      return "degraded";
    case Verdict::kFails:
      return "fails";
  }
  return "";
}

bool LeavesAVmUnknown(const Finding& finding) {
  return finding.of_vm && finding.state == Finding::State::kUnknown;
}

Verdict VerdictOf(std::span<const Finding> findings) {
  const bool unknown = std::ranges::any_of(findings, LeavesAVmUnknown);
  Verdict verdict = unknown ? Verdict::kUnknown : Verdict::kComplete;
  for (const Finding& finding : findings) {
    if (finding.state != Finding::State::kFail) continue;
    if (finding.prevents) return Verdict::kFails;
    verdict = Verdict::kDegraded;
  }
  return verdict;
}

}  // namespace vcpulse::kvm::doctor
