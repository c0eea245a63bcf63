#include "monitor/check/selector.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::check {
namespace {

bool IsPartOfValue(char c) { return std::isspace(static_cast<unsigned char>(c)) == 0 && c != ':'; }

// NAME, "NAME" or *, which is nothing. `key` is what it is the value of.
absl::Status TakeName(Lexer& lexer, std::string_view key, std::optional<std::string>& name) {
  const size_t name_at = lexer.at();
  std::string_view found;
  if (lexer.Take('"')) {
    found = lexer.TakeWhile([](char c) { return c != '"'; });
    if (!lexer.Take('"')) return lexer.Wrong(name_at, "this '\"' is never closed");
    if (found.empty())
      return lexer.Wrong(name_at, absl::StrCat(ToAbsl(key), "=\"\" names nothing"));
  } else {
    found = lexer.TakeWhile(IsPartOfValue);
    if (found.empty()) {
      return lexer.Wrong(name_at, absl::StrCat(ToAbsl(key), "= needs a name",
                                               key == "vm" ? ", a UUID, a PID or *" : " or *"));
    }
    if (found == "*") return absl::OkStatus();
  }
  name = std::string(found);
  return absl::OkStatus();
}

absl::Status ParseRange(const Lexer& lexer, std::string_view item, size_t at, IndexRange& range) {
  const size_t dash = std::min(item.find('-'), item.size());
  const auto first = ParseNumber<uint32_t>(item.substr(0, dash));
  const auto last = dash == item.size() ? first : ParseNumber<uint32_t>(item.substr(dash + 1));
  if (!first || !last) {
    return lexer.Wrong(at, item.empty() ? "the number of a vCPU is missing here"
                                        : absl::StrCat(Quoted(item), " is none of *, N, N-M"));
  }
  if (*last < *first)
    return lexer.Wrong(at, absl::StrCat(Quoted(item), " is a range with its larger end first"));
  range = {.first = *first, .last = *last};
  return absl::OkStatus();
}

// *, which is nothing, or N, N-M and several of them.
absl::Status TakeVcpus(Lexer& lexer, std::vector<IndexRange>& vcpus) {
  const size_t begin = lexer.at();
  const std::string_view list = lexer.TakeWhile(IsPartOfValue);
  if (list.empty())
    return lexer.Wrong(begin, "vcpu= needs *, N or N-M, or several with commas between");
  if (list == "*") return absl::OkStatus();
  size_t item_begin = 0;
  while (item_begin <= list.size()) {
    const size_t item_end = std::min(list.find(',', item_begin), list.size());
    IndexRange range;
    absl::Status status = ParseRange(lexer, list.substr(item_begin, item_end - item_begin),
                                     begin + item_begin, range);
    if (!status.ok()) return status;
    vcpus.push_back(range);
    item_begin = item_end + 1;
  }
  return absl::OkStatus();
}

// Whether a selector stands here: a word and '=' that are no quantity with a wrong comparison.
bool AtSelector(Lexer lexer) {
  const std::string_view word = lexer.TakeWord();
  lexer.SkipSpaces();
  if (word.empty() || !lexer.Is('=')) return false;
  return word != "gaps" && !FindAsked(word.substr(0, word.find('.')));
}

}  // namespace

absl::Status ParseSelector(Lexer& lexer, Selector& selector, std::optional<std::string>& phase,
                           SelectorKeys& keys) {
  if (!AtSelector(lexer) && !lexer.Is(':')) return absl::OkStatus();
  constexpr absl::string_view kAllowed = "vm=, vcpu=, phase=";
  while (!lexer.Is(':')) {
    const size_t key_at = lexer.at();
    const std::string_view key = lexer.TakeWord();
    lexer.SkipSpaces();
    if (key.empty() || !lexer.Is('=')) {
      if (lexer.AtEnd() && key.empty()) {
        return lexer.Wrong(key_at, "expected ':' after the selector");
      }
      return lexer.NoneOf(key_at, "", absl::StrCat(kAllowed, ", ':'"));
    }
    std::optional<size_t>* const known = key == "vm"      ? &keys.vm
                                         : key == "vcpu"  ? &keys.vcpu
                                         : key == "phase" ? &keys.phase
                                                          : nullptr;
    if (known == nullptr) {
      return lexer.NoneOf(key_at, absl::StrCat(ToAbsl(key), "="), ToStd(kAllowed));
    }
    if (*known) return lexer.Wrong(key_at, absl::StrCat(ToAbsl(key), "= was given before"));
    *known = key_at;
    lexer.Take('=');
    lexer.SkipSpaces();
    const absl::Status status = key == "vcpu"
                                    ? TakeVcpus(lexer, selector.vcpus)
                                    : TakeName(lexer, key, key == "vm" ? selector.vm : phase);
    if (!status.ok()) return status;
    lexer.SkipSpaces();
  }
  if (!keys.vm && !keys.vcpu && !keys.phase) {
    return lexer.Wrong(lexer.at(), absl::StrCat("there is none of ", kAllowed, " before this ':'"));
  }
  lexer.Take(':');
  return absl::OkStatus();
}

}  // namespace vcpulse::check
