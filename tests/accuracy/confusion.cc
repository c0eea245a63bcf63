// Prints how often each classifier is right on labelled samples, as Markdown.
//   confusion [--profile NAME|FILE] [FILE.csv...]
// Without files: the set in tests/data/labelled, what is held apart from it, and its blind spots.
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kvm/base/text.h"
#include "tests/accuracy/confusion_text.h"
#include "tests/accuracy/cpu_models.h"
#include "tests/accuracy/judged_set.h"

namespace vcpulse::accuracy {
namespace {

struct Options {
  std::string profile;  // for all files; empty: that of each file's name
  std::vector<std::string> files;
};

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const CpuModel& cpu : CpuModels()) {
    files.push_back(folder + "/" + std::string(cpu.name) + ".csv");
  }
  return files;
}

absl::StatusOr<std::vector<JudgedRow>> JudgeAll(const std::vector<LabelledFile>& files,
                                                core::ClassifierChoice choice,
                                                std::optional<double> weak_below = {}) {
  std::vector<JudgedRow> all;
  for (const LabelledFile& file : files) {
    const auto judged = JudgeFile(file, choice, weak_below);
    if (!judged.ok()) return judged.status();
    all.insert(all.end(), judged->begin(), judged->end());
  }
  return all;
}

// Rows of one CPU follow each other.
std::vector<std::pair<std::string, Figures>> ByCpu(std::span<const JudgedRow> rows) {
  std::vector<std::pair<std::string, Figures>> cpus;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    while (end < rows.size() && rows[end].cpu == rows[begin].cpu) ++end;
    cpus.emplace_back(rows[begin].cpu, Summarize(rows.subspan(begin, end - begin)));
    begin = end;
  }
  return cpus;
}

absl::StatusOr<std::vector<LabelledFile>> ReadAll(const std::vector<std::string>& paths,
                                                  const std::string& profile,
                                                  std::span<const std::string_view> without = {}) {
  std::vector<LabelledFile> files;
  for (const std::string& path : paths) {
    absl::StatusOr<LabelledFile> file = ReadLabelledFile(path, profile, without);
    if (!file.ok()) return file.status();
    if (file->profile_missing) {
      std::fprintf(stderr, "confusion: warning: no profile %s: generic stands for it\n",
                   file->name.c_str());
    }
    files.push_back(*std::move(file));
  }
  return files;
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// The series of which less than half is right.
std::map<std::string, Group> MostlyWrong(std::span<const JudgedRow> rows) {
  std::map<std::string, Group> series = BySeries(rows);
  std::erase_if(series, [](const auto& entry) {
    return entry.second.label == Label::kMixed || entry.second.Right().Value().value_or(1) >= 0.5;
  });
  return series;
}

// What a PMU with fewer counters leaves out, in the order in which sets step down.
struct FewerCounters {
  std::string counted;
  std::vector<std::string_view> without;
};
const std::vector<FewerCounters>& AllFewerCounters() {
  static const std::vector<FewerCounters> all = {
      {.counted = "everything", .without = {}},
      {.counted = "no cache-misses", .without = {"cache_misses"}},
      {.counted = "neither they nor ref-cycles", .without = {"cache_misses", "ref_cycles"}},
      {.counted = "neither they nor L1D misses",
       .without = {"cache_misses", "L1-dcache-load-misses"}},
      {.counted = "cycles, instructions, branches, branch-misses",
       .without = {"cache_misses", "L1-dcache-load-misses", "ref_cycles", "pause",
                   "pause_cycles"}}};
  return all;
}

absl::Status PrintFewerCounters(const std::vector<std::string>& paths, const Options& options) {
  std::vector<std::pair<std::string, Figures>> lines;
  for (const FewerCounters& fewer : AllFewerCounters()) {
    const auto files = ReadAll(paths, options.profile, fewer.without);
    if (!files.ok()) return files.status();
    const auto judged = JudgeAll(*files, core::ClassifierChoice::kEvidence);
    if (!judged.ok()) return judged.status();
    lines.emplace_back(fewer.counted, Summarize(*judged));
  }
  Print("\n## evidence, by what is counted\n\n" + SharesText("counted", lines));
  return absl::OkStatus();
}

absl::Status PrintSet(const std::string& title, const std::vector<std::string>& paths,
                      const Options& options, bool with_sweep) {
  const auto files = ReadAll(paths, options.profile);
  if (!files.ok()) return files.status();
  const auto evidence = JudgeAll(*files, core::ClassifierChoice::kEvidence);
  if (!evidence.ok()) return evidence.status();
  const auto by_ipc = JudgeAll(*files, core::ClassifierChoice::kIpcBands);
  if (!by_ipc.ok()) return by_ipc.status();
  const std::vector<NamedFigures> both = {{"ipc-bands", Summarize(*by_ipc)},
                                          {"evidence", Summarize(*evidence)}};
  Print("# " + title + "\n\n" + MatrixText(both) + "\n" + FiguresText(both));
  Print("\n## evidence, by CPU\n\n" + SharesText("CPU", ByCpu(*evidence)));
  Print("\n## evidence, by loop\n\n" + GroupsText("loop", ByLoop(*evidence)));
  if (const auto wrong = MostlyWrong(*evidence); !wrong.empty()) {
    Print("\n## evidence, mostly not right\n\n" + GroupsText("CPU loop/condition", wrong));
  }
  if (!with_sweep) return absl::OkStatus();
  if (absl::Status status = PrintFewerCounters(paths, options); !status.ok()) return status;
  std::vector<std::pair<double, Figures>> sweep;
  for (int percent = 0; percent <= 60; percent += 5) {
    const auto judged = JudgeAll(*files, core::ClassifierChoice::kEvidence, percent / 100.0);
    if (!judged.ok()) return judged.status();
    sweep.emplace_back(percent / 100.0, Summarize(*judged));
  }
  Print("\n## evidence, by the confidence below which no verdict is given\n\n" + SweepText(sweep));
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  if (!options.files.empty()) return PrintSet("labelled samples", options.files, options, true);
  const std::string folder = VCPULSE_TEST_DATA "/labelled";
  absl::Status status = PrintSet("The labelled set", FilesIn(folder), options, true);
  if (!status.ok()) return status;
  Print("\n");
  status = PrintSet("Held apart", FilesIn(folder + "/held-apart"), options, false);
  if (!status.ok()) return status;
  Print("\n");
  return PrintSet("Blind spots", FilesIn(folder + "/blind-spots"), options, false);
}

}  // namespace
}  // namespace vcpulse::accuracy

int main(int argc, char** argv) {
  vcpulse::accuracy::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--profile" && i + 1 < argc) {
      options.profile = argv[++i];
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "usage: confusion [--profile NAME|FILE] [FILE.csv...]\n");
      return 2;
    } else {
      options.files.push_back(argument);
    }
  }
  const absl::Status status = vcpulse::accuracy::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "confusion: %s\n", std::string(vcpulse::ToStd(status.message())).c_str());
  return 2;
}
