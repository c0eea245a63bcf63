#pragma once

// What CheckTimeline says of a timeline, in short.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "monitor/check/check.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::check {

constexpr int64_t kSecond_ns = 1'000'000'000;

inline CheckOptions InPhase(const std::string& name) { return {.phase = name, .min_ticks = 1}; }

inline Result Check(const std::string& path, const std::vector<std::string>& texts,
                    const CheckOptions& options = {}) {
  std::vector<Expectation> expectations;
  for (const std::string& text : texts) {
    auto expectation = ParseExpectation(text);
    EXPECT_TRUE(expectation.ok()) << expectation.status();
    expectations.push_back(*expectation);
  }
  const auto result = CheckTimeline(path, expectations, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

// "VM a vCPU 0: PASS", with the reason where there is one.
inline std::vector<std::string> Lines(const Judged& judged) {
  std::vector<std::string> lines;
  for (const Finding& finding : judged.findings) {
    lines.push_back(finding.subject + ": " + std::string(ToString(finding.outcome)) +
                    (finding.reason.empty() ? "" : ", " + finding.reason));
  }
  return lines;
}

inline std::vector<std::string> LinesOf(const std::string& path, const std::string& text,
                                        const CheckOptions& options = {}) {
  return Lines(Check(path, {text}, options).judged.at(0));
}

// The only reason of one expectation on one subject.
inline std::string ReasonOf(const std::string& drawn, const std::string& text,
                            const CheckOptions& options = {}) {
  DrawnRecording recording;
  recording.Draw(drawn);
  const Result result = Check(recording.Finish(), {text}, options);
  EXPECT_EQ(result.judged.at(0).findings.size(), 1u);
  return result.judged.at(0).findings.at(0).reason;
}

}  // namespace vcpulse::check
