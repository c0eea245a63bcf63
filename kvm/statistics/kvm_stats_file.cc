#include "kvm/statistics/kvm_stats_file.h"

#include <linux/kvm.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/bytes.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

// No kernel has nearly as many.
constexpr uint32_t kMostDescriptors = 4096;
constexpr uint32_t kLongestName = 1024;
// Of a kvm_stats_desc, up to its name: as C++ sees it, its sizeof is larger than the kernel's.
constexpr size_t kDescBytes = offsetof(kvm_stats_desc, bucket_size) + sizeof(uint32_t);

absl::Status NotStats(const char* why) {
  return absl::DataLossError(absl::StrCat("not KVM's statistics: ", why));
}

// The text of a field of so many bytes, up to its NUL.
std::optional<std::string> TextAt(std::span<const uint8_t> file, size_t offset, size_t size) {
  if (offset > file.size() || file.size() - offset < size) return std::nullopt;
  const auto field = file.subspan(offset, size);
  return std::string(field.begin(), std::ranges::find(field, 0));
}

}  // namespace

absl::StatusOr<KvmStatsLayout> ParseKvmStatsLayout(std::span<const uint8_t> file) {
  const auto header = ReadAt<kvm_stats_header>(file, 0);
  if (!header) return NotStats("no header");
  if (header->num_desc > kMostDescriptors || header->name_size > kLongestName) {
    return NotStats("more values than any kernel has");
  }
  KvmStatsLayout layout;
  const auto id = TextAt(file, header->id_offset, header->name_size);
  if (!id) return NotStats("no id");
  layout.id = *id;
  const size_t step = kDescBytes + header->name_size;
  for (uint32_t i = 0; i < header->num_desc; ++i) {
    const size_t place = header->desc_offset + i * step;
    const auto flags = ReadAt<uint32_t>(file, place + offsetof(kvm_stats_desc, flags));
    const auto size = ReadAt<uint16_t>(file, place + offsetof(kvm_stats_desc, size));
    const auto from_data = ReadAt<uint32_t>(file, place + offsetof(kvm_stats_desc, offset));
    const auto name = TextAt(file, place + kDescBytes, header->name_size);
    if (!flags || !size || !from_data || !name) return NotStats("it ends within its descriptors");
    const bool is_count = (*flags & KVM_STATS_TYPE_MASK) == KVM_STATS_TYPE_CUMULATIVE && *size == 1;
    if (!is_count) continue;
    const size_t offset = size_t{header->data_offset} + *from_data;
    if (!ReadAt<uint64_t>(file, offset)) return NotStats("a value lies beyond its end");
    layout.values.push_back({.name = *name, .offset = offset});
  }
  return layout;
}

std::optional<int> VcpuIdOf(std::string_view id) {
  constexpr std::string_view kVcpu = "/vcpu-";
  const size_t at = id.find(kVcpu);
  if (!id.starts_with("kvm-") || at == std::string_view::npos) return std::nullopt;
  const auto number = ParseNumber<int>(id.substr(at + kVcpu.size()));
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace vcpulse::kvm
