#include "monitor/export/perfetto_packets.h"

#include "google/protobuf/io/coded_stream.h"

namespace vcpulse::exporting {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kSequence = 1;
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
  counter_.set_trusted_packet_sequence_id(kSequence);
  counter_.mutable_track_event()->set_type(perfetto::TrackEvent::COUNTER);
}

void PerfettoPackets::AddTrack(uint64_t uuid, uint64_t parent, const std::string& name) {
  packet_.Clear();
  packet_.set_trusted_packet_sequence_id(kSequence);
  perfetto::TrackDescriptor& track = *packet_.mutable_track_descriptor();
  track.set_uuid(uuid);
  track.set_name(name);
  if (parent != 0) track.set_parent_uuid(parent);
  track.set_sibling_merge_behavior(perfetto::TrackDescriptor::NONE);
  Write(packet_);
}

void PerfettoPackets::AddCounterTrack(uint64_t uuid, uint64_t parent, const std::string& name,
                                      const std::string& unit) {
  packet_.Clear();
  packet_.set_trusted_packet_sequence_id(kSequence);
  perfetto::TrackDescriptor& track = *packet_.mutable_track_descriptor();
  track.set_uuid(uuid);
  track.set_name(name);
  track.set_parent_uuid(parent);
  perfetto::CounterDescriptor& counter = *track.mutable_counter();
  if (!unit.empty()) counter.set_unit_name(unit);
  track.set_sibling_merge_behavior(perfetto::TrackDescriptor::NONE);
  Write(packet_);
}

void PerfettoPackets::AddSnapshot(int64_t boottime_ns, int64_t mono_ns,
                                  std::optional<int64_t> realtime_ns) {
  packet_.Clear();
  packet_.set_timestamp(static_cast<uint64_t>(boottime_ns));
  packet_.set_trusted_packet_sequence_id(kSequence);
  perfetto::ClockSnapshot& snapshot = *packet_.mutable_clock_snapshot();
  AddClock(kBoottime, boottime_ns, snapshot);
  AddClock(kMonotonic, mono_ns, snapshot);
  if (realtime_ns) AddClock(kRealtime, *realtime_ns, snapshot);
  Write(packet_);
}

perfetto::TrackEvent& PerfettoPackets::EventAt(int64_t time_ns, uint64_t track,
                                               perfetto::TrackEvent::Type type) {
  packet_.Clear();
  packet_.set_timestamp(static_cast<uint64_t>(time_ns));
  packet_.set_trusted_packet_sequence_id(kSequence);
  perfetto::TrackEvent& event = *packet_.mutable_track_event();
  event.set_type(type);
  event.set_track_uuid(track);
  return event;
}

void PerfettoPackets::BeginSlice(uint64_t track, int64_t time_ns, const std::string& name) {
  EventAt(time_ns, track, perfetto::TrackEvent::SLICE_BEGIN).set_name(name);
  Write(packet_);
}

void PerfettoPackets::EndSlice(uint64_t track, int64_t time_ns) {
  EventAt(time_ns, track, perfetto::TrackEvent::SLICE_END);
  Write(packet_);
}

void PerfettoPackets::AddInstant(uint64_t track, int64_t time_ns, const std::string& name) {
  EventAt(time_ns, track, perfetto::TrackEvent::INSTANT).set_name(name);
  Write(packet_);
}

void PerfettoPackets::AddCounter(uint64_t track, int64_t time_ns, double value) {
  counter_.set_timestamp(static_cast<uint64_t>(time_ns));
  perfetto::TrackEvent& event = *counter_.mutable_track_event();
  event.set_track_uuid(track);
  event.set_double_counter_value(value);
  Write(counter_);
}

void PerfettoPackets::Write(const perfetto::TracePacket& packet) {
  const size_t length = packet.ByteSizeLong();
  auto* const begin = reinterpret_cast<uint8_t*>(out_.Room(length + 1 + kLongestLength));
  uint8_t* to = begin;
  *to++ = kPacketTag;
  to = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(length), to);
  to = packet.SerializeWithCachedSizesToArray(to);
  out_.Use(static_cast<size_t>(to - begin));
}

}  // namespace vcpulse::exporting
