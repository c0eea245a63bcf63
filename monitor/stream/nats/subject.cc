#include "monitor/stream/nats/subject.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/protocol/agent_id.h"

namespace vcpulse::stream {
namespace {

constexpr std::string_view kSubjectPrefix = "vcpulse.v1.";

bool StaysInToken(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; }

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> AgentOfToken(std::string_view token) {
  std::string agent_id;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '=') {
      agent_id.push_back(token[i]);
      continue;
    }
    if (i + 2 >= token.size()) return std::nullopt;
    const auto high = HexDigit(token[i + 1]);
    const auto low = HexDigit(token[i + 2]);
    if (!high || !low) return std::nullopt;
    agent_id.push_back(static_cast<char>(*high * 16 + *low));
    i += 2;
  }
  // One agent has one token, so that it has one folder too.
  if (!CheckAgentId(agent_id).ok() || TokenOf(agent_id) != token) return std::nullopt;
  return agent_id;
}

}  // namespace

std::string TokenOf(const std::string& agent_id) {
  std::string token;
  for (const char c : agent_id) {
    if (StaysInToken(c)) {
      token.push_back(c);
    } else {
      absl::StrAppendFormat(&token, "=%02X", static_cast<unsigned char>(c));
    }
  }
  return token;
}

std::string SubjectOf(const std::string& agent_id, const timeline::StreamId& stream) {
  return absl::StrCat(std::string(kSubjectPrefix), TokenOf(agent_id), ".", ToHex(stream));
}

std::string SubjectsOf(const std::string& agent_id) {
  return absl::StrCat(std::string(kSubjectPrefix), TokenOf(agent_id), ".*");
}

std::string ProbeSubjectOf(const std::string& agent_id) {
  return absl::StrCat(std::string(kSubjectPrefix), TokenOf(agent_id), ".probe");
}

std::optional<Subject> ParseSubject(const std::string& subject) {
  if (!subject.starts_with(kSubjectPrefix)) return std::nullopt;
  const std::string rest = subject.substr(kSubjectPrefix.size());
  const size_t dot = rest.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto agent_id = AgentOfToken(std::string_view(rest).substr(0, dot));
  const auto stream = StreamOfHex(rest.substr(dot + 1));
  if (!agent_id || !stream) return std::nullopt;
  return Subject{.agent_id = *agent_id, .stream = *stream};
}

std::string MessageIdOf(const std::string& agent_id, const timeline::StreamId& stream,
                        uint64_t first_sequence, uint32_t content) {
  return absl::StrFormat("%s.%s-%d-%08x", TokenOf(agent_id), ToHex(stream), first_sequence,
                         content);
}

size_t HeaderBytesOf(const std::string& message_id) {
  constexpr std::string_view kWithoutId = "NATS/1.0\r\nNats-Msg-Id: \r\n\r\n";
  return kWithoutId.size() + message_id.size();
}

}  // namespace vcpulse::stream
