#include "monitor/profile/read_cpu_match.h"

#include <boost/json/array.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/profile/json_fields.h"

namespace vcpulse::profile {
namespace {

namespace json = boost::json;

constexpr size_t kLongestVendor = 64;
constexpr size_t kMostCodes = 32;
constexpr size_t kMostVendors = 8;

// A list of codes, each one number or [from, to].
absl::StatusOr<std::vector<CodeRange>> ReadCodes(const json::value& value,
                                                 const std::string& path) {
  const json::array* codes = value.if_array();
  if (codes == nullptr || codes->empty() || codes->size() > kMostCodes) {
    return WrongField(path, absl::StrCat("must be a list of 1 to ", kMostCodes, " codes"));
  }
  std::vector<CodeRange> ranges;
  for (const json::value& code : *codes) {
    const std::string here = absl::StrCat(path, "[", ranges.size(), "]");
    const json::array* ends = code.if_array();
    if (ends != nullptr && ends->size() != 2) return WrongField(here, "a range has two ends");
    const auto from = ReadCode(ends != nullptr ? ends->front() : code, here, 0xffff'ffff);
    if (!from.ok()) return from.status();
    const auto to = ReadCode(ends != nullptr ? ends->back() : code, here, 0xffff'ffff);
    if (!to.ok()) return to.status();
    if (*from > *to) return WrongField(here, "begins above its end");
    ranges.push_back({static_cast<uint32_t>(*from), static_cast<uint32_t>(*to)});
  }
  return ranges;
}

absl::StatusOr<std::vector<std::string>> ReadVendors(const json::object& object) {
  const json::value* value = Find(object, "vendor");
  if (value == nullptr || !value->is_array()) {
    const auto one = ReadText(object, "cpu", "vendor", kLongestVendor);
    if (!one.ok()) return one.status();
    return std::vector<std::string>{*one};
  }
  const json::array& list = value->get_array();
  if (list.empty() || list.size() > kMostVendors) {
    return WrongField("cpu.vendor", absl::StrCat("must be 1 to ", kMostVendors, " names"));
  }
  std::vector<std::string> vendors;
  for (const json::value& vendor : list) {
    const auto name = ReadText({{"vendor", vendor}}, "cpu", "vendor", kLongestVendor);
    if (!name.ok()) return name.status();
    vendors.push_back(*name);
  }
  return vendors;
}

}  // namespace

absl::StatusOr<CpuMatch> ReadCpuMatch(const json::value& value) {
  const auto object = ReadObject(
      value, "cpu", std::vector<std::string>{"vendor", "family", "models", "steppings", "parts"});
  if (!object.ok()) return object.status();
  CpuMatch cpu;
  const auto vendors = ReadVendors(**object);
  if (!vendors.ok()) return vendors.status();
  cpu.vendors = *vendors;
  const bool families = HasFamilies(cpu.vendors.front());
  for (const char* key : {"family", "models", "steppings", "parts"}) {
    const bool is_of_arm = key == std::string_view("parts");
    if (is_of_arm != families || Find(**object, key) == nullptr) continue;
    return WrongField(
        Join("cpu", key),
        absl::StrCat("is not what CPUs of ", Quoted(cpu.vendors.front()), " are told apart by"));
  }
  const char* const models = families ? "models" : "parts";
  if (const json::value* codes = Find(**object, models)) {
    auto read = ReadCodes(*codes, Join("cpu", models));
    if (!read.ok()) return read.status();
    cpu.models = *std::move(read);
  }
  if (const json::value* codes = Find(**object, "steppings")) {
    auto read = ReadCodes(*codes, "cpu.steppings");
    if (!read.ok()) return read.status();
    if (cpu.models.empty()) return WrongField("cpu.steppings", "are there, but no models");
    cpu.steppings = *std::move(read);
  }
  const json::value* family = Find(**object, "family");
  if (families && (family != nullptr) == cpu.models.empty()) {
    return WrongField("cpu.family", "and models go together");
  }
  if (family != nullptr) {
    const auto code = ReadCode(*family, "cpu.family", 0xffff);
    if (!code.ok()) return code.status();
    cpu.family = static_cast<uint32_t>(*code);
  }
  return cpu;
}

}  // namespace vcpulse::profile
