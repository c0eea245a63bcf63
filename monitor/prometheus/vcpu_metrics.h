#pragma once

// monitor/prometheus is what Prometheus scrapes: the text of its exposition format, made of what a
// recording or a collector counts. It opens no socket.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "monitor/timeline/writer.h"

namespace vcpulse::prometheus {

// How finely a recording is served. Each level brings what those before it have.
enum class MetricsLevel : uint8_t {
  kHost,  // sums over all VMs: as many series whatever runs
  kVm,    // and over the vCPUs of each VM
  kVcpu,  // and each vCPU
};
// "host", "vm" or "vcpu"; nothing for another text.
std::optional<MetricsLevel> FindMetricsLevel(std::string_view name);

// What the vCPUs of a recording did, added up since its start. Any thread.
class VcpuMetrics {
 public:
  static std::unique_ptr<VcpuMetrics> Create(MetricsLevel level = MetricsLevel::kVcpu);
  virtual ~VcpuMetrics() = default;

  // A writer that counts every record and hands it on. The metrics must outlive it; it is used by
  // one thread while Text is called by others.
  virtual std::unique_ptr<timeline::RecordWriter> Count(
      std::unique_ptr<timeline::RecordWriter> next) = 0;
  // Per vCPU, VM and host, as far as the level goes: seconds per band, guest cycles and
  // instructions where they are counted (absent, not 0, where they are not), run delay; ticks,
  // gaps, lateness. A VM that has ended stays for five minutes, so that its last values are
  // scraped, and in the sums of the host for good.
  virtual std::string Text() const = 0;

 protected:
  VcpuMetrics() = default;
};

}  // namespace vcpulse::prometheus
