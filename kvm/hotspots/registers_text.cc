#include "kvm/hotspots/registers_text.h"

#include <algorithm>

#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

// The word after "KEY=" where that stands at the beginning of a word.
std::optional<std::string_view> WordOf(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    const std::string_view rest = text.substr(at + key.size());
    if (begins && rest.starts_with('=')) {
      return rest.substr(1, rest.find_first_of(" \r\n", 1) - 1);
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> AddressOf(std::string_view text, std::string_view key) {
  const auto word = WordOf(text, key);
  return word ? ParseNumber<uint64_t>(*word, 16) : std::nullopt;
}

// The base of the code segment, of "CS =f000 ffff0000 0000ffff 00009b00". Other than 0 in real
// mode, so in firmware.
uint64_t CodeBase(std::string_view text) {
  constexpr std::string_view kSegment = "\nCS =";
  const size_t at = text.find(kSegment);
  if (at == std::string_view::npos) return 0;
  std::string_view words = text.substr(at + kSegment.size());
  words.remove_prefix(std::min(words.find(' '), words.size()));
  words.remove_prefix(std::min<size_t>(1, words.size()));
  return ParseNumber<uint64_t>(words.substr(0, words.find(' ')), 16).value_or(0);
}

}  // namespace

bool IsHaltedInRegisters(std::string_view text) { return WordOf(text, "HLT") == "1"; }

std::optional<StackRegisters> StackRegistersIn(std::string_view text) {
  const auto at = AddressInRegisters(text);
  const bool is_x86 = AddressOf(text, "RIP").has_value();
  const auto stack = AddressOf(text, is_x86 ? "RSP" : "SP");
  const auto frame = AddressOf(text, is_x86 ? "RBP" : "X29");
  const auto link = is_x86 ? uint64_t{0} : AddressOf(text, "X30");
  if (!at || !stack || !frame || !link) return std::nullopt;
  return StackRegisters{.isa = is_x86 ? Isa::kX86 : Isa::kArm64,
                        .at = *at,
                        .stack = *stack,
                        .frame = *frame,
                        .link = *link};
}

std::optional<GuestAddress> AddressInRegisters(std::string_view text) {
  for (const std::string_view key : {"RIP", "EIP"}) {
    const auto offset = AddressOf(text, key);
    if (!offset) continue;
    const uint64_t address = *offset + CodeBase(text);
    const auto level = WordOf(text, "CPL");
    if (!level) return GuestAddress{.address = address};
    return GuestAddress{.address = address,
                        .mode = level == "3" ? GuestMode::kUser : GuestMode::kKernel};
  }
  const auto address = AddressOf(text, "PC");
  if (!address) return std::nullopt;
  const size_t state = text.find("PSTATE=");
  const std::string_view line =
      state == std::string_view::npos ? "" : text.substr(state, text.find('\n', state) - state);
  GuestMode mode = GuestMode::kUnknown;
  if (line.find(" EL1") != std::string_view::npos) mode = GuestMode::kKernel;
  if (line.find(" EL0") != std::string_view::npos) mode = GuestMode::kUser;
  return GuestAddress{.address = *address, .mode = mode};
}

}  // namespace vcpulse::kvm
