// What a NATS broker says: its answers to what was published, and the subjects of what it hands
// out.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "monitor/stream/nats/broker_ack.h"
#include "monitor/stream/nats/subject.h"

namespace {

using vcpulse::stream::ParseBrokerAck;
using vcpulse::stream::ParseSubject;
using vcpulse::stream::SubjectOf;

void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto ack = ParseBrokerAck(text);
  if (ack.ok()) {
    Check(ack->sequence > 0);
  } else {
    Check(ack.status().message().find('\n') == std::string::npos);
  }
  // An agent id and a stream have one subject: no other text passes for it.
  if (const auto subject = ParseSubject(text)) {
    Check(SubjectOf(subject->agent_id, subject->stream) == text);
  }
  return 0;
}
