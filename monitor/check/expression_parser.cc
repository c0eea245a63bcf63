// One expectation, from text.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/text.h"
#include "monitor/check/expression.h"
#include "monitor/reading/phrases.h"

namespace vcpulse::check {
namespace {

constexpr size_t kMostQuoted = 40;  // bytes of what was found, in a message
constexpr char kQuantities[] =
    "halted, spinning, productive, unknown, starved, residency, gaps, ipc.pNN, longest(...)";
constexpr char kOfLongest[] = "halted, spinning, productive, unknown, starved";
constexpr char kComparisons[] = "<, <=, >=, >";
constexpr std::array kMetrics = {Metric::kHalted,  Metric::kSpinning, Metric::kProductive,
                                 Metric::kUnknown, Metric::kStarved,  Metric::kResidency,
                                 Metric::kIpc,     Metric::kGaps};

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsWordByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

// What was found, as a message shows it: one line, never long, no half of a UTF-8 character.
std::string Quoted(std::string_view found) {
  size_t length = std::min(found.size(), kMostQuoted);
  while (length > 0 && length < found.size() && (found[length] & 0xc0) == 0x80) --length;
  return absl::StrCat("'", reading::Printable(found.substr(0, length)),
                      length < found.size() ? "..." : "", "'");
}

// Digits with at most one point among them, times 10^exponent, rounded once: so 0.1% is the very
// number that 1 of 1000 gives.
std::optional<double> Decimal(std::string_view text, int exponent) {
  const auto is_plain = [](char c) { return IsDigit(c) || c == '.'; };
  if (text.empty() || !IsDigit(text.front()) || !std::ranges::all_of(text, is_plain)) {
    return std::nullopt;
  }
  const std::string written = absl::StrCat(ToAbsl(text), "e", exponent);
  const char* const end = written.data() + written.size();
  double value = 0;
  const auto read = std::from_chars(written.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Expectation> Parse();

 private:
  absl::Status ParseSelector(Selector& selector);
  absl::Status ParseVm(Selector& selector);
  absl::Status ParseVcpus(Selector& selector);
  absl::Status ParseRange(std::string_view item, size_t at, IndexRange& range) const;
  absl::Status ParseQuantity(Quantity& quantity);
  absl::Status ParsePercentile(std::string_view word, size_t at, Quantity& quantity) const;
  absl::Status ParseComparison(Comparison& comparison);
  absl::Status ParseLimit(const Quantity& quantity, double& limit);

  absl::Status Wrong(size_t at, std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", ToAbsl(what)));
  }
  // `found` stands at `at`; or nothing does.
  absl::Status NoneOf(size_t at, std::string_view found, std::string_view allowed) const {
    return Wrong(at, found.empty()
                         ? absl::StrCat("something is missing here, one of ", ToAbsl(allowed))
                         : absl::StrCat(Quoted(found), " is none of ", ToAbsl(allowed)));
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
  // Up to the next space: what a message shows where no word stands.
  std::string_view Glimpse(size_t from) const {
    size_t end = from;
    while (end < text_.size() && !IsSpace(text_[end])) ++end;
    return text_.substr(from, end - from);
  }
  // Whether a selector stands here: a word and '=' that are no quantity with a wrong comparison.
  bool AtSelector() const;

  std::string_view text_;
  size_t at_ = 0;
  std::optional<size_t> vm_at_;
  std::optional<size_t> vcpu_at_;
};

absl::StatusOr<Expectation> Parser::Parse() {
  while (!text_.empty() && IsSpace(text_.back())) text_.remove_suffix(1);
  SkipSpaces();
  Expectation expectation;
  expectation.text = std::string(text_.substr(at_));
  if (AtEnd()) return Wrong(at_, "there is no expectation, as in 'vcpu=*: spinning <= 5%'");
  if (AtSelector() || Is(':')) {
    if (auto status = ParseSelector(expectation.selector); !status.ok()) return status;
  }
  if (auto status = ParseQuantity(expectation.quantity); !status.ok()) return status;
  if (expectation.quantity.metric == Metric::kGaps && vcpu_at_) {
    return Wrong(*vcpu_at_, "gaps are those of a whole VM: they take no vcpu=");
  }
  if (auto status = ParseComparison(expectation.comparison); !status.ok()) return status;
  if (auto status = ParseLimit(expectation.quantity, expectation.limit); !status.ok()) {
    return status;
  }
  SkipSpaces();
  if (!AtEnd()) {
    return Wrong(at_, absl::StrCat(Quoted(text_.substr(at_)), " is more than one expectation"));
  }
  return expectation;
}

bool Parser::AtSelector() const {
  size_t end = at_;
  while (end < text_.size() && IsWordByte(text_[end])) ++end;
  const std::string_view word = text_.substr(at_, end - at_);
  while (end < text_.size() && IsSpace(text_[end])) ++end;
  if (word.empty() || end == text_.size() || text_[end] != '=') return false;
  return !word.starts_with("ipc") &&
         std::ranges::none_of(kMetrics, [word](Metric m) { return ToString(m) == word; });
}

absl::Status Parser::ParseSelector(Selector& selector) {
  while (!Is(':')) {
    const size_t key_at = at_;
    const std::string_view key = TakeWhile(IsWordByte);
    SkipSpaces();
    if (key.empty() || !Is('=')) {
      if (key_at == text_.size()) return Wrong(key_at, "':' is missing behind whom this is about");
      return NoneOf(key_at, Glimpse(key_at), "vm=, vcpu=, ':'");
    }
    const bool is_vm = key == "vm";
    if (!is_vm && key != "vcpu")
      return NoneOf(key_at, absl::StrCat(ToAbsl(key), "="), "vm=, vcpu=");
    std::optional<size_t>& known = is_vm ? vm_at_ : vcpu_at_;
    if (known) return Wrong(key_at, absl::StrCat(ToAbsl(key), "= was given before"));
    known = key_at;
    ++at_;
    SkipSpaces();
    if (auto status = is_vm ? ParseVm(selector) : ParseVcpus(selector); !status.ok()) return status;
    SkipSpaces();
  }
  if (!vm_at_ && !vcpu_at_) return Wrong(at_, "there is no vm= or vcpu= before this ':'");
  ++at_;
  return absl::OkStatus();
}

absl::Status Parser::ParseVm(Selector& selector) {
  const size_t name_at = at_;
  std::string_view name;
  if (Is('"')) {
    ++at_;
    name = TakeWhile([](char c) { return c != '"'; });
    if (AtEnd()) return Wrong(name_at, "this '\"' is never closed");
    ++at_;
    if (name.empty()) return Wrong(name_at, "the VM's name is empty");
  } else {
    name = TakeWhile([](char c) { return !IsSpace(c) && c != ':'; });
    if (name.empty()) return Wrong(name_at, "vm= needs a name, a UUID, a PID or *");
    if (name == "*") return absl::OkStatus();
  }
  selector.vm = std::string(name);
  return absl::OkStatus();
}

absl::Status Parser::ParseVcpus(Selector& selector) {
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
    selector.vcpus.push_back(range);
    item_begin = item_end + 1;
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseRange(std::string_view item, size_t at, IndexRange& range) const {
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

absl::Status Parser::ParseQuantity(Quantity& quantity) {
  SkipSpaces();
  const size_t begin = at_;
  std::string_view word = TakeWhile(IsWordByte);
  if (word == "ipc" || word.starts_with("ipc.")) return ParsePercentile(word, begin, quantity);
  size_t metric_at = begin;
  if (word == "longest") {
    SkipSpaces();
    if (!Is('(')) return Wrong(at_, "longest needs a band, as in longest(spinning)");
    ++at_;
    SkipSpaces();
    metric_at = at_;
    word = TakeWhile(IsWordByte);
    quantity.longest = true;
  }
  const auto named = std::ranges::find(kMetrics, word, [](Metric m) { return ToString(m); });
  const bool allowed = named != kMetrics.end() && *named != Metric::kIpc &&
                       (!quantity.longest || *named <= Metric::kStarved);
  if (!allowed) {
    return NoneOf(metric_at, word.empty() ? Glimpse(metric_at) : word,
                  quantity.longest ? kOfLongest : kQuantities);
  }
  quantity.metric = *named;
  if (!quantity.longest) return absl::OkStatus();
  SkipSpaces();
  if (!Is(')')) return Wrong(at_, "')' is missing here");
  ++at_;
  return absl::OkStatus();
}

absl::Status Parser::ParsePercentile(std::string_view word, size_t at, Quantity& quantity) const {
  constexpr std::string_view kBefore = "ipc.p";
  const auto number =
      word.starts_with(kBefore) ? ParseNumber<uint32_t>(word.substr(kBefore.size())) : std::nullopt;
  if (!number || *number < 1 || *number > 99) {
    return Wrong(at, absl::StrCat(Quoted(word), " needs a percentile from ipc.p1 to ipc.p99"));
  }
  quantity.metric = Metric::kIpc;
  quantity.percentile = *number;
  return absl::OkStatus();
}

absl::Status Parser::ParseComparison(Comparison& comparison) {
  SkipSpaces();
  const size_t begin = at_;
  const std::string_view sign = TakeWhile([](char c) { return c == '<' || c == '>' || c == '='; });
  for (const Comparison c :
       {Comparison::kBelow, Comparison::kAtMost, Comparison::kAtLeast, Comparison::kAbove}) {
    if (ToString(c) != sign) continue;
    comparison = c;
    return absl::OkStatus();
  }
  return NoneOf(begin, sign.empty() ? Glimpse(begin) : sign, kComparisons);
}

absl::Status Parser::ParseLimit(const Quantity& quantity, double& limit) {
  SkipSpaces();
  const size_t begin = at_;
  const std::string_view word = TakeWhile([](char c) { return !IsSpace(c); });
  if (quantity.longest) {
    absl::Duration duration;
    if (!absl::ParseDuration(ToAbsl(word), &duration) || duration < absl::ZeroDuration() ||
        duration == absl::InfiniteDuration()) {
      return NoneOf(begin, word, "the durations, as 200ms or 1.5s (units ns us ms s m h)");
    }
    limit = absl::ToDoubleNanoseconds(duration);
    return absl::OkStatus();
  }
  if (quantity.metric == Metric::kIpc) {
    const std::optional<double> ipc = Decimal(word, 0);
    if (!ipc) return NoneOf(begin, word, "the numbers of instructions per cycle, as 0.9");
    limit = *ipc;
    return absl::OkStatus();
  }
  std::string_view number = word;
  bool has_sign = number.ends_with('%');
  if (has_sign) number.remove_suffix(1);
  const std::optional<double> share = Decimal(number, -2);
  if (!share) return NoneOf(begin, word, "the percentages, as 80%");
  if (!has_sign) {
    SkipSpaces();
    has_sign = Is('%');
    if (has_sign) ++at_;
  }
  if (!has_sign) {
    return Wrong(begin,
                 absl::StrCat(Quoted(word), " needs a %: ", ToAbsl(ToString(quantity.metric)),
                              " is a share of the time, as 80%"));
  }
  if (*share > 1) return Wrong(begin, absl::StrCat(Quoted(word), " is beyond 0% to 100%"));
  limit = *share;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Expectation> ParseExpectation(std::string_view text) { return Parser(text).Parse(); }

}  // namespace vcpulse::check
