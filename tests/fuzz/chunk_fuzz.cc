// The reader of timelines, from arbitrary bytes. The first byte is the mode:
//   even  the rest is a file
//   odd   the rest is the first and last sequence number (a byte each) and the content of a chunk,
//         stored plainly behind a header with good checksums, so that the content's decoder is
//         reached without guessing a CRC

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <variant>
#include <vector>

#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::timeline {
namespace {

// Looks at every value, so that a read out of bounds is seen, and at what a reader may rely on.
void Read(std::span<const uint8_t> bytes) {
  uint64_t records = 0;
  uint64_t sum = 0;
  const auto report = ReadTimelineBytes(bytes, [&](const Entry& entry) {
    if (entry.sequence > 0) ++records;
    if (const auto* tick = std::get_if<TickEntry>(&entry.record)) {
      if (tick->verdicts.size() != tick->sample.vcpus.size()) std::abort();
      if (tick->previous && tick->previous->vcpus.size() != tick->sample.vcpus.size()) std::abort();
      for (const core::VcpuSample& vcpu : tick->sample.vcpus) {
        sum += vcpu.time_enabled_ns + vcpu.counts[0] + vcpu.counts[core::kMaxEvents - 1];
      }
      if (tick->sample.further.size() != tick->sample.FurtherGroups() * tick->sample.vcpus.size()) {
        std::abort();
      }
      for (const core::GroupSample& group : tick->sample.further) {
        sum += group.time_running_ns + group.counts[0] + group.counts[core::kMaxEvents - 1];
      }
      if (tick->previous) sum += tick->previous->tick;
    }
    return absl::OkStatus();
  });
  if (!report.ok()) return;
  if (report->records != records) std::abort();
  uint64_t end = 0;
  for (const Damage& damage : report->damages) {
    if (damage.offset < end || damage.bytes == 0) std::abort();
    end = damage.offset + damage.bytes;
  }
  if (end > bytes.size()) std::abort();
  volatile uint64_t used = sum;
  static_cast<void>(used);
}

std::vector<uint8_t> AsChunk(std::span<const uint8_t> input) {
  const std::span<const uint8_t> content = input.subspan(2);
  const auto length = static_cast<uint32_t>(content.size());
  const auto head = EncodeChunkHeader({.payload_bytes = length,
                                       .content_bytes = length,
                                       .first_sequence = input[0],
                                       .last_sequence = input[1],
                                       .payload_crc = Crc32c(content)});
  std::vector<uint8_t> chunk(head.begin(), head.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  return chunk;
}

}  // namespace
}  // namespace vcpulse::timeline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span input(data, size);
  if (size >= 3 && data[0] % 2 == 1) {
    vcpulse::timeline::Read(vcpulse::timeline::AsChunk(input.subspan(1)));
  } else if (size >= 1) {
    vcpulse::timeline::Read(input.subspan(1));
  }
  return 0;
}
