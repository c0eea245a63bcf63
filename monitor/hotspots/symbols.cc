#include "monitor/hotspots/symbols.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::hotspots {
namespace {

std::string_view NextWord(std::string_view& line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return line = {};
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return word;
}

// No function of a kernel is nearly as long: beyond, it is code that came after the file was made.
constexpr uint64_t kLongestFunction = 64 << 10;

// The linker's marks of where code begins, at the address of a function.
bool IsMark(std::string_view name) {
  return name == "_text" || name == "_stext" || name == "__entry_text_start" ||
         name.ends_with("_text_start");
}

// nm's letters: T and t are code, W and w may be.
bool IsCode(std::string_view type) {
  return type == "T" || type == "t" || type == "W" || type == "w";
}

}  // namespace

absl::StatusOr<Symbols> Symbols::Parse(std::string_view text) {
  std::vector<Entry> entries;
  bool any_address = false;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view address_text = NextWord(line);
    if (address_text.empty()) continue;
    const auto address = ParseNumber<uint64_t>(address_text, 16);
    const std::string_view type = NextWord(line);
    const std::string_view name = NextWord(line);
    const std::string_view module = NextWord(line);
    if (!address || type.size() != 1 || name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("not a kallsyms or System.map: line ", number,
                                                     " is not an address, a letter and a name"));
    }
    if (name.starts_with('$')) continue;  // arm64's marks of code and data within functions
    any_address = any_address || *address != 0;
    Entry entry{.address = *address, .is_code = IsCode(type), .name = std::string(name)};
    if (!module.empty()) entry.name.append(" ").append(module);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return absl::InvalidArgumentError("no symbol is in it");
  if (!any_address) {
    return absl::InvalidArgumentError(
        "all its addresses are 0: read /proc/kallsyms in the guest as root (kernel.kptr_restrict)");
  }
  return Of(std::move(entries));
}

Symbols Symbols::Of(std::vector<Entry> entries) {
  Symbols symbols;
  symbols.entries_ = std::move(entries);
  // So that all files of a kernel choose the same of several names.
  const auto order = [](const Entry& entry) {
    return std::tuple(entry.address, !entry.is_code, IsMark(entry.name),
                      std::string_view(entry.name));
  };
  std::ranges::sort(symbols.entries_, {}, order);
  const auto same = std::ranges::unique(symbols.entries_, {}, &Entry::address);
  symbols.entries_.erase(same.begin(), same.end());
  return symbols;
}

std::optional<Symbol> Symbols::Find(uint64_t address) const {
  const uint64_t unmoved = address - moved_by_;
  const auto after = std::ranges::upper_bound(entries_, unmoved, {}, &Entry::address);
  // The last one has no end: an address far beyond it is none of its.
  if (after == entries_.begin() || after == entries_.end()) return std::nullopt;
  const Entry& entry = *std::prev(after);
  const uint64_t offset = unmoved - entry.address;
  if (!entry.is_code || offset >= kLongestFunction) return std::nullopt;
  return Symbol{.name = entry.name, .address = entry.address + moved_by_, .offset = offset};
}

absl::StatusOr<uint64_t> LoadOffset(const Symbols& loaded, const Symbols& linked) {
  std::map<std::string_view, const Symbols::Entry*> by_name;
  for (const Symbols::Entry& entry : linked.entries_) {
    if (!entry.is_code) continue;
    const auto [place, is_new] = by_name.try_emplace(entry.name, &entry);
    if (!is_new) place->second = nullptr;  // several have that name
  }
  std::map<uint64_t, size_t> votes;
  size_t both = 0;
  size_t missing = 0;
  for (const Symbols::Entry& entry : loaded.entries_) {
    // "name [module]" is of no vmlinux.
    if (!entry.is_code || entry.name.ends_with(']')) continue;
    const auto same = by_name.find(entry.name);
    if (same == by_name.end()) {
      ++missing;
    } else if (same->second != nullptr) {
      ++votes[entry.address - same->second->address];
      ++both;
    }
  }
  const auto most = std::ranges::max_element(votes, {}, &std::pair<const uint64_t, size_t>::second);
  if (most != votes.end() && both > missing && most->second * 10 >= both * 9) return most->first;
  return absl::InvalidArgumentError("its functions lie elsewhere: these are two kernels");
}

void GuestKernel::Move(uint64_t by) {
  symbols.Move(by);
  code.Move(by);
  orc.Move(by);
}

}  // namespace vcpulse::hotspots
