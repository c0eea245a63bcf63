#include "monitor/stream/disk/names.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "kvm/base/text.h"

namespace vcpulse::stream {
namespace {

constexpr size_t kSequenceDigits = 20;
constexpr std::string_view kExtension = ".vpt";

}  // namespace

std::string ToHex(const timeline::StreamId& stream) {
  std::string text;
  for (const uint8_t byte : stream) text += absl::StrFormat("%02x", byte);
  return text;
}

std::optional<timeline::StreamId> StreamOfHex(const std::string& text) {
  timeline::StreamId stream{};
  if (text.size() != 2 * stream.size()) return std::nullopt;
  for (size_t i = 0; i < stream.size(); ++i) {
    const auto byte = ParseNumber<uint8_t>(std::string_view(text).substr(2 * i, 2), 16);
    if (!byte) return std::nullopt;
    stream[i] = *byte;
  }
  return ToHex(stream) == text ? std::optional(stream) : std::nullopt;
}

std::string FileNameOf(uint64_t first_sequence) {
  return absl::StrFormat("%020d.vpt", first_sequence);
}

std::optional<uint64_t> SequenceOfFileName(const std::string& name) {
  if (name.size() != kSequenceDigits + kExtension.size() || !name.ends_with(kExtension)) {
    return std::nullopt;
  }
  return ParseNumber<uint64_t>(std::string_view(name).substr(0, kSequenceDigits));
}

std::optional<timeline::StreamId> StreamOfFolder(const std::string& name) {
  const size_t id_digits = 2 * timeline::StreamId().size();
  if (name.size() <= id_digits) return std::nullopt;
  const size_t begin = name.size() - id_digits;
  if (name[begin - 1] != '-') return std::nullopt;
  return StreamOfHex(name.substr(begin));
}

std::string ParentOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : path.rfind('/', end);
  if (slash == std::string::npos) return path.starts_with('/') ? "/" : ".";
  const size_t parent_end = path.find_last_not_of('/', slash);
  return parent_end == std::string::npos ? "/" : path.substr(0, parent_end + 1);
}

}  // namespace vcpulse::stream
