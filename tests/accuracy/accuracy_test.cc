// What the evidence classifier is held to, on the labelled set. tests/accuracy/confusion prints all
// figures.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/accuracy/confusion_text.h"
#include "tests/accuracy/cpu_models.h"
#include "tests/accuracy/figures.h"
#include "tests/accuracy/judged_set.h"

namespace vcpulse::accuracy {
namespace {

// All files, judged once.
class Accuracy : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const CpuModel& cpu : CpuModels()) {
      auto file = ReadLabelledFile(VCPULSE_TEST_DATA "/labelled/" + std::string(cpu.name) + ".csv",
                                   /*profile=*/"");
      ASSERT_TRUE(file.ok()) << file.status();
      files_->push_back(*std::move(file));
    }
    for (const LabelledFile& file : *files_) {
      const auto judged = JudgeFile(file, core::ClassifierChoice::kEvidence);
      ASSERT_TRUE(judged.ok()) << judged.status();
      rows_->insert(rows_->end(), judged->begin(), judged->end());
    }
    *figures_ = Summarize(*rows_);
  }

  static void ExpectAtLeast(const Share& share, double goal) {
    EXPECT_GE(share.Value().value_or(0), goal) << ToText(share);
  }
  static void ExpectAtMost(const Share& share, double goal) {
    EXPECT_LE(share.Value().value_or(1), goal) << ToText(share);
  }

  // Rows point into files, which stay where they are once all are read.
  static inline auto* const files_ = new std::vector<LabelledFile>();
  static inline auto* const rows_ = new std::vector<JudgedRow>();
  static inline auto* const figures_ = new Figures();
};

TEST_F(Accuracy, EveryModelHasItsProfile) {
  for (const LabelledFile& file : *files_) EXPECT_FALSE(file.profile_missing) << file.name;
}

TEST_F(Accuracy, EverySampleHasAVerdict) {
  for (const JudgedRow& row : *rows_) {
    ASSERT_NE(row.verdict.band, core::Band::kNone) << row.cpu << " " << row.vm;
  }
}

TEST_F(Accuracy, Halted) { ExpectAtLeast(figures_->Recall(Label::kHalted), 0.995); }

TEST_F(Accuracy, SpinsWherePauseIsCounted) { ExpectAtLeast(figures_->SpinRecall(true), 0.95); }

TEST_F(Accuracy, OtherSpins) { ExpectAtLeast(figures_->SpinRecall(false), 0.85); }

TEST_F(Accuracy, ChangesAreSeenWithinTwoTicks) {
  EXPECT_EQ(figures_->delays.missed, 0u);
  EXPECT_LE(figures_->delays.longest, 2u);
}

TEST_F(Accuracy, WorkIsHardlyEverCalledSpinning) {
  ExpectAtMost(figures_->ProductiveCalledSpinning(), 0.005);
}

TEST_F(Accuracy, HardlyAnythingIsUnknown) {
  ExpectAtMost(figures_->UnknownOutsideMixtures(), 0.05);
}

}  // namespace
}  // namespace vcpulse::accuracy
