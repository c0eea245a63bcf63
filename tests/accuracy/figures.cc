#include "tests/accuracy/figures.h"

#include <numeric>
#include <utility>

namespace vcpulse::accuracy {
namespace {

constexpr std::array<Label, 3> kOutsideMixtures = {Label::kHalted, Label::kSpinning,
                                                   Label::kProductive};

uint64_t At(const BandCounts& counts, core::Band band) { return counts[static_cast<size_t>(band)]; }

Share ShareOf(const BandCounts& counts, core::Band band) {
  return {.part = At(counts, band), .whole = Judged(counts)};
}

void Count(const JudgedRow& row, BandCounts& counts) {
  ++counts[static_cast<size_t>(row.verdict.band)];
}

Delays DelaysOf(std::span<const JudgedRow> series) {
  std::vector<int> truth;
  std::vector<int> shown;
  for (const JudgedRow& row : series) {
    truth.push_back(row.label == Label::kMixed ? -1 : static_cast<int>(BandOf(row.label)));
    shown.push_back(static_cast<int>(row.verdict.band));
  }
  return DetectionDelays(truth, shown);
}

std::map<std::string, Group> GroupBy(std::span<const JudgedRow> rows, auto key) {
  std::map<std::string, Group> groups;
  for (const JudgedRow& row : rows) {
    Group& group = groups[key(row)];
    group.label = row.label;
    Count(row, group.bands);
    ++group.rules[row.verdict.rule];
  }
  return groups;
}

}  // namespace

core::Band BandOf(Label label) {
  switch (label) {
    case Label::kHalted:
      return core::Band::kHalted;
    case Label::kSpinning:
      return core::Band::kSpinning;
    case Label::kProductive:
      return core::Band::kProductive;
    case Label::kMixed:
      return core::Band::kUnknown;
  }
  return core::Band::kUnknown;
}

uint64_t Judged(const BandCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0}) - At(counts, core::Band::kNone);
}

Share Figures::Recall(Label label) const { return ShareOf(Of(label), BandOf(label)); }

Share Figures::Precision(Label label) const {
  Share share{.part = At(Of(label), BandOf(label)), .whole = 0};
  for (const Label other : kOutsideMixtures) share.whole += At(Of(other), BandOf(label));
  return share;
}

Share Figures::SpinRecall(bool pause_counted) const {
  return ShareOf(spins[pause_counted ? 1 : 0], core::Band::kSpinning);
}

Share Figures::ProductiveCalledSpinning() const {
  return ShareOf(Of(Label::kProductive), core::Band::kSpinning);
}

Share Figures::MixedCalledSpinning() const {
  return ShareOf(Of(Label::kMixed), core::Band::kSpinning);
}

Share Figures::UnknownOutsideMixtures() const {
  Share share;
  for (const Label label : kOutsideMixtures) {
    const Share of = ShareOf(Of(label), core::Band::kUnknown);
    share.part += of.part;
    share.whole += of.whole;
  }
  return share;
}

Figures Summarize(std::span<const JudgedRow> rows) {
  Figures figures;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    while (end < rows.size() && rows[end].vm == rows[begin].vm &&
           rows[end].cpu == rows[begin].cpu) {
      const JudgedRow& row = rows[end++];
      Count(row, figures.matrix[static_cast<size_t>(row.label)]);
      if (row.label == Label::kSpinning) Count(row, figures.spins[row.pause_counted ? 1 : 0]);
    }
    figures.delays += DelaysOf(rows.subspan(begin, end - begin));
    begin = end;
  }
  return figures;
}

Share Group::Right() const { return ShareOf(bands, BandOf(label)); }

std::map<std::string, Group> ByLoop(std::span<const JudgedRow> rows) {
  return GroupBy(rows, [](const JudgedRow& row) { return std::string(row.loop); });
}

std::map<std::string, Group> BySeries(std::span<const JudgedRow> rows) {
  return GroupBy(rows, [](const JudgedRow& row) {
    return std::string(row.cpu) + " " + std::string(row.loop) + "/" + std::string(row.condition);
  });
}

}  // namespace vcpulse::accuracy
