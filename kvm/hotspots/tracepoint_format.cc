#include "kvm/hotspots/tracepoint_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

// x86: exit_reason by isa (arch/x86/kvm/trace.h; 1 is VMX, 2 is SVM).
constexpr uint64_t kVmx = 1;
constexpr uint64_t kVmxExternalInterrupt = 1;  // EXIT_REASON_EXTERNAL_INTERRUPT
constexpr uint64_t kSvm = 2;
constexpr uint64_t kSvmInterrupt = 0x60;  // SVM_EXIT_INTR
constexpr std::string_view kX86Filter =
    "(isa == 1 && exit_reason == 1) || (isa == 2 && exit_reason == 0x60)";
// arm64: `ret` of the exit (arch/arm64/include/asm/kvm_asm.h).
constexpr uint64_t kArmIrq = 0;  // ARM_EXCEPTION_IRQ
constexpr std::string_view kArmFilter = "ret == 0";

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

std::optional<KvmExitFormat> KvmExitFormat::From(TracepointFormat format) {
  KvmExitFormat exit;
  exit.is_x86_ = format.Find("guest_rip") != nullptr && format.Find("exit_reason") != nullptr &&
                 format.Find("isa") != nullptr;
  const bool is_arm = format.Find("vcpu_pc") != nullptr && format.Find("ret") != nullptr;
  if (!exit.is_x86_ && !is_arm) return std::nullopt;
  exit.format_ = std::move(format);
  exit.filter_ = exit.is_x86_ ? kX86Filter : kArmFilter;
  return exit;
}

std::optional<uint64_t> KvmExitFormat::AddressOf(std::span<const uint8_t> record) const {
  const auto value = [&](std::string_view name) { return ReadField(record, format_.Find(name)); };
  if (!is_x86_) return value("ret") == kArmIrq ? value("vcpu_pc") : std::nullopt;
  const auto isa = value("isa");
  const auto reason = value("exit_reason");
  const bool by_interrupt =
      (isa == kVmx && reason == kVmxExternalInterrupt) || (isa == kSvm && reason == kSvmInterrupt);
  return by_interrupt ? value("guest_rip") : std::nullopt;
}

}  // namespace vcpulse::kvm
