#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kvm/tracing/tracepoint_format.h"

namespace vcpulse::kvm {

// How to tell from a record of kvm:kvm_exit where the guest was when an interrupt of the host took
// it out: such exits come whatever the guest does, so they alone are a fair sample of its code.
class KvmExitFormat {
 public:
  // Nothing where it has not the fields that are known: x86's guest_rip, exit_reason and isa, or
  // arm64's vcpu_pc and ret.
  static std::optional<KvmExitFormat> From(TracepointFormat format);

  uint64_t id() const { return format_.id; }
  // The same as a filter for the kernel (PERF_EVENT_IOC_SET_FILTER).
  std::string_view filter() const { return filter_; }
  // The guest's instruction pointer; nothing of another exit.
  std::optional<uint64_t> AddressOf(std::span<const uint8_t> record) const;

 private:
  TracepointFormat format_;
  bool is_x86_ = false;
  std::string_view filter_;
};

}  // namespace vcpulse::kvm
