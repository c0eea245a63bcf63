#include "monitor/export/parquet.h"

#include <concepts>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"

namespace vcpulse::exporting {
namespace {

parquet::Type TypeOf(TableColumn::Cells cells) {
  switch (cells) {
    case TableColumn::Cells::kInteger:
      return parquet::Type::kInt64;
    case TableColumn::Cells::kDecimal:
      return parquet::Type::kDouble;
    case TableColumn::Cells::kText:
      return parquet::Type::kString;
    case TableColumn::Cells::kBoolean:
      return parquet::Type::kBoolean;
  }
  return parquet::Type::kInt64;
}

// The cells of a row, as IntervalTable::PutRow gives them.
struct ParquetRow {
  parquet::Writer& writer;

  void AddInteger(std::integral auto number) {
    if (std::cmp_greater(number, std::numeric_limits<int64_t>::max())) {
      writer.AddNull();
    } else {
      writer.AddInteger(static_cast<int64_t>(number));
    }
  }
  // The number of the CSV, so that both are one table.
  void AddDecimal(double number, int decimals) { writer.AddDouble(Rounded(number, decimals)); }
  void AddText(std::string_view text) { writer.AddText(text); }
  void AddBoolean(bool value) { writer.AddBoolean(value); }
  void AddEmpty() { writer.AddNull(); }
  void AddOptional(const std::optional<uint32_t>& number) {
    number ? writer.AddInteger(*number) : writer.AddNull();
  }
  void Add(const VcpuCells& cells) {
    writer.AddText(cells.vm);
    writer.AddInteger(cells.vm_number);
    AddOptional(cells.vm_pid);
    cells.vm_uuid ? writer.AddText(*cells.vm_uuid) : writer.AddNull();
    writer.AddInteger(cells.epoch);
    writer.AddInteger(cells.vcpu);
    AddOptional(cells.tid);
    AddOptional(cells.kvm_id);
  }
};

}  // namespace

absl::Status ParquetExport::Begin() {
  std::vector<parquet::Column> schema;
  for (const TableColumn& column : table_.Columns()) {
    schema.push_back(
        {.name = column.name, .type = TypeOf(column.cells), .optional = column.optional});
  }
  auto writer = parquet::Writer::Create(std::move(schema), sink_,
                                        {.created_by = absl::StrCat("vcpulse version ", version_)});
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  return absl::OkStatus();
}

absl::Status ParquetExport::Add(const timeline::Entry& entry) {
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    classifiers_.emplace(reading::ClassifierOf(*set));
    if (!set->event_set().empty()) event_sets_.insert(set->event_set());
  }
  return table_.Add(entry, [this](const metric::Interval& interval) {
    if (writer_ == nullptr) {
      if (absl::Status status = Begin(); !status.ok()) return status;
    }
    ParquetRow row{*writer_};
    table_.PutRow(interval, row);
    return writer_->EndRow();
  });
}

void ParquetExport::AddMetadata() {
  const auto add = [this](std::string_view key, std::string_view value) {
    if (!value.empty()) writer_->SetMetadata(absl::StrCat("vcpulse.", ToAbsl(key)), value);
  };
  add("exported_by", version_);
  add("classifiers", absl::StrJoin(classifiers_, ","));
  add("event_sets", absl::StrJoin(event_sets_, ","));
  if (!table_.session()) return;
  const v1::Session& session = *table_.session();
  add("recorded_by", session.tool_version());
  add("stream_id", absl::BytesToHexString(session.stream_id()));
  add("host_name", session.host_name());
  add("boot_id", session.boot_id());
  add("kernel_release", session.kernel_release());
  add("machine", session.machine());
  add("cpu_model", session.cpu_model());
  if (session.online_cpus() > 0) add("online_cpus", std::to_string(session.online_cpus()));
  if (session.interval_ns() > 0) add("interval_ns", std::to_string(session.interval_ns()));
  add("classifier", session.classifier().name());
  add("profile", session.classifier().profile());
  add("residency_method",
      reading::ResidencyMethodName(session.residency_method()).value_or(std::string_view()));
  add("degraded_reason", session.degraded_reason());
}

absl::Status ParquetExport::Finish() {
  if (writer_ == nullptr) {
    if (absl::Status status = Begin(); !status.ok()) return status;
  }
  AddMetadata();
  return writer_->Finish();
}

}  // namespace vcpulse::exporting
