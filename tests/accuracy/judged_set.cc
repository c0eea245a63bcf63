#include "tests/accuracy/judged_set.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "monitor/import/csv_table.h"
#include "monitor/import/importer.h"
#include "monitor/timeline/writer.h"
#include "tests/accuracy/cpu_models.h"

namespace vcpulse::accuracy {
namespace {

enum Kept : size_t { kLabel, kLoop, kCondition };
constexpr std::array<std::string_view, 3> kKept = {"label", "loop", "condition"};

std::optional<Label> ParseLabel(std::string_view text) {
  for (const Label label : {Label::kHalted, Label::kSpinning, Label::kProductive, Label::kMixed}) {
    if (text == ToString(label)) return label;
  }
  return std::nullopt;
}

// (VM, vCPU, end of the interval).
using SampleKey = std::tuple<std::string, uint32_t, int64_t>;

// A RecordWriter that keeps the verdicts alone.
class VerdictCollector final : public timeline::RecordWriter {
 public:
  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override {
    const v1::VcpuSet& set = sets_.at({vm, epoch});
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].band == core::Band::kNone) continue;
      verdicts_[{set.instance().name(), set.vcpus(static_cast<int>(i)).index(),
                 sample.vcpus[i].read_end_ns}] = verdicts[i];
    }
  }
  void Add(v1::TimelineRecord record, int64_t) override {
    if (!record.has_vcpu_set()) return;
    const std::pair key(record.vcpu_set().vm(), record.vcpu_set().epoch());
    sets_[key] = record.vcpu_set();
  }
  void EndEpoch(uint32_t, uint32_t) override {}
  absl::Status Flush(const v1::ClockSnapshot&) override { return absl::OkStatus(); }

  core::Verdict Find(const SampleKey& key) const {
    const auto found = verdicts_.find(key);
    return found == verdicts_.end() ? core::Verdict() : found->second;
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, v1::VcpuSet> sets_;
  std::map<SampleKey, core::Verdict> verdicts_;
};

// Whether the CPU has a PAUSE event, whatever the loop executes.
bool CountsPause(const importing::Table& table, const importing::Row& row) {
  return table.CountOf(row, table.FindEvent("pause")) ||
         table.CountOf(row, table.FindEvent("cpu_clk_unhalted.pause"));
}

// CSV text without some of its columns; no cell of it is quoted.
std::string WithoutColumns(const std::string& csv, std::span<const std::string_view> names) {
  if (names.empty()) return csv;
  const std::vector<absl::string_view> lines = absl::StrSplit(csv, '\n');
  const std::vector<std::string> head = absl::StrSplit(lines.front(), ',');
  std::string text;
  for (const absl::string_view line : lines) {
    std::vector<absl::string_view> kept;
    size_t i = 0;
    for (const absl::string_view cell : absl::StrSplit(line, ',')) {
      const bool left_out = i < head.size() && std::ranges::find(names, head[i]) != names.end();
      if (!left_out) kept.push_back(cell);
      ++i;
    }
    absl::StrAppend(&text, absl::StrJoin(kept, ","), "\n");
  }
  text.pop_back();
  return text;
}

}  // namespace

absl::StatusOr<LabelledFile> ReadLabelledFile(const std::string& path, const std::string& profile,
                                              std::span<const std::string_view> without) {
  LabelledFile file{.name = std::filesystem::path(path).stem()};
  if (const CpuModel* cpu = FindCpuModel(file.name)) {
    file.tsc_hz = cpu->tsc_hz;
    file.max_hz = cpu->core_hz;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  const std::string text =
      WithoutColumns(std::string((std::istreambuf_iterator<char>(in)), {}), without);
  absl::StatusOr<importing::Table> table = importing::ParseCsv(text, path, kKept);
  if (!table.ok()) return table.status();
  file.table = *std::move(table);
  for (size_t i = 0; i < file.table.rows.size(); ++i) {
    const std::optional<Label> label = ParseLabel(file.table.Kept(i, kLabel));
    if (!label) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": row ", file.table.rows[i].number, ", column label: '",
          file.table.Kept(i, kLabel), "' is none of halted, spinning, productive, mixed"));
    }
    file.labels.push_back(*label);
  }
  absl::StatusOr<profile::Profile> loaded = profile::Load(profile.empty() ? file.name : profile);
  if (!loaded.ok() && profile.empty()) {
    file.profile_missing = true;
    loaded = profile::Load("generic");
  }
  if (!loaded.ok()) return loaded.status();
  file.profile = *std::move(loaded);
  return file;
}

absl::StatusOr<std::vector<JudgedRow>> JudgeFile(const LabelledFile& file,
                                                 core::ClassifierChoice choice,
                                                 std::optional<double> weak_below) {
  importing::ImportOptions options{
      .tsc_hz = file.tsc_hz, .max_hz = file.max_hz, .classifier = choice, .profile = file.profile};
  if (weak_below) options.profile.values.evidence.weak_below = *weak_below;
  VerdictCollector verdicts;
  const auto report = importing::ImportTable(file.table, options, verdicts);
  if (!report.ok()) return report.status();

  std::vector<JudgedRow> judged;
  for (size_t i = 0; i < file.table.rows.size(); ++i) {
    const importing::Row& row = file.table.rows[i];
    const std::string& vm = file.table.vms[row.vm].name;
    const auto vcpu = static_cast<uint32_t>(row.Value(importing::Field::kVcpu).value_or(0));
    const auto end_ns = static_cast<int64_t>(row.Value(importing::Field::kT).value_or(0));
    judged.push_back({.cpu = file.name,
                      .vm = vm,
                      .loop = file.table.Kept(i, kLoop),
                      .condition = file.table.Kept(i, kCondition),
                      .label = file.labels[i],
                      .pause_counted = CountsPause(file.table, row),
                      .verdict = verdicts.Find({vm, vcpu, end_ns})});
  }
  return judged;
}

}  // namespace vcpulse::accuracy
