#include "monitor/export/event_columns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/import/column_names.h"
#include "monitor/metric/interval.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_scanner.h"

namespace vcpulse::exporting {
namespace {

bool TakesTurns(const v1::VcpuSet& set, const metric::EventPlace& place) {
  return place.counted && place.group >= std::max<size_t>(1, set.core_pmus());
}

}  // namespace

void EventColumns::Add(const v1::VcpuSet& set) {
  for (const metric::EventPlace& place : metric::EventPlacesOf(set)) {
    const auto [known, is_new] = in_turns_.try_emplace(place.name, false);
    if (is_new) events_.push_back(place.name);
    if (TakesTurns(set, place)) known->second = true;
  }
}

bool EventColumns::Covers(const v1::VcpuSet& set) const {
  return std::ranges::all_of(metric::EventPlacesOf(set), [&](const metric::EventPlace& place) {
    const auto known = in_turns_.find(place.name);
    return known != in_turns_.end() && (known->second || !TakesTurns(set, place));
  });
}

std::vector<EventColumns::Column> EventColumns::Columns(
    std::span<const std::string_view> others_taken) const {
  std::set<std::string> taken(others_taken.begin(), others_taken.end());
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
