#include "kvm/tracing/tracepoint_format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

// What stands between "KEY:" and the next ';'.
std::optional<std::string_view> Value(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  const size_t end = line.find(';');
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(0, end);
}

// "unsigned long guest_rip" and "char comm[16]" are called by their last word.
std::string NameOf(std::string_view declaration) {
  declaration = declaration.substr(0, declaration.find('['));
  return std::string(declaration.substr(declaration.rfind(' ') + 1));
}

std::optional<TracepointFormat::Field> ParseField(std::string_view line) {
  const auto declaration = Value(line, "field:");
  const auto offset = Value(line, "offset:");
  const auto size = Value(line, "size:");
  if (!declaration || !offset || !size) return std::nullopt;
  const auto offset_bytes = ParseNumber<uint32_t>(*offset);
  const auto size_bytes = ParseNumber<uint32_t>(*size);
  if (!offset_bytes || !size_bytes) return std::nullopt;
  return TracepointFormat::Field{
      .name = NameOf(*declaration), .offset = *offset_bytes, .size = *size_bytes};
}

}  // namespace

const TracepointFormat::Field* TracepointFormat::Find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

std::optional<TracepointFormat> ParseTracepointFormat(std::string_view text) {
  TracepointFormat format;
  bool has_id = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("ID: ")) {
      const auto id = ParseNumber<uint64_t>(line.substr(4));
      if (!id) return std::nullopt;
      format.id = *id;
      has_id = true;
    } else if (line.starts_with("print fmt:")) {
      break;  // it may hold anything
    } else if (line.find("field:") != std::string_view::npos) {
      auto field = ParseField(line);
      if (!field) return std::nullopt;
      format.fields.push_back(*std::move(field));
    }
  }
  if (!has_id) return std::nullopt;
  return format;
}

std::optional<uint64_t> ReadField(std::span<const uint8_t> record,
                                  const TracepointFormat::Field* field) {
  if (field == nullptr || field->offset > record.size() ||
      record.size() - field->offset < field->size) {
    return std::nullopt;
  }
  const auto read = [&]<typename T>(T value) -> uint64_t {
    std::memcpy(&value, record.data() + field->offset, sizeof(value));
    return value;
  };
  switch (field->size) {
    case 1:
      return read(uint8_t{});
    case 2:
      return read(uint16_t{});
    case 4:
      return read(uint32_t{});
    case 8:
      return read(uint64_t{});
    default:
      return std::nullopt;
  }
}

absl::StatusOr<TracepointFormat> ReadTracepointFormat(const std::string& root,
                                                      std::string_view system,
                                                      std::string_view name) {
  int error = ENOENT;
  for (const char* mount : {"sys/kernel/tracing", "sys/kernel/debug/tracing"}) {
    int why = 0;
    const auto text =
        ReadSmallFile(absl::StrCat(root, root.ends_with('/') ? "" : "/", mount, "/events/",
                                   ToAbsl(system), "/", ToAbsl(name), "/format"),
                      &why);
    if (!text) {
      if (error == ENOENT) error = why;  // the first that says more
      continue;
    }
    auto format = ParseTracepointFormat(*text);
    if (format) return *std::move(format);
    return absl::UnimplementedError(absl::StrCat("the format of ", ToAbsl(system), ":",
                                                 ToAbsl(name), " is of a form that is not known"));
  }
  return absl::ErrnoToStatus(
      error, absl::StrCat("the format of ", ToAbsl(system), ":", ToAbsl(name),
                          " cannot be read (needs tracefs at /sys/kernel/tracing, and root)"));
}

std::string_view ReadText(std::span<const uint8_t> record, const TracepointFormat::Field* field) {
  if (field == nullptr || field->offset > record.size() ||
      record.size() - field->offset < field->size) {
    return {};
  }
  const std::string_view text(reinterpret_cast<const char*>(record.data()) + field->offset,
                              field->size);
  return text.substr(0, text.find('\0'));
}

}  // namespace vcpulse::kvm
