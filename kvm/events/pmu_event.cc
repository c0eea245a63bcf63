#include "kvm/events/pmu_event.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/closest_name.h"
#include "kvm/events/event_names.h"

namespace vcpulse::kvm {
namespace {

constexpr std::array<std::string_view, 3> kWordNames = {"config", "config1", "config2"};
constexpr std::string_view kNameTerm = "name";

using ConfigWords = std::array<uint64_t, 3>;

// The largest value of a field.
uint64_t Limit(const PmuField& field) {
  return field.bits.size() >= 64 ? std::numeric_limits<uint64_t>::max()
                                 : (uint64_t{1} << field.bits.size()) - 1;
}

void Set(const PmuField& field, uint64_t value, ConfigWords& words) {
  uint64_t& word = words[static_cast<size_t>(field.word)];
  for (const int bit : field.bits) {
    word = (word & ~(uint64_t{1} << bit)) | (value & 1) << bit;
    value >>= 1;
  }
}

std::optional<PmuField> FieldOf(const Pmu& pmu, const std::string& term) {
  if (const auto field = pmu.format.find(term); field != pmu.format.end()) return field->second;
  return std::nullopt;
}

absl::Status UnknownTerm(const Pmu& pmu, const EventTerm& term) {
  std::vector<std::string> known;
  known.reserve(pmu.format.size() + pmu.events.size() + 4);
  for (const auto& [name, field] : pmu.format) known.push_back(name);
  known.insert(known.end(), {"config", "config1", "config2", "name"});
  std::string message = absl::StrCat(pmu.name, " has no term '", absl::CHexEscape(term.name),
                                     "'; it has ", absl::StrJoin(known, ", "));
  if (!term.value) {
    for (const auto& [name, terms] : pmu.events) known.push_back(name);
    absl::StrAppend(&message, " and ", pmu.events.size(), " named events");
  }
  return absl::InvalidArgumentError(absl::StrCat(message, DidYouMean(term.name, known)));
}

// Sets one format term.
absl::Status SetTerm(const Pmu& pmu, const EventTerm& term, ConfigWords& words) {
  const auto field = FieldOf(pmu, term.name);
  if (!field) return UnknownTerm(pmu, term);
  const auto value = term.value ? ParseTermValue(*term.value) : 1;
  if (!value) {
    return absl::InvalidArgumentError(
        absl::StrCat(term.name, "=", *term.value, " is not a number of at most 64 bits"));
  }
  if (*value > Limit(*field)) {
    return absl::InvalidArgumentError(
        absl::StrCat(term.name, "=", *term.value, " is too large: the field has ",
                     field->bits.size(), " bits, at most 0x", absl::Hex(Limit(*field))));
  }
  Set(*field, *value, words);
  return absl::OkStatus();
}

// The terms of the named event that a bare term means, or null.
const std::string* NamedEvent(const Pmu& pmu, const EventTerm& term) {
  if (term.value) return nullptr;
  const auto find = [&pmu](const std::string& name) -> const std::string* {
    const auto event = pmu.events.find(name);
    return event == pmu.events.end() ? nullptr : &event->second;
  };
  if (const std::string* terms = find(term.name)) return terms;
  for (const GenericEvent& generic : GenericEvents()) {
    if (generic.kind != GenericKind::kHardware) continue;
    std::vector<std::string> names = generic.aliases;
    names.push_back(generic.event.name);
    if (std::ranges::find(names, term.name) == names.end()) continue;
    for (const std::string& name : names) {
      if (const std::string* terms = find(name)) return terms;
    }
  }
  return nullptr;
}

absl::Status SetNamedEvent(const Pmu& pmu, const std::string& text, ConfigWords& words) {
  const auto terms = ParseEventTerms(text);
  if (!terms.ok()) return terms.status();
  for (const EventTerm& term : *terms) {
    if (absl::Status status = SetTerm(pmu, term, words); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// config=, config1=, config2= and rHEX: false where the term is none of them.
absl::StatusOr<bool> SetWord(const Pmu& pmu, const EventTerm& term, ConfigWords& words) {
  const auto* word = std::ranges::find(kWordNames, std::string_view(term.name));
  if (word != kWordNames.end()) {
    const auto value = ParseTermValue(term.value.value_or(""));
    if (!value) {
      return absl::InvalidArgumentError(
          absl::StrCat(term.name, " wants a number of at most 64 bits, such as config=0x3c"));
    }
    words[static_cast<size_t>(word - kWordNames.begin())] = *value;
    return true;
  }
  const auto raw = ParseRawEvent(term.name);
  if (!raw || term.value || FieldOf(pmu, term.name)) return false;
  words[0] = *raw;
  return true;
}

absl::Status CheckNoneTwice(std::span<const EventTerm> terms) {
  std::set<std::string> seen;
  for (const EventTerm& term : terms) {
    if (!seen.insert(term.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("the term ", term.name, " is given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Event> EncodePmuEvent(const Pmu& pmu, std::span<const EventTerm> terms) {
  if (absl::Status status = CheckNoneTwice(terms); !status.ok()) return status;
  Event event = {.type = pmu.type};
  ConfigWords words{};
  int named = 0;
  for (const EventTerm& term : terms) {
    const std::string* text = NamedEvent(pmu, term);
    if (text == nullptr) continue;
    if (++named > 1) return absl::InvalidArgumentError("two named events are not one event");
    if (absl::Status status = SetNamedEvent(pmu, *text, words); !status.ok()) return status;
  }
  std::vector<EventTerm> fields;
  for (const EventTerm& term : terms) {
    if (NamedEvent(pmu, term) != nullptr) continue;
    if (term.name == kNameTerm && term.value) {
      event.name = *term.value;
      continue;
    }
    const auto is_word = SetWord(pmu, term, words);
    if (!is_word.ok()) return is_word.status();
    if (!*is_word) fields.push_back(term);
  }
  if (named == 0 && fields.empty() && words == ConfigWords{}) {
    const bool says_zero =
        std::ranges::any_of(terms, [](const EventTerm& term) { return term.name != kNameTerm; });
    if (!says_zero) return absl::InvalidArgumentError("no term says which event: event=0x3c");
  }
  for (const EventTerm& term : fields) {
    if (absl::Status status = SetTerm(pmu, term, words); !status.ok()) return status;
  }
  event.config = words[0];
  event.config1 = words[1];
  event.config2 = words[2];
  return event;
}

}  // namespace vcpulse::kvm
