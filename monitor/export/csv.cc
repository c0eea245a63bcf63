#include "monitor/export/csv.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/export/text_output.h"
#include "monitor/import/column_names.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/labels.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_scanner.h"

namespace vcpulse::exporting {
namespace {

template <typename T>
void AddCell(TextOutput& out, const std::optional<T>& number) {
  out.Add(",");
  if (number) out.AddNumber(*number);
}

void AddCell(TextOutput& out, const std::optional<double>& number, int decimals) {
  out.Add(",");
  if (number) out.AddDecimal(*number, decimals);
}

void AddCell(TextOutput& out, const std::optional<std::string_view>& name) {
  out.Add(",");
  if (name) out.Add(*name);
}

std::string NumberOrEmpty(uint64_t number, bool known) {
  return known ? std::to_string(number) : "";
}

bool TakesTurns(const v1::VcpuSet& set, const metric::EventPlace& place) {
  return place.counted && place.group >= std::max<size_t>(1, set.core_pmus());
}

}  // namespace

absl::Status CsvExport::Add(const timeline::Entry& entry) {
  if (const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    clocks_.Take(*snapshot);
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    if (absl::Status status = TakeSet(*set); !status.ok()) return status;
  }
  return intervals_.Add(entry,
                        [this](const metric::Interval& interval) { return AddRow(interval); });
}

absl::Status CsvExport::TakeSet(const v1::VcpuSet& set) {
  if (!has_header_) {
    columns_.Add(set);
    return absl::OkStatus();
  }
  if (columns_.Covers(set)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "VM ", set.vm(), " counts other events from ", set.mono_ns() / 1'000'000'000,
      " s of uptime on, and the header of the CSV is written: export from a file, whose events are "
      "looked for before"));
}

void CsvExport::WriteHeader() {
  has_header_ = true;
  event_columns_ = columns_.Columns();
  const char* comma = "";
  const auto add = [&](std::string_view name) {
    out_.Add(comma);
    out_.Add(CsvCell(name));
    comma = ",";
  };
  for (const std::string_view name : kCsvColumnsBefore) add(name);
  for (const CsvColumns::Column& column : event_columns_) add(column.header);
  for (const std::string_view name : kCsvColumnsBeforeMetrics) add(name);
  ForEachRowMetric([&add](const metric::Info& info) { add(info.key); });
  for (const std::string_view name : kCsvColumnsBehindMetrics) add(name);
  out_.Add("\n");
}

absl::Status CsvExport::Finish() {
  if (!has_header_) WriteHeader();
  return out_.Flush();
}

const std::string& CsvExport::LabelOf(const v1::VcpuSet& set) {
  const auto known = labels_.find(set.vm());
  if (known != labels_.end()) return known->second;
  const std::string number = absl::StrCat("VM ", set.vm());
  std::string label = set.instance().name().empty() ? number : set.instance().name();
  while (!used_labels_.insert(label).second) label += absl::StrCat(" (", number, ")");
  return labels_.emplace(set.vm(), std::move(label)).first->second;
}

CsvExport::Prepared CsvExport::Prepare(const metric::Epoch& epoch) {
  Prepared prepared;
  const v1::VmInstance& instance = epoch.set.instance();
  const std::string vm = absl::StrCat(",", CsvCell(LabelOf(epoch.set)), ",", epoch.set.vm(), ",",
                                      NumberOrEmpty(instance.pid(), instance.pid() != 0), ",",
                                      CsvCell(instance.uuid()), ",", epoch.set.epoch(), ",");
  for (const v1::Vcpu& vcpu : epoch.set.vcpus()) {
    prepared.vcpus.push_back(absl::StrCat(vm, vcpu.index(), ",",
                                          NumberOrEmpty(vcpu.tid(), vcpu.tid() != 0), ",",
                                          NumberOrEmpty(vcpu.kvm_id(), vcpu.has_kvm_id())));
  }
  for (const CsvColumns::Column& column : event_columns_) {
    const auto place = std::ranges::find(epoch.events, column.event, &metric::EventPlace::name);
    prepared.events.push_back(place == epoch.events.end() ? nullptr : &*place);
  }
  return prepared;
}

const CsvExport::Prepared& CsvExport::PreparedFor(const metric::Epoch& epoch) {
  if (latest_ == &epoch) return *latest_prepared_;
  auto found = prepared_.find(&epoch);
  if (found == prepared_.end()) found = prepared_.emplace(&epoch, Prepare(epoch)).first;
  latest_ = &epoch;
  latest_prepared_ = &found->second;
  return found->second;
}

absl::Status CsvExport::AddRow(const metric::Interval& interval) {
  if (!has_header_) WriteHeader();
  const Prepared& prepared = PreparedFor(interval.epoch);
  const core::VcpuDelta& delta = interval.delta;
  const int64_t end_ns = interval.EndNs();
  out_.AddNumber(end_ns);
  AddCell(out_, clocks_.Realtime(end_ns));
  out_.Add(",");
  out_.AddNumber(delta.interval_ns);
  out_.Add(",");
  out_.AddNumber(interval.tick);
  out_.Add(prepared.vcpus[interval.column]);
  AddEvents(interval, prepared);
  out_.Add(",");
  out_.AddNumber(delta.time_enabled_ns);
  out_.Add(",");
  out_.AddNumber(delta.time_running_ns);
  AddCell(out_, delta.run_ns);
  AddCell(out_, delta.run_delay_ns);
  AddCell(out_, reading::StateName(delta.state));
  ForEachRowMetric([&](const metric::Info& info) {
    AddCell(out_, info.of(interval).Value(), info.row_decimals);
  });
  AddVerdict(interval);
  out_.Add("\n");
  return out_.EndRow();
}

