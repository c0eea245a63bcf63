#pragma once

// monitor/prometheus is what Prometheus scrapes: the text of its exposition format, made of what a
// recording or a collector counts. It opens no socket.

#include <functional>
#include <memory>
#include <string>

#include "monitor/timeline/writer.h"

namespace vcpulse::prometheus {

// What each vCPU of a recording did, added up since its start. Any thread.
class VcpuMetrics {
 public:
  static std::unique_ptr<VcpuMetrics> Create();
  virtual ~VcpuMetrics() = default;

  // A writer that counts every record and hands it on. The metrics must outlive it; it is used by
  // one thread while Text is called by others.
  virtual std::unique_ptr<timeline::RecordWriter> Count(
      std::unique_ptr<timeline::RecordWriter> next) = 0;
  // Per VM and vCPU: seconds per band, guest cycles and instructions where they are counted
  // (absent, not 0, where they are not), run delay; ticks, gaps, lateness. A VM that has ended
  // stays for five minutes, so that its last values are scraped.
  virtual std::string Text() const = 0;

 protected:
  VcpuMetrics() = default;
};

}  // namespace vcpulse::prometheus
