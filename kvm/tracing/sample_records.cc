#include "kvm/tracing/sample_records.h"

#include <linux/perf_event.h>

#include <optional>

#include "kvm/base/bytes.h"

namespace vcpulse::kvm {
namespace {

static_assert(kIpSampleType ==
              (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD));
static_assert(kRawSampleType == (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW));
static_assert(kSwitchSampleType == (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU));

std::optional<GuestMode> ModeOf(uint16_t misc) {
  switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_GUEST_KERNEL:
      return GuestMode::kKernel;
    case PERF_RECORD_MISC_GUEST_USER:
      return GuestMode::kUser;
    default:
      return std::nullopt;  // the host's
  }
}

}  // namespace

bool ReadRecords(std::span<const uint8_t> bytes, bool is_raw, const RingRecords& into) {
  // Of kRawSampleType: the header, pid and tid, the time, then the size of what follows.
  constexpr size_t kRawSize = sizeof(perf_event_header) + 8 + 8;
  while (!bytes.empty()) {
    const auto header = ReadAt<perf_event_header>(bytes, 0);
    if (!header || header->size < sizeof(*header) || header->size > bytes.size()) return false;
    const std::span<const uint8_t> record = bytes.first(header->size);
    bytes = bytes.subspan(header->size);
    if (header->type == PERF_RECORD_LOST) {
      const auto lost = ReadAt<uint64_t>(record, sizeof(*header) + 8);  // after the event's id
      if (!lost) return false;
      into.lost(*lost);
    } else if (header->type == PERF_RECORD_SWITCH && into.switched) {
      const auto time_ns = ReadAt<uint64_t>(record, sizeof(*header) + 8);
      const auto cpu = ReadAt<int32_t>(record, sizeof(*header) + 16);
      if (!time_ns || !cpu) return false;
      into.switched({.is_out = (header->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0,
                     .waits = (header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0,
                     .time_ns = *time_ns,
                     .cpu = *cpu});
    } else if (header->type == PERF_RECORD_SAMPLE && is_raw) {
      const auto size = ReadAt<uint32_t>(record, kRawSize);
      if (!size || record.size() - kRawSize - sizeof(*size) < *size) return false;
      into.raw({.tid = *ReadAt<pid_t>(record, sizeof(*header) + 4),
                .time_ns = *ReadAt<uint64_t>(record, sizeof(*header) + 8),
                .record = record.subspan(kRawSize + sizeof(*size), *size)});
    } else if (header->type == PERF_RECORD_SAMPLE) {
      const auto address = ReadAt<uint64_t>(record, sizeof(*header));
      if (!address) return false;
      if (const auto mode = ModeOf(header->misc)) {
        into.address({.address = *address, .mode = *mode});
      }
    }
  }
  return true;
}

}  // namespace vcpulse::kvm
