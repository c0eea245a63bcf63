#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "kvm/text.h"
#include "monitor/compare/limit.h"
#include "monitor/compare/sums.h"
#include "monitor/reading/phrases.h"

namespace vcpulse::compare {
namespace {

constexpr size_t kMostQuoted = 40;    // bytes of what was found, in a message
constexpr double kMostPercent = 1e6;  // more is a slip of the finger
constexpr char kQuantities[] = "halted, spinning, productive, unknown, starved, residency, ipc";

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string Quoted(std::string_view found) {
  size_t length = std::min(found.size(), kMostQuoted);
  while (length > 0 && length < found.size() && (found[length] & 0xc0) == 0x80) --length;
  return absl::StrCat("'", reading::Printable(found.substr(0, length)),
                      length < found.size() ? "..." : "", "'");
}

// With a sign.
std::optional<double> Signed(std::string_view text) {
  if (text.size() < 2 || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const bool plain = std::ranges::all_of(text.substr(1),
                                         [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  const char* const begin = text.data() + (text.front() == '+' ? 1 : 0);
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto read = std::from_chars(begin, end, value);
  if (!plain || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Limit> Parse();

 private:
  absl::Status ParseSelector(Limit& limit);
  absl::Status ParseName(std::string_view key, std::optional<std::string>& name);
  absl::Status ParseVcpus(check::Selector& selector);
  absl::Status ParseQuantity(Limit& limit);
  absl::Status ParseChange(Limit& limit);

  absl::Status Wrong(size_t at, std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", ToAbsl(what)));
  }
  void SkipSpaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool AtEnd() const { return at_ == text_.size(); }
  bool Is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  template <typename Belongs>
  std::string_view TakeWhile(const Belongs& belongs) {
    const size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string_view TakeWord() {
    return TakeWhile([](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
  }

  std::string_view text_;
  size_t at_ = 0;
};

absl::StatusOr<Limit> Parser::Parse() {
  while (!text_.empty() && IsSpace(text_.back())) text_.remove_suffix(1);
  SkipSpaces();
  Limit limit;
  limit.text = std::string(text_.substr(at_));
  if (AtEnd()) return Wrong(at_, "there is no limit, as in 'spinning > +5pt'");
  if (absl::Status status = ParseSelector(limit); !status.ok()) return status;
  if (absl::Status status = ParseQuantity(limit); !status.ok()) return status;
  if (absl::Status status = ParseChange(limit); !status.ok()) return status;
  return limit;
}

absl::Status Parser::ParseSelector(Limit& limit) {
  bool any = false;
  while (true) {
    const size_t key_at = at_;
    const std::string_view key = TakeWord();
    SkipSpaces();
    const bool is_key = key == "vm" || key == "vcpu" || key == "phase";
    if (!is_key || !Is('=')) {
      if (any && !(key.empty() && Is(':'))) {
        return Wrong(key_at, "vm=, vcpu=, phase= or ':' belongs here");
      }
      at_ = any ? at_ + 1 : key_at;
      return absl::OkStatus();
    }
    ++at_;
    SkipSpaces();
    const size_t value_at = at_;
    std::optional<std::string>& name = key == "vm" ? limit.selector.vm : limit.phase;
    const bool again = key == "vcpu" ? !limit.selector.vcpus.empty() : name.has_value();
    if (again) return Wrong(key_at, absl::StrCat(ToAbsl(key), "= was given before"));
    absl::Status status = key == "vcpu" ? ParseVcpus(limit.selector) : ParseName(key, name);
    if (!status.ok()) return status;
    if (at_ == value_at) return Wrong(at_, absl::StrCat(ToAbsl(key), "= needs a value"));
    any = true;
    SkipSpaces();
  }
}

absl::Status Parser::ParseName(std::string_view key, std::optional<std::string>& name) {
  const size_t name_at = at_;
  std::string_view found;
  if (Is('"')) {
    ++at_;
    found = TakeWhile([](char c) { return c != '"'; });
    if (AtEnd()) return Wrong(name_at, "this '\"' is never closed");
    ++at_;
    if (found.empty()) return Wrong(name_at, absl::StrCat(ToAbsl(key), "=\"\" names nothing"));
  } else {
    found = TakeWhile([](char c) { return !IsSpace(c) && c != ':'; });
    if (found == "*") return absl::OkStatus();
  }
  name = std::string(found);
  return absl::OkStatus();
}

absl::Status Parser::ParseVcpus(check::Selector& selector) {
  const size_t begin = at_;
  const std::string_view list = TakeWhile([](char c) { return !IsSpace(c) && c != ':'; });
  if (list == "*") return absl::OkStatus();
  size_t item_begin = 0;
  while (item_begin <= list.size()) {
    const size_t item_end = std::min(list.find(',', item_begin), list.size());
    const std::string_view item = list.substr(item_begin, item_end - item_begin);
    const size_t dash = std::min(item.find('-'), item.size());
    const auto first = ParseNumber<uint32_t>(item.substr(0, dash));
    const auto last = dash == item.size() ? first : ParseNumber<uint32_t>(item.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return Wrong(begin + item_begin, absl::StrCat(Quoted(item), " is none of *, N, N-M"));
    }
    selector.vcpus.push_back({.first = *first, .last = *last});
    item_begin = item_end + 1;
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseQuantity(Limit& limit) {
  SkipSpaces();
  const size_t begin = at_;
  const std::string_view word = TakeWord();
  const auto named = std::ranges::find(kMetrics, word, [](Metric m) { return check::ToString(m); });
  if (named == kMetrics.end()) {
    return Wrong(begin, absl::StrCat(Quoted(word.empty() ? text_.substr(begin) : word),
                                     " is none of ", kQuantities));
  }
  limit.metric = *named;
  SkipSpaces();
  const size_t sign_at = at_;
  const std::string_view sign = TakeWhile([](char c) { return c == '<' || c == '>' || c == '='; });
  if (sign != "<" && sign != "<=" && sign != ">" && sign != ">=") {
    return Wrong(sign_at, "one of <, <=, >=, > belongs here");
  }
  limit.above = sign.front() == '>';
  return absl::OkStatus();
}

absl::Status Parser::ParseChange(Limit& limit) {
  SkipSpaces();
  const size_t begin = at_;
  const std::string_view change = text_.substr(begin);
  at_ = text_.size();
  const bool is_ipc = limit.metric == Metric::kIpc;
  const auto wrong = [&] {
    return Wrong(begin,
                 absl::StrCat(change.empty() ? std::string("nothing") : Quoted(change),
                              is_ipc ? " is no change of IPC: +10% (relative to A) or -0.2"
                                     : " is no change of a share: +5pt (percentage points) or "
                                       "+10% (relative to A)",
                              ", with its sign"));
  };
  std::string_view number = change;
  const bool points = number.ends_with("pt");
  limit.relative = number.ends_with('%');
  number.remove_suffix(points ? 2 : limit.relative ? 1 : 0);
  const std::optional<double> value = Signed(number);
  if (!value || std::abs(*value) > kMostPercent || points == (is_ipc || limit.relative)) {
    return wrong();
  }
  limit.value = limit.relative || points ? *value / 100 : *value;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Limit> ParseLimit(std::string_view text) { return Parser(text).Parse(); }

}  // namespace vcpulse::compare
