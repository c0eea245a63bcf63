#include "monitor/timeline/entry.h"

#include <string>
#include <type_traits>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"

namespace vcpulse::timeline {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void FixTexts(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string text = field->is_repeated() ? reflection.GetRepeatedString(*message, field, i)
                                            : reflection.GetString(*message, field);
    MakeUtf8(&text);
    if (field->is_repeated()) {
      reflection.SetRepeatedString(message, field, i, std::move(text));
    } else {
      reflection.SetString(message, field, std::move(text));
    }
  }
}

void FixMessages(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  if (!field->is_repeated()) return MakeTextsUtf8(reflection.MutableMessage(message, field));
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    MakeTextsUtf8(reflection.MutableRepeatedMessage(message, field, i));
  }
}

// Puts a message of the schema into a record.
struct IntoRecord {
  v1::TimelineRecord& record;

  void operator()(const v1::Session& it) const { *record.mutable_session() = it; }
  void operator()(const v1::VcpuSet& it) const { *record.mutable_vcpu_set() = it; }
  void operator()(const v1::Marker& it) const { *record.mutable_marker() = it; }
  void operator()(const v1::Gap& it) const { *record.mutable_gap() = it; }
  void operator()(const v1::LifeCycle& it) const { *record.mutable_life_cycle() = it; }
  void operator()(const v1::ClockSnapshot& it) const { *record.mutable_clock_snapshot() = it; }
  void operator()(const v1::Summary& it) const { *record.mutable_summary() = it; }
  void operator()(const v1::Profile& it) const { *record.mutable_profile() = it; }
  void operator()(const v1::Statistics& it) const { *record.mutable_statistics() = it; }
  void operator()(const v1::HotAddresses& it) const { *record.mutable_hot_addresses() = it; }
  void operator()(const v1::Competitors& it) const { *record.mutable_competitors() = it; }
  void operator()(const TickEntry& /*it*/) const {}
};

}  // namespace

v1::TimelineRecord RecordOf(const Entry& entry) {
  v1::TimelineRecord record;
  std::visit(IntoRecord{record}, entry.record);
  return record;
}

std::optional<std::pair<uint32_t, uint32_t>> SetNeededBy(const v1::TimelineRecord& record) {
  if (record.has_gap()) return std::pair(record.gap().vm(), record.gap().epoch());
  if (record.has_hot_addresses()) {
    return std::pair(record.hot_addresses().vm(), record.hot_addresses().epoch());
  }
  if (record.has_competitors()) {
    return std::pair(record.competitors().vm(), record.competitors().epoch());
  }
  return std::nullopt;
}

std::optional<int64_t> InstantOf(const Entry& entry) {
  return std::visit(
      [](const auto& record) -> std::optional<int64_t> {
        using Record = std::decay_t<decltype(record)>;
        if constexpr (std::is_same_v<Record, TickEntry>) {
          return record.sample.wake_ns;
        } else if constexpr (std::is_same_v<Record, v1::Session> ||
                             std::is_same_v<Record, v1::Profile> ||
                             std::is_same_v<Record, v1::Summary>) {
          return std::nullopt;
        } else {
          return record.mono_ns();
        }
      },
      entry.record);
}

v1::ClockSnapshot TakeClockSnapshot() {
  v1::ClockSnapshot clocks;
  clocks.set_mono_ns(ClockNow_ns(CLOCK_MONOTONIC));
  clocks.set_boottime_ns(ClockNow_ns(CLOCK_BOOTTIME));
  clocks.set_realtime_ns(ClockNow_ns(CLOCK_REALTIME));
  return clocks;
}

void MakeTextsUtf8(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) FixTexts(reflection, field, message);
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) FixMessages(reflection, field, message);
  }
}

}  // namespace vcpulse::timeline
