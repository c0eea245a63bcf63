#pragma once

// Where the fields of a tracepoint are in its raw record, from the `format` file that tracefs has
// for it (Documentation/trace/events.rst). Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::kvm {

struct TracepointFormat {
  struct Field {
    std::string name;
    size_t offset = 0;
    size_t size = 0;

    bool operator==(const Field&) const = default;
  };

  uint64_t id = 0;
  std::vector<Field> fields;

  const Field* Find(std::string_view name) const;
};

// Nothing where the text is no such file.
std::optional<TracepointFormat> ParseTracepointFormat(std::string_view text);

// An unsigned field of 1, 2, 4 or 8 bytes; nothing where the record is too short, or the field is
// null or of another size.
std::optional<uint64_t> ReadField(std::span<const uint8_t> record,
                                  const TracepointFormat::Field* field);

// The bytes of a char array up to its first NUL; empty where the record is too short, or the field
// is null.
std::string_view ReadText(std::span<const uint8_t> record, const TracepointFormat::Field* field);

// Of a tracepoint of this kernel, below `root` ("/" for this machine). Errors: why it cannot be
// read, and what it needs.
absl::StatusOr<TracepointFormat> ReadTracepointFormat(const std::string& root,
                                                      std::string_view system,
                                                      std::string_view name);

}  // namespace vcpulse::kvm
