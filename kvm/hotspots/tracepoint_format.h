#pragma once

// Where the fields of a tracepoint are in its raw record, from the `format` file that tracefs has
// for it (Documentation/trace/events.rst). Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vcpulse::kvm {

struct TracepointFormat {
  struct Field {
    std::string name;
    size_t offset = 0;
    size_t size = 0;

    bool operator==(const Field&) const = default;
  };

  uint64_t id = 0;
  std::vector<Field> fields;

  const Field* Find(std::string_view name) const;
};

// Nothing where the text is no such file.
std::optional<TracepointFormat> ParseTracepointFormat(std::string_view text);

// An unsigned field of 1, 2, 4 or 8 bytes; nothing where the record is too short, or the field is
// null or of another size.
std::optional<uint64_t> ReadField(std::span<const uint8_t> record,
                                  const TracepointFormat::Field* field);

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
