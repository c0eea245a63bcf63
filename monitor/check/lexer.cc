#include "monitor/check/lexer.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "kvm/text.h"
#include "monitor/reading/phrases.h"

namespace vcpulse::check {
namespace {

constexpr size_t kMostQuoted = 40;  // bytes of what was found, in a message

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.';
}

}  // namespace

// No half of a UTF-8 character.
std::string Quoted(std::string_view found) {
  size_t length = std::min(found.size(), kMostQuoted);
  while (length > 0 && length < found.size() && (found[length] & 0xc0) == 0x80) --length;
  return absl::StrCat("'", reading::Printable(found.substr(0, length)),
                      length < found.size() ? "..." : "", "'");
}

Lexer::Lexer(std::string_view text) : text_(text) {
  while (!text_.empty() && IsSpace(text_.back())) text_.remove_suffix(1);
}

bool Lexer::Take(char c) {
  if (!Is(c)) return false;
  ++at_;
  return true;
}

template <typename Belongs>
std::string_view Lexer::TakeWhile(const Belongs& belongs) {
  const size_t begin = at_;
  while (at_ < text_.size() && belongs(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

void Lexer::SkipSpaces() { TakeWhile(IsSpace); }

std::string_view Lexer::TakeWord() { return TakeWhile(IsWordByte); }

std::string_view Lexer::TakeUnspaced() {
  return TakeWhile([](char c) { return !IsSpace(c); });
}

std::string_view Lexer::TakeComparison() {
  return TakeWhile([](char c) { return c == '<' || c == '>' || c == '='; });
}

absl::Status Lexer::TakeName(std::string_view key, std::optional<std::string>& name) {
  const size_t name_at = at_;
  std::string_view found;
  if (Take('"')) {
    found = TakeWhile([](char c) { return c != '"'; });
    if (!Take('"')) return Wrong(name_at, "this '\"' is never closed");
    if (found.empty()) return Wrong(name_at, absl::StrCat(ToAbsl(key), "=\"\" names nothing"));
  } else {
    found = TakeWhile([](char c) { return !IsSpace(c) && c != ':'; });
    if (found.empty()) {
      return Wrong(name_at, absl::StrCat(ToAbsl(key), "= needs a name",
                                         key == "vm" ? ", a UUID, a PID or *" : " or *"));
    }
    if (found == "*") return absl::OkStatus();
  }
  name = std::string(found);
  return absl::OkStatus();
}

absl::Status Lexer::TakeVcpus(std::vector<IndexRange>& vcpus) {
  const size_t begin = at_;
  const std::string_view list = TakeWhile([](char c) { return !IsSpace(c) && c != ':'; });
  if (list.empty()) return Wrong(begin, "vcpu= needs *, N or N-M, or several with commas between");
  if (list == "*") return absl::OkStatus();
  size_t item_begin = 0;
  while (item_begin <= list.size()) {
    const size_t item_end = std::min(list.find(',', item_begin), list.size());
    IndexRange range;
    absl::Status status =
        ParseRange(list.substr(item_begin, item_end - item_begin), begin + item_begin, range);
    if (!status.ok()) return status;
    vcpus.push_back(range);
    item_begin = item_end + 1;
  }
  return absl::OkStatus();
}

absl::Status Lexer::ParseRange(std::string_view item, size_t at, IndexRange& range) const {
  const size_t dash = std::min(item.find('-'), item.size());
  const auto first = ParseNumber<uint32_t>(item.substr(0, dash));
  const auto last = dash == item.size() ? first : ParseNumber<uint32_t>(item.substr(dash + 1));
  if (!first || !last) {
    return Wrong(at, item.empty() ? "the number of a vCPU is missing here"
                                  : absl::StrCat(Quoted(item), " is none of *, N, N-M"));
  }
  if (*last < *first) return Wrong(at, absl::StrCat(Quoted(item), " is upside down"));
  range = {.first = *first, .last = *last};
  return absl::OkStatus();
}

bool Lexer::AtSelector() const {
  size_t end = at_;
  while (end < text_.size() && IsWordByte(text_[end])) ++end;
  const std::string_view word = text_.substr(at_, end - at_);
  while (end < text_.size() && IsSpace(text_[end])) ++end;
  if (word.empty() || end == text_.size() || text_[end] != '=') return false;
  return word != "gaps" && !FindAsked(word.substr(0, word.find('.')));
}

absl::Status Lexer::Wrong(size_t at, std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", ToAbsl(what)));
}

absl::Status Lexer::NoneOf(size_t at, std::string_view found, std::string_view allowed) const {
  if (found.empty()) {
    size_t end = at;
    while (end < text_.size() && !IsSpace(text_[end])) ++end;
    found = text_.substr(at, end - at);
  }
  return Wrong(at, found.empty()
                       ? absl::StrCat("something is missing here, one of ", ToAbsl(allowed))
                       : absl::StrCat(Quoted(found), " is none of ", ToAbsl(allowed)));
}

absl::Status ParseSelector(Lexer& lexer, Selector& selector, std::optional<std::string>* phase,
                           SelectorKeys& keys) {
  if (!lexer.AtSelector() && !lexer.Is(':')) return absl::OkStatus();
  const std::string_view allowed = phase == nullptr ? "vm=, vcpu=" : "vm=, vcpu=, phase=";
  while (!lexer.Is(':')) {
    const size_t key_at = lexer.at();
    const std::string_view key = lexer.TakeWord();
    lexer.SkipSpaces();
    if (key.empty() || !lexer.Is('=')) {
      if (lexer.AtEnd() && key.empty()) {
        return lexer.Wrong(key_at, "':' is missing behind whom this is about");
      }
      return lexer.NoneOf(key_at, "", absl::StrCat(ToAbsl(allowed), ", ':'"));
    }
    std::optional<size_t>* const known = key == "vm"                          ? &keys.vm
                                         : key == "vcpu"                      ? &keys.vcpu
                                         : key == "phase" && phase != nullptr ? &keys.phase
                                                                              : nullptr;
    if (known == nullptr) {
      return lexer.NoneOf(key_at, absl::StrCat(ToAbsl(key), "="), allowed);
    }
    if (*known) return lexer.Wrong(key_at, absl::StrCat(ToAbsl(key), "= was given before"));
    *known = key_at;
    lexer.Take('=');
    lexer.SkipSpaces();
    const absl::Status status = key == "vcpu"
                                    ? lexer.TakeVcpus(selector.vcpus)
                                    : lexer.TakeName(key, key == "vm" ? selector.vm : *phase);
    if (!status.ok()) return status;
    lexer.SkipSpaces();
  }
  if (!keys.vm && !keys.vcpu && !keys.phase) {
    return lexer.Wrong(lexer.at(),
                       absl::StrCat("there is none of ", ToAbsl(allowed), " before this ':'"));
  }
  lexer.Take(':');
  return absl::OkStatus();
}

}  // namespace vcpulse::check
