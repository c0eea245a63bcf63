// What reads whole timelines: classify, exports, replay, explanations. Arbitrary bytes are the
// content of a chunk, stored plainly behind a header with good checksums.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "monitor/export/csv.h"
#include "monitor/export/jsonl.h"
#include "monitor/export/parquet.h"
#include "monitor/export/perfetto.h"
#include "monitor/replay/pace.h"
#include "monitor/replay/reclassify.h"
#include "monitor/replay/record_copy.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/report/explain.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/reader.h"

namespace vcpulse {
namespace {

std::vector<uint8_t> AsChunk(std::span<const uint8_t> content, uint8_t first, uint8_t last) {
  const auto length = static_cast<uint32_t>(content.size());
  const auto head = timeline::EncodeChunkHeader({.payload_bytes = length,
                                                 .content_bytes = length,
                                                 .first_sequence = first,
                                                 .last_sequence = last,
                                                 .payload_crc = timeline::Crc32c(content)});
  std::vector<uint8_t> chunk(head.begin(), head.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  return chunk;
}

void Classify(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> out;
  const auto writer = timeline::NewChunkWriter({}, [&out](std::span<const uint8_t> chunk) {
    out.insert(out.end(), chunk.begin(), chunk.end());
    return absl::OkStatus();
  });
  replay::Reclassify reclassify("x", {}, replay::SettingsOf, *writer);
  const auto read = timeline::ReadTimelineBytes(
      bytes, [&](const timeline::Entry& entry) { return reclassify.Take(entry); });
  if (!read.ok() || !reclassify.Finish().ok() || out.empty()) return;
  // What it writes is whole.
  const auto again =
      timeline::ReadTimelineBytes(out, [](const timeline::Entry&) { return absl::OkStatus(); });
  if (!again.ok() || !again->damages.empty() || again->lost_records != 0) std::abort();
}

template <typename Format, typename... Arguments>
void Export(std::span<const uint8_t> bytes, Arguments... arguments) {
  uint64_t characters = 0;
  Format out(
      [&characters](std::string_view text) {
        characters += text.size();
        return absl::OkStatus();
      },
      arguments...);
  static_cast<void>(timeline::ReadTimelineBytes(
      bytes, [&](const timeline::Entry& entry) { return out.Add(entry); }));
  static_cast<void>(out.Finish());
}

// What `replay` makes of it.
void Play(std::span<const uint8_t> bytes) {
  uint64_t length = 0;
  const auto writer = timeline::NewDelimitedWriter([&length](std::span<const uint8_t> more) {
    length += more.size();
    return absl::OkStatus();
  });
  replay::RecordCopy copy(*writer);
  replay::Pace pace({.speed = 1});
  static_cast<void>(timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    static_cast<void>(pace.DueNs(entry, 0));
    copy.Take(entry);
    return absl::OkStatus();
  }));
  static_cast<void>(writer->Flush({}));
}

void Explain(std::span<const uint8_t> bytes, int64_t at_ns) {
  report::Explainer explainer({.vcpu = 0, .at_ns = at_ns});
  static_cast<void>(timeline::ReadTimelineBytes(
      bytes, [&](const timeline::Entry& entry) { return explainer.Add(entry); }));
  static_cast<void>(explainer.Finish());
}

}  // namespace
}  // namespace vcpulse

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::vector<uint8_t> chunk =
      vcpulse::AsChunk(std::span(data, size).subspan(2), data[0], data[1]);
  vcpulse::Classify(chunk);
  vcpulse::Export<vcpulse::exporting::JsonlExport>(chunk);
  vcpulse::Export<vcpulse::exporting::CsvExport>(chunk);
  vcpulse::Export<vcpulse::exporting::ParquetExport>(chunk, "0");
  vcpulse::Export<vcpulse::exporting::PerfettoExport>(chunk);
  vcpulse::Play(chunk);
  vcpulse::Explain(chunk, data[0] * int64_t{100'000'000});
  return 0;
}
