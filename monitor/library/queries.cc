// The entries of the C API that ask a timeline.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/check/check.h"
#include "monitor/check/words.h"
#include "monitor/library/error.h"
#include "monitor/library/include/vcpulse.h"
#include "monitor/library/timeline.h"

namespace vcpulse::library {
namespace {

static_assert(static_cast<int>(check::Outcome::kSkip) == VCPULSE_OUTCOME_SKIP);
static_assert(static_cast<int>(check::Outcome::kPass) == VCPULSE_OUTCOME_PASS);
static_assert(static_cast<int>(check::Outcome::kInconclusive) == VCPULSE_OUTCOME_INCONCLUSIVE);
static_assert(static_cast<int>(check::Outcome::kFail) == VCPULSE_OUTCOME_FAIL);

// What the library knows of a struct of the caller's, which may be of another release: the fields
// that both know.
template <typename T>
void WriteSized(const T& values, T* out) {
  const size_t size = out->size;
  std::memcpy(out, &values, std::min(size, sizeof(T)));
  out->size = size;
}

template <typename T>
T ReadSized(const T& defaults, const T* in) {
  T values = defaults;
  std::memcpy(&values, in, std::min(in->size, sizeof(T)));
  return values;
}

// Whom a query is about.
struct Whom {
  const char* vm = nullptr;  // null: the only one
  std::optional<uint32_t> vcpu;
};

absl::StatusOr<check::Selector> SelectorOf(const vcpulse_timeline& timeline, const Whom& whom) {
  check::Selector selector;
  if (whom.vcpu) selector.vcpus.push_back({.first = *whom.vcpu, .last = *whom.vcpu});
  if (whom.vm != nullptr) {
    selector.vm = whom.vm;
    return selector;
  }
  const std::vector<VmContents>& vms = timeline.contents.vms;
  if (vms.size() <= 1) return selector;
  return absl::InvalidArgumentError(absl::StrCat(
      "there are ", vms.size(), " VMs: say which by its name, UUID or PID (", vms[0].name, " is ",
      vms[0].pid, ", ", vms[1].name, " is ", vms[1].pid, vms.size() > 2 ? ", ...)" : ")"));
}

absl::Status Query(const vcpulse_timeline* timeline, const char* vm, uint32_t vcpu,
                   const char* text, const char* phase, vcpulse_bounds* bounds) {
  if (absl::Status status = Given(timeline, "timeline"); !status.ok()) return status;
  if (absl::Status status = Given(text, "quantity"); !status.ok()) return status;
  if (absl::Status status = Given(bounds, "bounds"); !status.ok()) return status;
  if (bounds->size < sizeof(bounds->size)) {
    return absl::InvalidArgumentError("bounds has no size: begin with VCPULSE_BOUNDS_INIT");
  }
  const absl::StatusOr<check::Quantity> quantity = check::ParseQuantity(text);
  if (!quantity.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("quantity: ", quantity.status().message()));
  }
  Whom whom{.vm = vm};
  if (*quantity != check::kGaps) whom.vcpu = vcpu;
  const absl::StatusOr<check::Selector> selector = SelectorOf(*timeline, whom);
  if (!selector.ok()) return selector.status();
  check::CheckOptions options;
  if (phase != nullptr) options.phase = phase;
  const absl::StatusOr<check::Measurement> measured =
      check::Measure(timeline->path, *selector, *quantity, options);
  if (!measured.ok()) return measured.status();
  if (!measured->observed) {
    return absl::FailedPreconditionError(absl::StrCat(measured->subject, ": nothing tells its ",
                                                      check::ToString(*quantity), " there (",
                                                      measured->ticks, " ticks)"));
  }
  WriteSized({.size = 0,
              .low = measured->observed->low,
              .high = measured->observed->high,
              .ticks = measured->ticks,
              .judged_ns = measured->judged_ns,
              .unknown_ns = measured->unknown_ns},
             bounds);
  return absl::OkStatus();
}

// What was found, lines for people, in the words of `vcpulse check`.
std::string TextOf(const check::Result& result) {
  std::string text;
  for (const check::Judged& judged : result.judged) {
    for (const check::Finding& finding : judged.findings) {
      absl::StrAppend(&text, std::string(check::ToString(finding.outcome)), " ",
                      check::Clean(finding.subject), ": ",
                      check::FindingText(judged.expectation, finding), "\n");
    }
  }
  for (const std::string& note : result.notes) {
    absl::StrAppend(&text, "note: ", check::Clean(note), "\n");
  }
  return text;
}

char* NewText(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

absl::StatusOr<check::CheckOptions> OptionsOf(const char* phase, const vcpulse_limits* limits) {
  const vcpulse_limits defaults = VCPULSE_LIMITS_INIT;
  if (limits != nullptr && limits->size < sizeof(limits->size)) {
    return absl::InvalidArgumentError("limits has no size: begin with VCPULSE_LIMITS_INIT");
  }
  const vcpulse_limits given = limits == nullptr ? defaults : ReadSized(defaults, limits);
  if (given.skip_first_ns < 0) return absl::InvalidArgumentError("skip_first_ns is negative");
  if (!(given.min_measured >= 0 && given.min_measured <= 1)) {
    return absl::InvalidArgumentError("min_measured is a share: 0 to 1");
  }
  check::CheckOptions options{.skip_first_ns = given.skip_first_ns,
                              .min_ticks = given.min_ticks,
                              .min_measured = given.min_measured,
                              .trust_ipc_bands = given.trust_ipc_bands != 0,
                              .allow_skip = given.allow_skip != 0};
  if (phase != nullptr) options.phase = phase;
  return options;
}

absl::Status Check(const vcpulse_timeline* timeline, const char* expression, const char* phase,
                   const vcpulse_limits* limits, vcpulse_outcome* outcome, char** text) {
  if (absl::Status status = Given(timeline, "timeline"); !status.ok()) return status;
  if (absl::Status status = Given(expression, "expression"); !status.ok()) return status;
  if (absl::Status status = Given(outcome, "outcome"); !status.ok()) return status;
  const auto options = OptionsOf(phase, limits);
  if (!options.ok()) return options.status();
  const auto expectation = check::ParseExpectation(expression);
  if (!expectation.ok()) return expectation.status();
  const auto result = check::CheckTimeline(timeline->path, std::span(&*expectation, 1), *options);
  if (!result.ok()) return result.status();
  if (text != nullptr) *text = NewText(TextOf(*result));
  *outcome = static_cast<vcpulse_outcome>(result->outcome);
  return absl::OkStatus();
}

}  // namespace
}  // namespace vcpulse::library

using vcpulse::library::Guard;

vcpulse_status vcpulse_timeline_query(const vcpulse_timeline* timeline, const char* vm,
                                      uint32_t vcpu, const char* quantity, const char* phase,
                                      vcpulse_bounds* bounds, vcpulse_error** error) {
  return Guard(
      error, [&] { return vcpulse::library::Query(timeline, vm, vcpu, quantity, phase, bounds); });
}

vcpulse_status vcpulse_timeline_check(const vcpulse_timeline* timeline, const char* expression,
                                      const char* phase, const vcpulse_limits* limits,
                                      vcpulse_outcome* outcome, char** text,
                                      vcpulse_error** error) {
  return Guard(error, [&] {
    if (text != nullptr) *text = nullptr;
    return vcpulse::library::Check(timeline, expression, phase, limits, outcome, text);
  });
}

void vcpulse_text_free(char* text) { std::free(text); }
