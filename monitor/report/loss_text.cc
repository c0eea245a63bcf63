#include "monitor/report/loss_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "monitor/reading/phrases.h"
#include "monitor/report/text_report.h"

namespace vcpulse::report {
namespace {

uint64_t DamagedBytes(const timeline::ReadReport& read) {
  uint64_t bytes = 0;
  for (const timeline::Damage& damage : read.damages) bytes += damage.bytes;
  return bytes;
}

}  // namespace

std::string DescribeLoss(const timeline::ReadReport& read, uint64_t unusable_ticks,
                         bool ended_in_order) {
  std::vector<std::string> parts;
  if (!read.damages.empty() || read.lost_records > 0) {
    const std::string lost = reading::Plural(read.lost_records, "record") + " lost";
    parts.push_back(read.damages.empty()
                        ? lost
                        : absl::StrCat(reading::Plural(read.damages.size(), "chunk"), " damaged (",
                                       reading::Plural(DamagedBytes(read), "byte"), "), ", lost));
  }
  if (unusable_ticks > 0) {
    parts.push_back(absl::StrCat(reading::Plural(unusable_ticks, "sample"),
                                 " unusable (the vCPU set is lost)"));
  }
  if (!ended_in_order) {
    parts.push_back("the recording did not end in order (killed, or still running)");
  }
  return absl::StrJoin(parts, "; ");
}

std::string DescribeLoss(const Report& report) {
  return DescribeLoss(report.read, report.summary.unattributed_ticks(),
                      report.EndedInOrder().value_or(true));
}

}  // namespace vcpulse::report
