#include "monitor/report/loss_text.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_report.h"

namespace vcpulse::report {
namespace {

uint64_t DamagedBytes(const timeline::ReadReport& read) {
  uint64_t bytes = 0;
  for (const timeline::Damage& damage : read.damages) bytes += damage.bytes;
  return bytes;
}

// "7 records lost", and of those that were lost on the way to a collector why.
std::string LostText(const timeline::ReadReport& read) {
  std::string text = Plural(read.lost_records, "record") + " lost";
  std::map<v1::LostRecords::Reason, uint64_t> reasons;
  uint64_t told = 0;
  for (const timeline::ToldLoss& loss : read.told_losses) {
    const uint64_t records = loss.last_sequence - loss.first_sequence + 1;
    reasons[loss.reason] += records;
    told += records;
  }
  if (told == 0) return text;
  absl::StrAppend(&text, told < read.lost_records ? absl::StrCat(", ", told, " of them") : "",
                  " on the way: ");
  if (reasons.size() == 1) return text + reading::WhyLost(reasons.begin()->first);
  const auto with_count = [](std::string* out, const auto& reason) {
    absl::StrAppend(out, reason.second, " as ", reading::WhyLost(reason.first));
  };
  return text + absl::StrJoin(reasons, ", ", with_count);
}

}  // namespace

std::string DescribeLoss(const timeline::ReadReport& read, uint64_t unusable_ticks,
                         bool ended_in_order) {
  std::vector<std::string> parts;
  if (!read.damages.empty() || read.lost_records > 0) {
    const std::string lost = LostText(read);
    parts.push_back(read.damages.empty()
                        ? lost
                        : absl::StrCat(Plural(read.damages.size(), "chunk"), " damaged (",
                                       Plural(DamagedBytes(read), "byte"), "), ", lost));
  }
  if (unusable_ticks > 0) {
    parts.push_back(
        absl::StrCat(Plural(unusable_ticks, "sample"), " unusable (the vCPU set is lost)"));
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
