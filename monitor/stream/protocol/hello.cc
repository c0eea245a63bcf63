#include "monitor/stream/protocol/hello.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::stream {
namespace {

// A collector that takes smaller frames only cannot take chunks.
constexpr uint32_t kLeastMaxFrameBytes = 4096;

std::string Versions(uint32_t least, uint32_t most) {
  return least == most ? absl::StrCat("version ", most)
                       : absl::StrCat("versions ", least, " to ", most);
}

absl::Status CheckVersions(const v1::Hello& hello) {
  if (hello.min_major() == 0 || hello.min_major() > hello.major()) {
    return absl::DataLossError(absl::StrCat(
        "a Hello with ", Versions(hello.min_major(), hello.major()), " of the protocol"));
  }
  if (hello.min_major() > kMajor) {
    return absl::UnimplementedError(
        absl::StrCat("the agent speaks ", Versions(hello.min_major(), hello.major()),
                     " of the protocol, the collector only ", Versions(kMinMajor, kMajor),
                     ": update vcpulse on the collector"));
  }
  if (hello.major() < kMinMajor) {
    return absl::UnimplementedError(absl::StrCat("the agent speaks ",
                                                 Versions(hello.min_major(), hello.major()),
                                                 " of the protocol, the collector no less than ",
                                                 kMinMajor, ": update vcpulse on the agent"));
  }
  return absl::OkStatus();
}

absl::Status CheckText(const char* name, const std::string& text) {
  if (text.size() <= kMaxNameBytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a Hello whose ", name, " has more than ", kMaxNameBytes, " bytes"));
}

absl::Status CheckIdOfHello(const std::string& id) {
  absl::Status status = CheckAgentId(id);
  return status.ok() ? status : absl::DataLossError(status.message());
}

absl::Status CheckStream(const v1::Hello& hello) {
  const std::string& id = hello.stream_id();
  if (id.size() != timeline::StreamId().size() ||
      std::ranges::all_of(id, [](char byte) { return byte == 0; })) {
    return absl::DataLossError("a Hello without a stream id");
  }
  if (hello.first_sequence() == 0 || hello.next_sequence() < hello.first_sequence()) {
    return absl::DataLossError(absl::StrCat("a Hello that holds records ", hello.first_sequence(),
                                            " up to before ", hello.next_sequence()));
  }
  return absl::OkStatus();
}

}  // namespace

std::string OneLine(std::string text, size_t max_bytes) {
  MakeUtf8(&text);
  text = Printable(text);
  text.resize(CutUtf8(text, max_bytes).size());
  return text;
}

v1::Hello HelloOf(const AgentIdentity& identity, v1::Hello::Role role,
                  const v1::ClockSnapshot& clock) {
  v1::Hello hello;
  hello.set_major(kMajor);
  hello.set_minor(kMinor);
  hello.set_min_major(kMinMajor);
  hello.set_role(role);
  hello.set_agent_id(identity.agent_id);
  hello.set_host_name(OneLine(identity.host_name, kMaxNameBytes));
  hello.set_boot_id(OneLine(identity.boot_id, kMaxNameBytes));
  hello.set_tool_version(OneLine(identity.tool_version, kMaxNameBytes));
  *hello.mutable_clock() = clock;
  return hello;
}

absl::Status CheckHello(const v1::Hello& hello) {
  absl::Status status = CheckVersions(hello);
  if (!status.ok()) return status;
  status.Update(CheckText("host name", hello.host_name()));
  status.Update(CheckText("boot id", hello.boot_id()));
  status.Update(CheckText("tool version", hello.tool_version()));
  switch (hello.role()) {
    case v1::Hello::ROLE_AGENT:
      status.Update(CheckIdOfHello(hello.agent_id()));
      status.Update(CheckStream(hello));
      return status;
    case v1::Hello::ROLE_FOLLOWER:
      // Where it needs no name it has none.
      if (!hello.agent_id().empty()) status.Update(CheckIdOfHello(hello.agent_id()));
      if (!hello.follow_agent_id().empty()) status.Update(CheckIdOfHello(hello.follow_agent_id()));
      return status;
    default:
      return absl::UnimplementedError(
          absl::StrCat("whoever connects wants to be something that this collector does not know "
                       "(role ",
                       static_cast<int>(hello.role()), "): update vcpulse on the collector"));
  }
}

absl::Status CheckWelcome(const v1::Welcome& welcome, std::optional<uint64_t> last_sent) {
  if (welcome.major() < kMinMajor || welcome.major() > kMajor) {
    return absl::UnimplementedError(
        absl::StrCat("the collector speaks version ", welcome.major(),
                     " of the protocol, this vcpulse ", Versions(kMinMajor, kMajor), ": update ",
                     welcome.major() > kMajor ? "this one" : "the collector's"));
  }
  if (welcome.credit_bytes() == 0) {
    return absl::DataLossError("the collector gives no credit: nothing could be sent");
  }
  if (welcome.max_frame_bytes() < kLeastMaxFrameBytes) {
    return absl::DataLossError(absl::StrCat(
        "the collector takes frames of ", welcome.max_frame_bytes(), " bytes: no chunk would fit"));
  }
  if (welcome.durable_sequence() == std::numeric_limits<uint64_t>::max()) {
    return absl::DataLossError("the collector claims a record that cannot be");
  }
  if (last_sent && welcome.durable_sequence() > *last_sent) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the collector has records up to ", welcome.durable_sequence(),
        " of this stream, and those sent end at ", *last_sent,
        ": another agent sends under the same stream id (was a machine or a spool copied?)"));
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::stream
