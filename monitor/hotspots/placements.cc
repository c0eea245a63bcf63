#include "monitor/hotspots/placements.h"

#include <iterator>

#include "monitor/hotspots/code_record.h"

namespace vcpulse::hotspots {

void Placements::Add(uint64_t sequence, const v1::HotAddresses& window, const GuestKernel& kernel) {
  using Found = KnownCode::Place::Found;
  OfVm& vm = vms_[window.vm()];
  if (vm.misses == kMostMisses) return;
  const KnownCode::Place place = kernel.code.Locate(CodeOf(window).pieces);
  if (place.found == Found::kNotCompared) return;
  if (place.found == Found::kNowhere) {
    ++vm.misses;
  } else {
    vm.found[sequence] = place.moved_by;
  }
}

bool Placements::IsAnotherKernel(uint32_t vm) const {
  const auto of_vm = vms_.find(vm);
  return of_vm != vms_.end() && of_vm->second.found.empty() && of_vm->second.misses > 0;
}

uint64_t Placements::MovedBy(uint32_t vm, uint64_t sequence) const {
  const auto of_vm = vms_.find(vm);
  if (of_vm == vms_.end() || of_vm->second.found.empty()) return 0;
  const auto& found = of_vm->second.found;
  const auto after = found.upper_bound(sequence);
  return after == found.begin() ? after->second : std::prev(after)->second;
}

}  // namespace vcpulse::hotspots
