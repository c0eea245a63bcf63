#include "monitor/export/parquet.h"

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

}  // namespace

std::vector<parquet::Column> ParquetSchema(const std::vector<TableColumn>& columns) {
  std::vector<parquet::Column> schema;
  schema.reserve(columns.size());
  for (const TableColumn& column : columns) {
    schema.push_back(
        {.name = column.name, .type = TypeOf(column.cells), .optional = column.optional});
  }
  return schema;
}

absl::Status ParquetExport::Begin() {
  auto writer = parquet::Writer::Create(ParquetSchema(table_.Columns()), sink_,
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
    if (sink_ == nullptr) {
      table_.PassRow(interval);
      return absl::OkStatus();
    }
    if (writer_ == nullptr) {
      if (absl::Status status = Begin(); !status.ok()) return status;
    }
    ParquetRow<parquet::Writer> row{*writer_};
    table_.PutRow(interval, row);
    return writer_->EndRow();
  });
}

void ParquetExport::BeginFile(Sink sink) {
  sink_ = std::move(sink);
  writer_.reset();
  table_.BeginTable();
  classifiers_.clear();
  event_sets_.clear();
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
  add("agent_id", session.agent_id());
  for (const v1::Label& label : session.labels()) add("label." + label.key(), label.value());
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
