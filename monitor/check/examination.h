#pragma once

// One timeline, read twice: first for when what was there, then for what its ticks tell of those
// who are asked about. What was found is not judged here.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/check/judging.h"
#include "monitor/check/outcome.h"
#include "monitor/check/subjects.h"
#include "monitor/check/timetable.h"
#include "monitor/reading/part.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::check {

// The time of a phase, or of the whole recording, and what is asked of it.
struct Scope {
  JudgedTime time;
  std::vector<TimeRange> spans;
  std::optional<std::string> nothing_to_judge;  // why
  std::optional<std::string> no_pass;           // why what is left of it proves nothing
  std::optional<std::string> no_pass_of_gaps;   // likewise, of the share of time without samples
  Judging judging;

  // Why `quantity` cannot pass here; nothing: it can.
  const std::optional<std::string>& WhyNoPass(const Quantity& quantity) const {
    return no_pass || quantity.kind != Quantity::Kind::kGaps ? no_pass : no_pass_of_gaps;
  }

  std::vector<Watched> answers;  // after ReadTicks, by the places of `judging`
};

// Whom a selector fits, and the place of the answer for each of them.
struct Asked {
  Scope* scope = nullptr;
  Selection selection;
  std::vector<size_t> places;  // by Watch
};

// One thread.
class Examination {
 public:
  // The first reading. Each span begins `skip_first_ns` after its marker. Errors: of
  // timeline::ReadTimeline; InvalidArgument where the file holds two streams or nothing that can be
  // read.
  static absl::StatusOr<std::unique_ptr<Examination>> Open(const std::string& path,
                                                           int64_t skip_first_ns);

  // Whom `selector` fits in this phase (nothing: in the whole recording), before ReadTicks. The
  // scope lives as long as this. Where there is nobody, `missing` says why.
  Asked Ask(const std::optional<std::string>& phase, const Selector& selector, bool of_vms);
  Scope& ScopeOf(const std::optional<std::string>& phase);

  // The second reading, once. Errors: as of Open.
  absl::Status ReadTicks();

  const Timetable& timetable() const { return timetable_; }
  const timeline::ReadReport& read() const { return read_; }
  const std::map<std::optional<std::string>, std::unique_ptr<Scope>>& scopes() const {
    return scopes_;
  }

 private:
  Examination(reading::RepeatableInput input, int64_t skip_first_ns)
      : input_(std::move(input)), skip_first_ns_(skip_first_ns) {}

  absl::Status Survey();
  std::optional<std::string> WhyNothingToJudge(const JudgedTime& time,
                                               const std::vector<TimeRange>& spans) const;
  std::optional<std::string> WhyNoPass(const std::optional<std::string>& phase) const;
  std::optional<std::string> WhyNoPassOfGaps() const;

  const reading::RepeatableInput input_;
  const int64_t skip_first_ns_;
  Timetable timetable_;
  timeline::ReadReport read_;
  bool has_hole_ = false;  // records are lost
  std::map<std::optional<std::string>, std::unique_ptr<Scope>> scopes_;
};

}  // namespace vcpulse::check
