#include "monitor/profile/cpu_match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace vcpulse::profile {
namespace {

bool Holds(const std::vector<CodeRange>& ranges, uint32_t code) {
  return ranges.empty() || std::ranges::any_of(ranges, [code](const CodeRange& range) {
           return code >= range.from && code <= range.to;
         });
}

bool IsVendor(const std::string& wanted, const std::string& vendor) {
  return wanted == vendor || (wanted == "arm64" && vendor.starts_with("0x"));
}

std::string Codes(const std::vector<CodeRange>& ranges, bool hex) {
  const auto one = [hex](uint32_t code) {
    return hex ? absl::StrCat("0x", absl::Hex(code, absl::kZeroPad2)) : absl::StrCat(code);
  };
  return absl::StrJoin(ranges, ",", [&](std::string* out, const CodeRange& range) {
    absl::StrAppend(out, one(range.from), range.to == range.from ? "" : "-",
                    range.to == range.from ? "" : one(range.to));
  });
}

}  // namespace

bool HasFamilies(const std::string& vendor) {
  return vendor != "arm64" && !vendor.starts_with("0x");
}

bool CpuMatch::Matches(const kvm::CpuIdentity& cpu) const {
  const bool is_vendor = std::ranges::any_of(
      vendors, [&cpu](const std::string& vendor) { return IsVendor(vendor, cpu.vendor); });
  if (!is_vendor || IsGeneric()) return is_vendor;
  return (!HasFamilies(cpu.vendor) || cpu.family == family) && Holds(models, cpu.model) &&
         Holds(steppings, cpu.stepping);
}

std::string CpuMatch::ToText() const {
  std::string text = absl::StrJoin(vendors, ", ");
  if (IsGeneric()) return text;
  const bool families = HasFamilies(vendors.front());
  if (families) absl::StrAppend(&text, " family ", family);
  absl::StrAppend(&text, families ? " model " : " part ", Codes(models, /*hex=*/true));
  if (!steppings.empty()) absl::StrAppend(&text, " stepping ", Codes(steppings, /*hex=*/false));
  return text;
}

}  // namespace vcpulse::profile
