#include "monitor/export/sets_of_file.h"

#include <vector>

#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_scanner.h"

namespace vcpulse::exporting {

absl::Status FindSets(const std::string& path, absl::FunctionRef<void(const v1::VcpuSet&)> sink) {
  const auto source = timeline::OpenByteSource(path);
  if (!source.ok()) return source.status();
  std::vector<timeline::Damage> damages;  // told by the reading that follows
  timeline::ChunkScanner scanner(source->get(), &damages);
  timeline::ChunkDecoder decoder;
  while (true) {
    const auto found = scanner.Next();
    if (!found.ok()) return found.status();
    if (!found->has_value()) return absl::OkStatus();
    const auto payload = scanner.ReadPayload(**found);
    if (!payload.ok()) return payload.status();
    if (!payload->has_value() || !decoder.Open((*found)->header, **payload).ok()) continue;
    for (const v1::VcpuSet& set : decoder.context().vcpu_sets()) sink(set);
  }
}

}  // namespace vcpulse::exporting
