#include "monitor/live/target.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"

namespace vcpulse::live {
namespace {

// A silent QMP socket belongs to another client; a live one greets within milliseconds.
constexpr absl::Duration kQmpTimeout = absl::Seconds(2);

constexpr absl::Duration kWaitRetry = absl::Milliseconds(200);

}  // namespace

bool IsTcg(const kvm::Vm& vm) { return vm.accelerator == kvm::Accelerator::kTcg; }

bool IsUsable(const kvm::Vm& vm) { return !IsTcg(vm) && !vm.vcpus.empty(); }

absl::StatusOr<std::vector<kvm::Vm>> Find(const kvm::Discovery& discovery, const Target& target) {
  if (!target.IsOne()) return discovery.FindAll();
  absl::StatusOr<kvm::Vm> vm = !target.vm.empty()    ? discovery.FindByName(target.vm)
                               : target.pid != 0     ? discovery.FindByPid(target.pid)
                               : !target.qmp.empty() ? discovery.FindByQmp(target.qmp, kQmpTimeout)
                                                     : discovery.FindByTids(target.tids);
  if (!vm.ok()) return vm.status();
  return std::vector<kvm::Vm>{*std::move(vm)};
}

absl::StatusOr<std::vector<kvm::Vm>> FindWithPatience(const Target& target, absl::Duration patience,
                                                      const std::function<void()>& begins_to_wait) {
  const kvm::Discovery discovery(target.root);
  const Deadline give_up(patience);
  for (bool waits = false;; waits = true) {
    absl::StatusOr<std::vector<kvm::Vm>> found = Find(discovery, target);
    const bool unusable = found.ok() && !target.all && std::ranges::none_of(*found, IsUsable);
    const bool later =
        unusable || absl::IsNotFound(found.status()) || absl::IsUnavailable(found.status());
    if (!later) return found;
    if (give_up.over()) {
      if (found.ok() && found->empty()) {
        found = absl::NotFoundError(
            "no KVM guest runs here: start one, or give --wait 30s, --all or -- CMD");
      }
      if (!found.ok() && !waits && !target.vm.empty() && absl::IsNotFound(found.status())) {
        return absl::NotFoundError(
            absl::StrCat(found.status().message(), " (--wait 30s waits for it)"));
      }
      if (found.ok() || !waits) return found;
      return absl::Status(found.status().code(), absl::StrCat(found.status().message(), " (waited ",
                                                              absl::FormatDuration(patience), ")"));
    }
    if (!waits && begins_to_wait) begins_to_wait();
    absl::SleepFor(kWaitRetry);
  }
}

}  // namespace vcpulse::live
