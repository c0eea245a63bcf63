#include "kvm/cpu_identity.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kvm/base/text.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

// What the fields of one processor say, as text; the first of each.
struct Fields {
  std::optional<std::string_view> vendor_id, family, model, stepping;    // x86
  std::optional<std::string_view> implementer, part, variant, revision;  // arm64

  std::optional<std::string_view>* Find(std::string_view key) {
    if (key == "vendor_id") return &vendor_id;
    if (key == "cpu family") return &family;
    if (key == "model") return &model;
    if (key == "stepping") return &stepping;
    if (key == "CPU implementer") return &implementer;
    if (key == "CPU part") return &part;
    if (key == "CPU variant") return &variant;
    if (key == "CPU revision") return &revision;
    return nullptr;
  }
};

// "85" or "0xd0c"; nothing where it is neither.
std::optional<uint32_t> Number(const std::optional<std::string_view>& text) {
  if (!text) return std::nullopt;
  if (text->starts_with("0x")) return ParseNumber<uint32_t>(text->substr(2), 16);
  return ParseNumber<uint32_t>(*text);
}

Fields FirstProcessor(std::string_view cpuinfo) {
  Fields fields;
  int processors = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(cpuinfo), '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    const auto key = ToStd(absl::StripAsciiWhitespace(line.substr(0, colon)));
    const auto value = ToStd(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (key == "processor" && ++processors > 1) break;
    std::optional<std::string_view>* const field = fields.Find(key);
    if (field != nullptr && !field->has_value()) *field = value;
  }
  return fields;
}

// CPUID gives twelve characters.
bool IsVendor(std::string_view text) {
  constexpr size_t kLongest = 12;
  return text.size() <= kLongest && std::ranges::all_of(text, absl::ascii_isgraph);
}

}  // namespace

CpuIdentity ParseCpuIdentity(std::string_view cpuinfo) {
  const Fields fields = FirstProcessor(cpuinfo);
  CpuIdentity cpu;
  if (fields.vendor_id) {
    if (IsVendor(*fields.vendor_id)) cpu.vendor = *fields.vendor_id;
    cpu.family = Number(fields.family).value_or(0);
    cpu.model = Number(fields.model).value_or(0);
    cpu.stepping = Number(fields.stepping).value_or(0);
  } else if (const auto implementer = Number(fields.implementer)) {
    cpu.vendor = absl::StrCat("0x", absl::Hex(*implementer, absl::kZeroPad2));
    cpu.model = Number(fields.part).value_or(0);
    // Four bits each in MIDR_EL1.
    cpu.stepping = (Number(fields.variant).value_or(0) & 0xf) << 4 |
                   (Number(fields.revision).value_or(0) & 0xf);
  }
  return cpu;
}

CpuIdentity ReadCpuIdentity(const std::string& root) {
  return ParseCpuIdentity(ReadSmallFile(root + "/proc/cpuinfo").value_or(""));
}

}  // namespace vcpulse::kvm
