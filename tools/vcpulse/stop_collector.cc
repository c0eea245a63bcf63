#include "tools/vcpulse/stop_collector.h"

#include "absl/strings/str_cat.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {

int StopCollector(stream::Collector& collector, std::chrono::seconds patience) {
  if (collector.Stop(patience)) return kExitOk;
  return Fail(absl::StrCat("not all that was received could be written within ", patience.count(),
                           " s: it was not acknowledged, and the agents send it again"));
}

}  // namespace vcpulse::tools
