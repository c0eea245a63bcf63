#pragma once

// Any and sum: the findings of several made one. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/check/outcome.h"

namespace vcpulse::check {

// One suffices: PASS where one passed; FAIL where all failed, with the one that came nearest; SKIP
// where all were skipped; else INCONCLUSIVE. `whom` is the subject of the finding. Takes at least
// one.
Finding AnyOf(const Expectation& expectation, const std::string& whom,
              const std::vector<Finding>& findings);

// Their shares added up, as shares of `together_ns`, the time in which at least one of them was
// there: vCPUs that were there one after the other count as one. A share without enough evidence
// lies between 0 and 1; nothing is known of those that are `missing`. SKIP where all were skipped,
// INCONCLUSIVE where none has enough evidence. The findings are of a question without a limit: the
// reason of those with enough evidence is empty. Takes at least one finding or missing one.
Finding SumOf(const Question& question, const std::string& whom,
              const std::vector<Finding>& findings, const std::vector<std::string>& missing,
              int64_t together_ns);

}  // namespace vcpulse::check