void CsvExport::AddEvents(const metric::Interval& interval, const Prepared& prepared) {
  for (size_t i = 0; i < prepared.events.size(); ++i) {
    const metric::EventPlace* place = prepared.events[i];
    if (place == nullptr) {
      out_.Add(",");
    } else if (!event_columns_[i].is_share) {
      AddCell(out_, interval.CountOf(*place).count);
    } else if (interval.InTurns(*place)) {
      AddCell(out_, interval.CountOf(*place).share, kShareDecimals);
    } else {
      out_.Add(",");
    }
  }
}

void CsvExport::AddVerdict(const metric::Interval& interval) {
  const core::Verdict& verdict = interval.verdict;
  AddCell(out_, reading::BandName(verdict.band));
  AddCell(out_, reading::BandName(verdict.raw_band));
  out_.Add(",");
  if (verdict.band != core::Band::kNone) out_.Add(core::ToString(verdict.rule));
  out_.Add(",");
  if (verdict.confidence_pct > 0) out_.AddDecimal(verdict.confidence_pct / 100.0, 2);
  const std::optional<bool> starved = interval.Starved();
  out_.Add(!starved ? "," : *starved ? ",true" : ",false");
}

void CsvColumns::Add(const v1::VcpuSet& set) {
  for (const metric::EventPlace& place : metric::EventPlacesOf(set)) {
    const auto [known, is_new] = in_turns_.try_emplace(place.name, false);
    if (is_new) events_.push_back(place.name);
    if (TakesTurns(set, place)) known->second = true;
  }
}

bool CsvColumns::Covers(const v1::VcpuSet& set) const {
  return std::ranges::all_of(metric::EventPlacesOf(set), [&](const metric::EventPlace& place) {
    const auto known = in_turns_.find(place.name);
    return known != in_turns_.end() && (known->second || !TakesTurns(set, place));
  });
}

std::vector<CsvColumns::Column> CsvColumns::Columns() const {
  std::set<std::string> taken;
  for (const std::string_view name : kCsvColumnsBefore) taken.emplace(name);
  for (const std::string_view name : kCsvColumnsBeforeMetrics) taken.emplace(name);
  for (const std::string_view name : kCsvColumnsBehindMetrics) taken.emplace(name);
  ForEachRowMetric([&taken](const metric::Info& info) { taken.emplace(info.key); });
  for (const importing::EventColumn& known : importing::kEventColumns) taken.emplace(known.column);
  const auto own_name = [&taken](std::string name) {
    while (!taken.insert(importing::AsCompared(name)).second) name.insert(0, "event:");
    return name;
  };
  // By place in kEventColumns: the first event that is it.
  std::array<const std::string*, importing::kEventColumns.size()> known{};
  std::vector<const std::string*> others;
  for (const std::string& event : events_) {
    const std::optional<size_t> column = importing::EventColumnOf(event);
    const std::string** const place = column ? &known[*column] : nullptr;
    if (place != nullptr && *place == nullptr) {
      *place = &event;
    } else {
      others.push_back(&event);
    }
  }
  std::vector<Column> columns;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i] == nullptr) continue;
    columns.push_back(
        {.event = *known[i], .header = std::string(importing::kEventColumns[i].column)});
  }
  for (const std::string* event : others) {
    columns.push_back({.event = *event, .header = own_name(*event)});
  }
  const size_t counts = columns.size();
  for (size_t i = 0; i < counts; ++i) {
    if (!in_turns_.at(columns[i].event)) continue;
    columns.push_back(
        {.event = columns[i].event,
         .header = own_name(absl::StrCat(columns[i].header, ToAbsl(importing::kShareSuffix))),
         .is_share = true});
  }
  return columns;
}

std::string CsvCell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

absl::Status FindSets(const timeline::Input& input,
                      absl::FunctionRef<void(const v1::VcpuSet&)> sink) {
  const auto source = input.Open();
  if (!source.ok()) return source.status();
  std::vector<timeline::Damage> damages;  // told by the reading that follows
  timeline::ChunkScanner scanner(source->get(), &damages);
  timeline::ChunkDecoder decoder;
  while (true) {
    const auto found = scanner.Next();
    if (!found.ok()) return found.status();
    if (!found->has_value()) return absl::OkStatus();
    const auto payload = scanner.ReadPayload(**found);
    if (!payload.ok()) return payload.status();
    if (!payload->has_value() || !decoder.Open((*found)->header, **payload).ok()) continue;
    for (const v1::VcpuSet& set : decoder.context().vcpu_sets()) sink(set);
  }
}

}  // namespace vcpulse::exporting
