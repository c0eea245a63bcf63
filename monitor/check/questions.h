#pragma once

// What expectations ask of a timeline, and the findings that answer them.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/check/check.h"
#include "monitor/check/examination.h"
#include "monitor/check/expression.h"
#include "monitor/check/outcome.h"
#include "monitor/check/subjects.h"

namespace vcpulse::check {

// Expectations as they are asked of one timeline: the file, or its baseline. The expectations and
// options must outlive it. One thread.
class Questions {
 public:
  Questions(std::span<const Expectation> expectations, const CheckOptions& options)
      : expectations_(expectations), options_(options), asked_(expectations.size()) {}

  // Reads `path`, once. Where `of_baseline`, only what expectations that use one need; else
  // `baseline`, which may be null where none does, has been read and gives their limits. Errors: of
  // Examination.
  absl::Status Read(const std::string& path, const Questions* baseline, bool of_baseline);

  // The rest after Read.
  Examination& examination() const { return *examination_; }
  const std::vector<Asked>& asked() const { return asked_; }

  // Expectation `i`, `baseline` as for Read.
  Judged Judge(size_t i, const Questions* baseline) const;

 private:
  // What was observed of some subject, and why that is not enough.
  struct Known {
    std::optional<Bounds> observed;
    std::string why_not;
  };

  Quantity QuantityOf(const Expectation& expectation) const;
  std::unique_ptr<Tally> TallyOf(const Quantity& quantity, const Subject& subject,
                                 const std::optional<Limit>& limit) const;
  // The question, where `known` is what the baseline says.
  Question QuestionOf(const Expectation& expectation, const Known& known) const;
  Finding FindingOf(size_t i, size_t subject, const Question& question) const;
  Finding SumFinding(size_t i, const Question& question) const;
  // For the baseline: the value of those that correspond to `subject` of `of`; null: of a sum.
  Known ValueOf(size_t i, const Subject* subject, const Asked* of) const;
  std::string WhomOf(size_t i) const;

  std::span<const Expectation> expectations_;
  const CheckOptions& options_;
  std::unique_ptr<Examination> examination_;
  std::vector<Asked> asked_;  // by expectation; without a scope where nothing is asked
};

}  // namespace vcpulse::check
