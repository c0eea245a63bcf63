#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/import/column_names.h"
#include "monitor/import/csv_reader.h"
#include "monitor/import/csv_table.h"
#include "monitor/import/json_lines.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {
namespace {

namespace json = boost::json;

constexpr std::string_view kNoJsonlVm = "jsonl";
constexpr size_t kMostIgnored = 64;  // names that are told

// What a key is for.
struct Use {
  enum class Kind {
    kNothing,
    kField,
    kEvent,
    kState,
    kVmName,
    kVmUuid,
    kVmNumber,
    kVmPid,
    kVmStart,
    kShares
  };
  Kind kind = Kind::kNothing;
  uint32_t number = 0;  // of the field or event
};

struct Count {
  uint32_t event = 0;
  std::optional<uint64_t> count;
};

// Reads one table.
class JsonlParser : public RowReader {
 public:
  JsonlParser(TextSource& source, const std::string& name) : RowReader(name), lines_(source) {
    builder_.table().unit = "line";
    builder_.table().absent_reason = "is null in the imported file";
  }

 protected:
  absl::StatusOr<bool> ReadRow() override;
  void RewindText() override {
    lines_.Rewind();
    any_row_ = false;
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": line ", lines_.line(), ToAbsl(what)));
  }

  absl::Status TakeObject();
  absl::StatusOr<Use> UseOf(std::string_view key, size_t place);
  absl::StatusOr<Use> FindUse(std::string_view key);
  // Why `value` is not what its key holds; empty where it is.
  std::string TakeValue(const Use& use, const json::value& value);
  std::string TakeNumber(const Use& use, const json::value& value);
  absl::Status TakeShares(const json::object& shares);
  absl::Status AddRow();

  JsonLines lines_;
  bool any_row_ = false;  // in this reading
  std::string name_ = builder_.table().name;
  bool of_an_export_ = false;
  std::unordered_map<std::string, Use> uses_;
  std::vector<std::pair<std::string, Use>> in_order_;  // of the keys of the lines so far
  // Of the line that is being read.
  Row row_;
  VmIdentity vm_;
  std::vector<Count> counts_;
  std::vector<std::pair<uint32_t, double>> shares_;
};

absl::StatusOr<bool> JsonlParser::ReadRow() {
  using Line = JsonLines::Line;
  while (true) {
    switch (lines_.Next()) {
      case Line::kEnd:
        if (any_row_) return false;
        return absl::InvalidArgumentError(
            absl::StrCat(name_, ": holds no line with an interval of a vCPU"));
      case Line::kFailed:
        return lines_.status();
      case Line::kBlank:
        break;
      case Line::kTruncated:
        builder_.table().Skip("cut off in the middle", lines_.line());
        break;
      case Line::kObject:
        if (absl::Status status = TakeObject(); !status.ok()) return status;
        any_row_ = true;
        return true;
      case Line::kTooLong:
        return Error(absl::StrCat(": longer than ", kMaxLineBytes, " bytes"));
      default:
        return Error(": no JSON object (`vcpulse export --format jsonl` writes one per line)");
    }
  }
}

absl::StatusOr<Use> JsonlParser::FindUse(std::string_view key) {
  using Kind = Use::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 7> kOthers = {
      {{"state", Kind::kState},
       {"vm", Kind::kVmNumber},
       {"vm_name", Kind::kVmName},
       {"vm_uuid", Kind::kVmUuid},
       {"vm_pid", Kind::kVmPid},
       {"vm_start_time", Kind::kVmStart},
       {"counted_share", Kind::kShares}}};
  if (const auto* other = std::ranges::find(kOthers, key, &decltype(kOthers)::value_type::first);
      other != kOthers.end()) {
    return Use{.kind = other->second};
  }
  if (const auto field = FieldOfKey(key)) {
    builder_.table().columns.set(static_cast<size_t>(*field));
    return Use{.kind = Kind::kField, .number = static_cast<uint32_t>(*field)};
  }
  if (IsDerived(key)) return Use{};
  const std::string_view name = of_an_export_ ? WithoutEventPrefix(key) : key;
  if (IsEventName(name, of_an_export_)) {
    const absl::StatusOr<uint32_t> event = builder_.Event(name);
    if (!event.ok()) return event.status();
    return Use{.kind = Kind::kEvent, .number = *event};
  }
  std::vector<std::string>& ignored = builder_.table().ignored;
  if (ignored.size() < kMostIgnored && std::ranges::find(ignored, key) == ignored.end()) {
    ignored.emplace_back(key);
  }
  return Use{};
}

absl::StatusOr<Use> JsonlParser::UseOf(std::string_view key, size_t place) {
  constexpr size_t kMostKnown = 4096;
  if (place < in_order_.size() && in_order_[place].first == key) return in_order_[place].second;
  std::string name(key);
  const auto known = uses_.find(name);
  if (known == uses_.end()) {
    absl::StatusOr<Use> use = FindUse(key);
    if (use.ok() && uses_.size() < kMostKnown) uses_.emplace(name, *use);
    if (!use.ok() || place != in_order_.size() || place >= kMostKnown) return use;
    in_order_.emplace_back(std::move(name), *use);
    return use;
  }
  if (place < in_order_.size()) in_order_[place] = {std::move(name), known->second};
  return known->second;
}

