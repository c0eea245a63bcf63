// The text behind --events: parser, and resolver for a hybrid host and one of Arm.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "kvm/events/event_catalog.h"
#include "kvm/events/event_modifiers.h"
#include "kvm/events/event_resolver.h"
#include "kvm/events/event_syntax.h"
#include "tests/fakes/host_tree.h"

namespace {

using namespace vcpulse::kvm;

void Check(bool condition) {
  if (!condition) std::abort();
}

// What people read is one line without what a terminal obeys.
void CheckMessage(std::string_view message) {
  Check(!message.empty());
  for (const char c : message) Check(c >= ' ' && c <= '~');
}

// Written from what was understood, with the modifiers behind each event. Empty where that is
// something else: "{a}:xyz" has modifiers of no known letter, "{a:xyz}" a tracepoint.
std::string Written(const std::vector<EventGroupItems>& groups) {
  std::string text;
  for (const EventGroupItems& items : groups) {
    text += text.empty() ? "{" : ",{";
    for (size_t i = 0; i < items.size(); ++i) {
      text += (i > 0 ? "," : "") + items[i].text;
      if (!AreModifierLetters(items[i].modifiers)) return "";
      if (!items[i].modifiers.empty()) text += ":" + items[i].modifiers;
    }
    text += "}";
  }
  return text;
}

void CheckSyntax(std::string_view text) {
  const auto groups = ParseEventList(text);
  if (!groups.ok())
    return CheckMessage({groups.status().message().data(), groups.status().message().size()});
  size_t events = 0;
  for (const EventGroupItems& items : *groups) events += items.size();
  Check(events >= 1 && events <= kMaxRequestedEvents);
  const std::string written = Written(*groups);
  if (written.empty()) return;
  const auto again = ParseEventList(written);
  Check(again.ok() && *again == *groups);
}

void CheckResolved(std::string_view text, const EventCatalog& catalog) {
  const auto request = ResolveEvents(text, catalog);
  if (!request.ok())
    return CheckMessage({request.status().message().data(), request.status().message().size()});
  std::set<std::string> names;
  size_t events = request->absent.size();
  for (const AbsentEvent& absent : request->absent) {
    Check(!absent.reason.empty() && absent.error == 0);
    names.insert(absent.name);
  }
  for (const auto& group : request->groups) {
    Check(!group.empty());
    events += group.size();
    for (const Event& event : group) names.insert(event.name);
  }
  Check(events >= 1 && events <= kMaxRequestedEvents && names.size() == events);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const EventCatalog hybrid(vcpulse::fakes::HostTree("hybrid"));
  static const EventCatalog arm(vcpulse::fakes::HostTree("arm64"));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckSyntax(text);
  CheckResolved(text, hybrid);
  CheckResolved(text, arm);
  if (const auto terms = ParseEventTerms(text); !terms.ok()) {
    CheckMessage({terms.status().message().data(), terms.status().message().size()});
  }
  ParsePmuField(text);
  ParseCpuList(text);
  return 0;
}
