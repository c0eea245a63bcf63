#include "monitor/import/field_value.h"

#include <limits>

#include "absl/strings/str_cat.h"
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

}  // namespace vcpulse::importing