std::string JsonlParser::TakeNumber(const Use& use, const json::value& value) {
  using Kind = Use::Kind;
  std::optional<uint64_t> number;
  if (use.kind == Kind::kField && use.number == static_cast<uint32_t>(Field::kDt)) {
    json::error_code error;
    const auto seconds = value.is_number() ? value.to_number<double>(error) : -1.0;
    number = SecondsAsNs(seconds);
    if (!number) return "no length in seconds";
  } else {
    number = WholeNumber(value);
    if (!number) return "no whole number from 0 to 2^64";
  }
  if (use.kind == Kind::kField) {
    std::string why = WhyNoValue(static_cast<Field>(use.number), *number);
    if (!why.empty()) return why;
    row_.Set(static_cast<Field>(use.number), *number);
  }
  if (use.kind == Kind::kEvent) counts_.push_back({use.number, *number});
  if (use.kind == Kind::kVmNumber) vm_.number = *number;
  if (use.kind == Kind::kVmPid) vm_.pid = *number;
  if (use.kind == Kind::kVmStart) vm_.start_time = *number;
  return "";
}

std::string JsonlParser::TakeValue(const Use& use, const json::value& value) {
  using Kind = Use::Kind;
  const bool is_text =
      use.kind == Kind::kState || use.kind == Kind::kVmName || use.kind == Kind::kVmUuid;
  if (use.kind == Kind::kEvent && value.is_null()) counts_.push_back({use.number, std::nullopt});
  if (use.kind == Kind::kNothing || value.is_null()) return "";
  if (!is_text) return use.kind == Kind::kShares ? "" : TakeNumber(use, value);
  const json::string* text = value.if_string();
  if (text == nullptr) return "no text";
  if (text->size() > kMaxCellBytes) return absl::StrCat("longer than ", kMaxCellBytes, " bytes");
  if (use.kind == Kind::kVmName) vm_.name = ViewOf(*text);
  if (use.kind == Kind::kVmUuid) vm_.uuid = ViewOf(*text);
  if (use.kind == Kind::kState) {
    const std::optional<core::ThreadState> state = ParseState(ViewOf(*text));
    if (!state) {
      return absl::StrCat(Quoted(ViewOf(*text)),
                          " is none of blocked, runnable, stopped, paused, exited");
    }
    row_.state = *state;
  }
  return "";
}

absl::Status JsonlParser::TakeObject() {
  const json::object& object = lines_.object();
  if (!any_row_) of_an_export_ = object.contains("raw_band");
  builder_.table().has_verdicts = of_an_export_;
  row_ = Row{.number = lines_.line()};
  vm_ = VmIdentity();
  counts_.clear();
  shares_.clear();
  const json::object* shares = nullptr;
  size_t place = 0;
  for (const json::key_value_pair& member : object) {
    const std::string_view key(member.key().data(), member.key().size());
    const absl::StatusOr<Use> use = UseOf(key, place++);
    if (!use.ok()) return use.status();
    if (use->kind == Use::Kind::kShares && !member.value().is_null()) {
      shares = member.value().if_object();
      if (shares == nullptr) return Error(", key counted_share: no object");
    }
    const std::string why = TakeValue(*use, member.value());
    if (!why.empty()) {
      const std::string shown = Quoted(key);
      return Error(absl::StrCat(", key ", shown.substr(1, shown.size() - 2), ": ", why));
    }
  }
  if (!row_.Value(Field::kT) && !row_.Value(Field::kDt)) {
    return Error(": has neither t_mono_ns nor interval_s: one of them is needed");
  }
  if (shares != nullptr) {
    if (absl::Status status = TakeShares(*shares); !status.ok()) return status;
  }
  return AddRow();
}

absl::Status JsonlParser::TakeShares(const json::object& shares) {
  for (const json::key_value_pair& member : shares) {
    const std::string_view key(member.key().data(), member.key().size());
    const std::optional<uint32_t> event =
        builder_.table().FindEvent(of_an_export_ ? WithoutEventPrefix(key) : key);
    if (!event) continue;
    double share = -1;  // the thread never ran
    if (!member.value().is_null()) {
      json::error_code error;
      const auto number = member.value().is_number() ? member.value().to_number<double>(error) : -1;
      if (!(number >= 0 && number <= 1)) {
        return Error(
            absl::StrCat(", key counted_share: ", Quoted(key), " has no share from 0 to 1"));
      }
      share = static_cast<double>(number);
    }
    shares_.emplace_back(*event, share);
  }
  turns_.Add(shares_);
  return absl::OkStatus();
}

absl::Status JsonlParser::AddRow() {
  if (vm_.name.empty() && vm_.number == 0) vm_.name = kNoJsonlVm;
  row_.vm = builder_.Vm(vm_);
  std::ranges::stable_sort(counts_, {}, &Count::event);
  std::ranges::sort(shares_);
  Layout layout;
  std::vector<uint64_t> counts;
  std::vector<double> shares;
  std::optional<uint32_t> before;
  for (const Count& count : counts_) {
    if (before == count.event) continue;  // two keys of one event: the first counts
    before = count.event;
    const auto share =
        std::ranges::lower_bound(shares_, count.event, {}, &std::pair<uint32_t, double>::first);
    const bool has_share = share != shares_.end() && share->first == count.event;
    // Null with a share: it had no turn in this interval.
    if (!count.count && !has_share) {
      layout.absent.push_back(count.event);
      continue;
    }
    layout.events.push_back(count.event);
    counts.push_back(count.count.value_or(0));
    shares.push_back(has_share ? share->second : 1);
  }
  if (shares_.empty()) shares.clear();
  return builder_.Add(row_, layout, counts, shares);
}

}  // namespace

absl::StatusOr<Table> ParseJsonl(std::string_view text, const std::string& name) {
  WholeText source(text);
  return JsonlParser(source, name).ReadWhole();
}

std::unique_ptr<RowReader> JsonlRows(TextSource& source, const std::string& name) {
  return std::make_unique<JsonlParser>(source, name);
}

}  // namespace vcpulse::importing
