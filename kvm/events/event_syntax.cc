#include "kvm/events/event_syntax.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "kvm/events/event_modifiers.h"
#include "kvm/events/event_names.h"

namespace vcpulse::kvm {
namespace {

// Letters of names, PMUs, terms and values, and the wildcards of tracepoints, so that these get an
// answer of their own.
bool IsWordChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_-.*?[]!").find(c) != std::string_view::npos;
}

// What surrounds `position`, made printable, for a message of one line.
std::string Excerpt(std::string_view text, size_t position) {
  constexpr size_t kAround = 30;
  const size_t begin = position > kAround ? position - kAround : 0;
  const size_t end = std::min(text.size(), position + kAround);
  return absl::StrCat("'", begin > 0 ? "..." : "",
                      absl::CHexEscape(ToAbsl(text.substr(begin, end - begin))),
                      end < text.size() ? "..." : "", "'");
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<EventGroupItems>> List() {
    std::vector<EventGroupItems> groups;
    do {
      SkipBlanks();
      EventGroupItems group;
      if (absl::Status status = Next() == '{' ? Braces(group) : Event(group); !status.ok()) {
        return status;
      }
      groups.push_back(std::move(group));
      SkipBlanks();
    } while (Take(','));
    if (!AtEnd()) return Expected("a comma or the end");
    return groups;
  }

  // Up to `end`, which is not taken; '\0' for the end of the text.
  absl::Status Terms(char end, std::vector<EventTerm>& terms) {
    SkipBlanks();
    if (Next() == end) return absl::OkStatus();
    do {
      SkipBlanks();
      EventTerm term = {.name = std::string(Word())};
      if (term.name.empty()) return Expected("a term such as event=0x3c");
      if (Take('=')) {
        term.value = std::string(Word());
        if (term.value->empty()) return Expected("the value of " + term.name);
      }
      terms.push_back(std::move(term));
      SkipBlanks();
    } while (Take(','));
    if (Next() != end)
      return Expected(end == '/' ? "a comma or a closing /" : "a comma or the end");
    return absl::OkStatus();
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Next() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void SkipBlanks() {
    while (!AtEnd() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  std::string_view Word() {
    const size_t begin = at_;
    while (!AtEnd() && IsWordChar(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("events ", Excerpt(text_, at_), ", character ", at_ + 1, ": ", ToAbsl(what)));
  }
  absl::Status Expected(std::string_view what) const {
    const std::string found =
        AtEnd() ? "the end"
                : absl::StrCat("'", absl::CHexEscape(ToAbsl(text_.substr(at_, 1))), "'");
    return Error(absl::StrCat(ToAbsl(what), " is expected here, not ", found));
  }

  absl::Status Braces(EventGroupItems& group) {
    Take('{');
    do {
      SkipBlanks();
      if (Next() == '{') return Error("a group cannot stand inside another");
      if (absl::Status status = Event(group); !status.ok()) return status;
      SkipBlanks();
    } while (Take(','));
    if (!Take('}')) return Expected("a comma or a closing brace");
    if (!Take(':')) return absl::OkStatus();
    const std::string_view modifiers = Word();
    if (modifiers.empty()) return Expected("a modifier");
    for (EventItem& item : group) item.modifiers += modifiers;
    return absl::OkStatus();
  }

  absl::Status Event(EventGroupItems& group) {
    if (++events_ > kMaxRequestedEvents) {
      return Error(absl::StrCat("more than ", kMaxRequestedEvents, " events"));
    }
    const size_t begin = at_;
    EventItem item = {.name = std::string(Word())};
    if (item.name.empty()) return Expected("an event");
    if (Next() == '{') return Error("groups have no names here: write {a,b}");
    absl::Status status = absl::OkStatus();
    if (Next() == '/') {
      status = PmuEvent(begin, item);
    } else if (const auto raw = ParseRawEvent(item.name)) {
      item.kind = EventItem::Kind::kRaw;
      item.raw = *raw;
      item.text = item.name;
      status = Modifiers(item);
    } else {
      status = NameOrTracepoint(begin, item);
    }
    group.push_back(std::move(item));
    return status;
  }

  absl::Status PmuEvent(size_t begin, EventItem& item) {
    item.kind = EventItem::Kind::kPmu;
    Take('/');
    if (absl::Status status = Terms('/', item.terms); !status.ok()) return status;
    Take('/');
    item.text = std::string(text_.substr(begin, at_ - begin));
    std::erase_if(item.text, [](unsigned char c) { return absl::ascii_isspace(c); });
    // perf takes cpu/cycles/u and cpu/cycles/:u.
    if (Next() == ':') return Modifiers(item);
    item.modifiers = std::string(Word());
    return absl::OkStatus();
  }

  // `sched:sched_switch` is a tracepoint, `cycles:G` is not: behind a generic name stand modifiers,
  // and no tracepoint's name is made of the letters of modifiers alone.
  absl::Status NameOrTracepoint(size_t begin, EventItem& item) {
    item.text = item.name;
    if (Next() != ':') return absl::OkStatus();
    const size_t colon = at_;
    Take(':');
    const std::string_view second = Word();
    if (FindGenericEvent(item.name) || (!second.empty() && AreModifierLetters(second))) {
      at_ = colon;
      return Modifiers(item);
    }
    if (second.empty()) return Expected("the name of a tracepoint or a modifier");
    item.kind = EventItem::Kind::kTracepoint;
    item.system = std::exchange(item.name, std::string(second));
    item.text = std::string(text_.substr(begin, at_ - begin));
    return Modifiers(item);
  }

  absl::Status Modifiers(EventItem& item) {
    if (!Take(':')) return absl::OkStatus();
    item.modifiers = std::string(Word());
    return item.modifiers.empty() ? Expected("a modifier") : absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t events_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<EventGroupItems>> ParseEventList(std::string_view text) {
  return Parser(text).List();
}

absl::StatusOr<std::vector<EventTerm>> ParseEventTerms(std::string_view text) {
  std::vector<EventTerm> terms;
  if (absl::Status status = Parser(text).Terms('\0', terms); !status.ok()) return status;
  return terms;
}

std::optional<uint64_t> ParseRawEvent(std::string_view word) {
  if (!word.starts_with('r')) return std::nullopt;
  word.remove_prefix(1);
  if (word.starts_with("0x")) word.remove_prefix(2);
  return ParseNumber<uint64_t>(word, 16);
}

std::optional<uint64_t> ParseTermValue(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return ParseNumber<uint64_t>(text.substr(2), 16);
  }
  return ParseNumber<uint64_t>(text);
}

}  // namespace vcpulse::kvm
