#include "tools/vcpulse/merge_losses.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

std::string HolesText(const timeline::MergeReport& report) {
  std::vector<std::string> holes;
  holes.reserve(report.first_holes.size());
  for (const timeline::SequenceRange& hole : report.first_holes) {
    holes.push_back(hole.first == hole.last ? absl::StrCat(hole.first)
                                            : absl::StrCat(hole.first, " to ", hole.last));
  }
  const uint64_t more = report.holes - holes.size();
  return absl::StrCat("no part has records ", absl::StrJoin(holes, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more ranges") : "", ": ",
                      Plural(report.lost_records, "record"), " lost");
}

}  // namespace

void SayLosses(const timeline::MergeReport& report, const std::string& output) {
  for (const timeline::MergeReport::Part& part : report.parts) {
    if (part.damages.empty()) continue;
    Warn(part.file, absl::StrCat("skipped ", Plural(part.damages.size(), "damaged region"),
                                 ", the first at byte ", part.damages.front().offset, ": ",
                                 part.damages.front().reason));
  }
  for (const std::string& path : report.empty) Warn(path, "skipped, as it is empty");
  if (report.repeated_chunks > 0) {
    Fail(absl::StrCat(output, ": ", Plural(report.repeated_chunks, "chunk"),
                      " found in several parts, written once"));
  }
  if (report.first_sequence > 1) {
    Warn(output, report::BeginsLateText(report.first_sequence));
  }
  if (report.holes > 0) Warn(output, HolesText(report));
  if (!report.ended_in_order) {
    Warn(output,
         "the end of the recording is in no part (it was killed, is still running, or a part is "
         "not named)");
  }
}

}  // namespace vcpulse::tools
