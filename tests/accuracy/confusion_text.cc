#include "tests/accuracy/confusion_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace vcpulse::accuracy {
namespace {

constexpr std::array<core::Band, 4> kShown = {core::Band::kHalted, core::Band::kSpinning,
                                              core::Band::kProductive, core::Band::kUnknown};
constexpr std::array<Label, kLabels> kAll = {Label::kHalted, Label::kSpinning, Label::kProductive,
                                             Label::kMixed};

std::string Fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string Percent(const Share& share) {
  const std::optional<double> value = share.Value();
  return value ? Fixed(100 * *value, 1) + " %" : "-";
}

std::string Row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string Header(const std::vector<std::string>& cells) {
  std::string text = Row(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) text += i == 0 ? "---|" : "---:|";
  return text + "\n";
}

std::string Count(const BandCounts& counts, core::Band band) {
  return std::to_string(counts[static_cast<size_t>(band)]);
}

std::string MostlyBy(const Group& group) {
  std::vector<std::pair<core::Rule, uint64_t>> rules(group.rules.begin(), group.rules.end());
  std::ranges::stable_sort(rules, std::ranges::greater(), &std::pair<core::Rule, uint64_t>::second);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(rules.size(), 3); ++i) {
    text += (i > 0 ? ", " : "") + std::string(core::ToString(rules[i].first)) + " " +
            std::to_string(rules[i].second);
  }
  return text;
}

std::string DelayText(const Delays& delays) {
  const std::optional<double> mean = delays.Mean();
  return (mean ? Fixed(*mean, 2) : "-") + " mean, " + std::to_string(delays.longest) + " max, " +
         std::to_string(delays.missed) + " of " + std::to_string(delays.changes) + " missed";
}

}  // namespace

std::string ToText(const Share& share) {
  const std::optional<Bounds> bounds = Wilson95(share);
  if (!bounds) return "-";
  return Percent(share) + " (" + Fixed(100 * bounds->low, 1) + "-" + Fixed(100 * bounds->high, 1) +
         ", " + std::to_string(share.part) + "/" + std::to_string(share.whole) + ")";
}

std::string MatrixText(std::span<const NamedFigures> classifiers) {
  std::vector<std::string> head = {"label"};
  for (const NamedFigures& classifier : classifiers) {
    for (const core::Band band : kShown) {
      head.push_back(classifier.name + " " + std::string(core::ToString(band)));
    }
  }
  std::string text = Header(head);
  for (const Label label : kAll) {
    std::vector<std::string> cells = {std::string(ToString(label))};
    for (const NamedFigures& classifier : classifiers) {
      for (const core::Band band : kShown) {
        cells.push_back(Count(classifier.figures.Of(label), band));
      }
    }
    text += Row(cells);
  }
  return text;
}

std::string FiguresText(std::span<const NamedFigures> classifiers) {
  std::vector<std::string> head = {"figure"};
  for (const NamedFigures& classifier : classifiers) head.push_back(classifier.name);
  std::string text = Header(head);
  const auto add = [&](const std::string& name, auto figure) {
    std::vector<std::string> cells = {name};
    for (const NamedFigures& classifier : classifiers) cells.push_back(figure(classifier.figures));
    text += Row(cells);
  };
  for (const Label label : {Label::kHalted, Label::kSpinning, Label::kProductive}) {
    const std::string name(ToString(label));
    add("recall, " + name, [=](const Figures& f) { return ToText(f.Recall(label)); });
    add("precision, " + name, [=](const Figures& f) { return ToText(f.Precision(label)); });
  }
  add("recall, spins on CPUs that count PAUSE",
      [](const Figures& f) { return ToText(f.SpinRecall(true)); });
  add("recall, spins on other CPUs", [](const Figures& f) { return ToText(f.SpinRecall(false)); });
  add("productive called spinning",
      [](const Figures& f) { return ToText(f.ProductiveCalledSpinning()); });
  add("unknown outside mixtures",
      [](const Figures& f) { return ToText(f.UnknownOutsideMixtures()); });
  add("detection delay, ticks", [](const Figures& f) { return DelayText(f.delays); });
  return text;
}

std::string GroupsText(const std::string& title, const std::map<std::string, Group>& groups) {
  std::string text =
      Header({title, "label", "HALTED", "SPINNING", "PRODUCTIVE", "UNKNOWN", "right", "rules"});
  for (const auto& [name, group] : groups) {
    std::vector<std::string> cells = {name, std::string(ToString(group.label))};
    for (const core::Band band : kShown) cells.push_back(Count(group.bands, band));
    // A mixture is neither: no verdict on it is right or wrong.
    cells.push_back(group.label == Label::kMixed ? "-" : Percent(group.Right()));
    cells.push_back(MostlyBy(group));
    text += Row(cells);
  }
  return text;
}

std::string SharesText(const std::string& title,
                       std::span<const std::pair<std::string, Figures>> lines) {
  std::string text = Header({title, "halted", "spinning", "productive",
                             "productive called spinning", "unknown outside mixtures"});
  for (const auto& [name, figures] : lines) {
    text += Row(
        {name, Percent(figures.Recall(Label::kHalted)), Percent(figures.Recall(Label::kSpinning)),
         Percent(figures.Recall(Label::kProductive)), Percent(figures.ProductiveCalledSpinning()),
         Percent(figures.UnknownOutsideMixtures())});
  }
  return text;
}

std::string SweepText(std::span<const std::pair<double, Figures>> sweep) {
  std::string text =
      Header({"weak_below", "halted", "spinning, PAUSE counted", "spinning, others", "productive",
              "productive called spinning", "mixed called spinning", "unknown outside mixtures"});
  for (const auto& [cut, figures] : sweep) {
    text += Row(
        {Fixed(cut, 2), Percent(figures.Recall(Label::kHalted)), Percent(figures.SpinRecall(true)),
         Percent(figures.SpinRecall(false)), Percent(figures.Recall(Label::kProductive)),
         Percent(figures.ProductiveCalledSpinning()), Percent(figures.MixedCalledSpinning()),
         Percent(figures.UnknownOutsideMixtures())});
  }
  return text;
}

}  // namespace vcpulse::accuracy
