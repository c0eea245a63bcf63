#include "kvm/base/lexer.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kvm/base/closest_name.h"
#include "kvm/base/text.h"

namespace vcpulse {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.';
}

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) {
  while (!text_.empty() && IsSpace(text_.back())) text_.remove_suffix(1);
}

bool Lexer::Take(char c) {
  if (!Is(c)) return false;
  ++at_;
  return true;
}

void Lexer::SkipSpaces() { TakeWhile(IsSpace); }

std::string_view Lexer::TakeWord() { return TakeWhile(IsWordByte); }

std::string_view Lexer::TakeHyphenated() {
  return TakeWhile([](char c) { return IsWordByte(c) || c == '-'; });
}

std::string_view Lexer::TakeUnspaced() {
  return TakeWhile([](char c) { return !IsSpace(c); });
}

std::string_view Lexer::TakeComparison() {
  return TakeWhile([](char c) { return c == '<' || c == '>' || c == '='; });
}

absl::Status Lexer::Wrong(size_t at, std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", ToAbsl(what)));
}

std::string_view Lexer::ShownAt(size_t at, std::string_view found) const {
  if (!found.empty()) return found;
  size_t end = at;
  while (end < text_.size() && !IsSpace(text_[end])) ++end;
  return text_.substr(at, end - at);
}

absl::Status Lexer::NotA(size_t at, std::string_view found, std::string_view what) const {
  found = ShownAt(at, found);
  return Wrong(at, found.empty() ? absl::StrCat(ToAbsl(what), " is missing here")
                                 : absl::StrCat(Quoted(found), " is not ", ToAbsl(what)));
}

absl::Status Lexer::NoneOf(size_t at, std::string_view found, std::string_view allowed) const {
  found = ShownAt(at, found);
  if (found.empty()) {
    return Wrong(at, absl::StrCat("something is missing here, one of ", ToAbsl(allowed)));
  }
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const std::vector<std::string> names = absl::StrSplit(ToAbsl(allowed), ", ");
  return Wrong(at, absl::StrCat(Quoted(found), " is none of ", ToAbsl(allowed),
                                std::ranges::any_of(found, is_letter) ? DidYouMean(found, names)
                                                                      : std::string()));
}

}  // namespace vcpulse
