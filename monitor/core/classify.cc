#include "monitor/core/classify.h"

namespace vcpulse::core {

std::string_view ToString(Classifier classifier) {
  return classifier == Classifier::kEvidence ? "evidence" : "ipc-bands";
}

std::string_view ToString(ClassifierChoice choice) {
  switch (choice) {
    case ClassifierChoice::kAuto:
      return "auto";
    case ClassifierChoice::kIpcBands:
      return "ipc-bands";
    case ClassifierChoice::kEvidence:
      return "evidence";
  }
  return "auto";
}

std::optional<ClassifierChoice> ParseClassifierChoice(std::string_view name) {
  for (const auto choice :
       {ClassifierChoice::kAuto, ClassifierChoice::kIpcBands, ClassifierChoice::kEvidence}) {
    if (ToString(choice) == name) return choice;
  }
  return std::nullopt;
}

Classifier Choose(ClassifierChoice choice, const EventSlots& slots) {
  if (choice == ClassifierChoice::kIpcBands) return Classifier::kIpcBands;
  if (choice == ClassifierChoice::kEvidence) return Classifier::kEvidence;
  const bool counted = slots.cycles && slots.instructions && slots.branches && slots.branch_misses;
  return counted ? Classifier::kEvidence : Classifier::kIpcBands;
}

namespace {

// On guests of public benchmarks an IPC alone called 22 % of the productive windows SPINNING, and
// 97 % of one database's.
constexpr double kByIpcAlone = 0.30;

}  // namespace

Judgement JudgeIpcBands(const Features& features, const IpcBandsThresholds& thresholds) {
  const std::optional<double> ipc = features.Value(Feature::kIpc);
  if (!ipc) return {Band::kUnknown, Rule::kNoInstructions, 0};
  if (*ipc < thresholds.spinning_below) return {Band::kSpinning, Rule::kIpcLow, kByIpcAlone};
  if (*ipc >= thresholds.productive_from) return {Band::kProductive, Rule::kIpcHigh, kByIpcAlone};
  return {Band::kUnknown, Rule::kBetweenBands, 0};
}

}  // namespace vcpulse::core
