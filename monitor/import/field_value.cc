#include "monitor/import/field_value.h"

#include <charconv>
#include <limits>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/import/csv_reader.h"

namespace vcpulse::importing {

std::string WhyNoValue(Field field, uint64_t value) {
  const std::string quoted = Quoted(std::to_string(value));
  const bool is_time = field == Field::kT || field == Field::kDt || field == Field::kWall;
  if (is_time && value >= kMaxTime_ns) return absl::StrCat(quoted, " is beyond 2^62 ns");
  if (field == Field::kDt && value == 0) return "0 is no length of an interval";
  if (field == Field::kVcpu && value > kMaxVcpu) {
    return absl::StrCat(quoted, " is beyond ", kMaxVcpu);
  }
  const bool is_number = field == Field::kEpoch || field == Field::kTid || field == Field::kKvmId;
  if (is_number && value > std::numeric_limits<uint32_t>::max()) {
    return absl::StrCat(quoted, " is beyond 2^32");
  }
  return "";
}

std::optional<double> ParseShare(std::string_view text) {
  double share = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, share);
  if (read.ec != std::errc() || read.ptr != end || !(share >= 0 && share <= 1)) {
    return std::nullopt;
  }
  return share;
}

}  // namespace vcpulse::importing
