#include "monitor/export/perfetto_packets.h"

#include <algorithm>
#include <cstring>

#include "google/protobuf/io/coded_stream.h"

namespace vcpulse::exporting {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr uint8_t kPacketTag = 0x0A;  // Trace.packet, length-delimited
constexpr size_t kLongestLength = 5;

// Perfetto's numbers of the clocks.
constexpr uint32_t kRealtime = 1;
constexpr uint32_t kMonotonic = 3;
constexpr uint32_t kBoottime = 6;

void AddClock(uint32_t id, int64_t time_ns, perfetto::ClockSnapshot& snapshot) {
  perfetto::ClockSnapshot::Clock& clock = *snapshot.add_clocks();
  clock.set_clock_id(id);
  clock.set_timestamp(static_cast<uint64_t>(time_ns));
}

}  // namespace

PerfettoPackets::PerfettoPackets(Sink sink) : out_(std::move(sink)) {
  counter_.mutable_track_event()->set_type(perfetto::TrackEvent::COUNTER);
}

void PerfettoPackets::Begin(const std::string& stream_id) {
  if (begun_ || stream_id.size() < sizeof(first_uuid_) + sizeof(sequence_)) return;
  std::memcpy(&first_uuid_, stream_id.data(), sizeof(first_uuid_));
  std::memcpy(&sequence_, stream_id.data() + sizeof(first_uuid_), sizeof(sequence_));
  sequence_ = std::max<uint32_t>(sequence_, 1);  // 0 is none
}

perfetto::TrackDescriptor& PerfettoPackets::Describe(const Track& track) {
  packet_.Clear();
  packet_.set_trusted_packet_sequence_id(sequence_);
  perfetto::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
  descriptor.set_uuid(first_uuid_ + track.number);
  descriptor.set_name(track.name);
  if (track.parent != 0) descriptor.set_parent_uuid(first_uuid_ + track.parent);
  descriptor.set_sibling_merge_behavior(perfetto::TrackDescriptor::NONE);
  descriptor.set_sibling_order_rank(track.rank);
  return descriptor;
}

void PerfettoPackets::AddTrack(const Track& track) {
  Describe(track).set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  Write(packet_);
}

void PerfettoPackets::AddCounterTrack(const Track& track, const std::string& unit) {
  perfetto::CounterDescriptor& counter = *Describe(track).mutable_counter();
  if (!unit.empty()) counter.set_unit_name(unit);
  Write(packet_);
}

void PerfettoPackets::AddThreadTrack(uint64_t number, uint32_t pid, uint32_t tid) {
  packet_.Clear();
  packet_.set_trusted_packet_sequence_id(sequence_);
  perfetto::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
  descriptor.set_uuid(first_uuid_ + number);
  descriptor.mutable_thread()->set_pid(static_cast<int32_t>(pid));
  descriptor.mutable_thread()->set_tid(static_cast<int32_t>(tid));
  Write(packet_);
}

void PerfettoPackets::AddSnapshot(int64_t boottime_ns, std::optional<int64_t> mono_ns,
                                  std::optional<int64_t> realtime_ns) {
  packet_.Clear();
  packet_.set_timestamp(static_cast<uint64_t>(boottime_ns));
  packet_.set_trusted_packet_sequence_id(sequence_);
  perfetto::ClockSnapshot& snapshot = *packet_.mutable_clock_snapshot();
  AddClock(kBoottime, boottime_ns, snapshot);
  if (mono_ns) AddClock(kMonotonic, *mono_ns, snapshot);
  if (realtime_ns) AddClock(kRealtime, *realtime_ns, snapshot);
  Write(packet_);
}

perfetto::TrackEvent& PerfettoPackets::EventAt(int64_t time_ns, uint64_t track,
                                               perfetto::TrackEvent::Type type) {
  packet_.Clear();
  packet_.set_timestamp(static_cast<uint64_t>(time_ns));
  packet_.set_trusted_packet_sequence_id(sequence_);
  perfetto::TrackEvent& event = *packet_.mutable_track_event();
  event.set_type(type);
  event.set_track_uuid(first_uuid_ + track);
  return event;
}

void PerfettoPackets::BeginSlice(uint64_t track, int64_t time_ns, const std::string& category,
                                 const std::string& name) {
  perfetto::TrackEvent& event = EventAt(time_ns, track, perfetto::TrackEvent::SLICE_BEGIN);
  event.set_name(name);
  event.add_categories(category);
  Write(packet_);
}

void PerfettoPackets::EndSlice(uint64_t track, int64_t time_ns, const Arguments& arguments) {
  perfetto::TrackEvent& event = EventAt(time_ns, track, perfetto::TrackEvent::SLICE_END);
  if (!arguments.rule.empty()) {
    perfetto::DebugAnnotation& rule = *event.add_debug_annotations();
    rule.set_name("rule");
    rule.set_string_value(arguments.rule);
  }
  if (arguments.confidence) {
    perfetto::DebugAnnotation& confidence = *event.add_debug_annotations();
    confidence.set_name("confidence");
    confidence.set_double_value(*arguments.confidence);
  }
  Write(packet_);
}

void PerfettoPackets::AddInstant(uint64_t track, int64_t time_ns, const std::string& category,
                                 const std::string& name) {
  perfetto::TrackEvent& event = EventAt(time_ns, track, perfetto::TrackEvent::INSTANT);
  event.set_name(name);
  event.add_categories(category);
  Write(packet_);
}

void PerfettoPackets::AddCounter(uint64_t track, int64_t time_ns, double value) {
  counter_.set_trusted_packet_sequence_id(sequence_);
  counter_.set_timestamp(static_cast<uint64_t>(time_ns));
  perfetto::TrackEvent& event = *counter_.mutable_track_event();
  event.set_track_uuid(first_uuid_ + track);
  event.set_double_counter_value(value);
  Write(counter_);
}

void PerfettoPackets::Write(const perfetto::TracePacket& packet) {
  begun_ = true;
  const size_t length = packet.ByteSizeLong();
  auto* const begin = reinterpret_cast<uint8_t*>(out_.Room(length + 1 + kLongestLength));
  uint8_t* to = begin;
  *to++ = kPacketTag;
  to = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(length), to);
  to = packet.SerializeWithCachedSizesToArray(to);
  out_.Use(static_cast<size_t>(to - begin));
}

}  // namespace vcpulse::exporting
