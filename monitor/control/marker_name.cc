#include "monitor/control/marker_name.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/utf8.h"

namespace vcpulse::control {
namespace {

absl::Status At(size_t column, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ": ", what));
}

// C0, DEL and C1, which come in UTF-8 as C2 80 to C2 9F.
bool IsControl(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<uint8_t>(sequence[1]) < 0xA0;
}

}  // namespace

absl::StatusOr<std::string> CheckMarkerName(std::string_view text, size_t first_column) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return At(first_column + text.size(), "a marker needs a name");
  }
  const std::string_view name = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  size_t column = first_column + begin;
  for (size_t i = 0; i < name.size(); ++column) {
    const size_t length = Utf8SequenceLength(name.substr(i));
    if (length == 0) {
      return At(column, absl::StrFormat("byte 0x%02x is not UTF-8", static_cast<uint8_t>(name[i])));
    }
    if (IsControl(name.substr(i, length))) {
      return At(column, "the name of a marker has no control characters");
    }
    if (i + length > kLongestMarkerName_bytes) {
      return At(column, absl::StrCat("the name of a marker has at most ", kLongestMarkerName_bytes,
                                     " bytes"));
    }
    i += length;
  }
  return std::string(name);
}

}  // namespace vcpulse::control
