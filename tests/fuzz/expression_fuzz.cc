// Expectations: one, and a file of them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "monitor/check/expression.h"

namespace {

using namespace vcpulse::check;

void Check(bool condition) {
  if (!condition) std::abort();
}

// What people read is one short line without what a terminal obeys.
void CheckMessage(std::string_view message, std::string_view begin) {
  Check(message.starts_with(begin) && message.size() < 400);
  for (const char c : message) Check(static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
}

// Written from what was understood.
std::string Written(const Expectation& expectation) {
  std::string text;
  const Selector& selector = expectation.selector;
  // What is each may stand there only with a selector.
  if (expectation.quantifier != Quantifier::kEach) {
    const std::string_view quantifier = ToString(expectation.quantifier);
    absl::StrAppend(&text, std::string(quantifier), " ");
    if (!selector.vm && selector.vcpus.empty()) text += "vm=* ";
  }
  if (expectation.phase) absl::StrAppend(&text, "phase=\"", *expectation.phase, "\" ");
  if (selector.vm) absl::StrAppend(&text, "vm=\"", *selector.vm, "\" ");
  for (size_t i = 0; i < selector.vcpus.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "vcpu=" : ",", selector.vcpus[i].first, "-",
                    selector.vcpus[i].last);
  }
  if (!text.empty()) text += ": ";
  const std::string_view comparison = ToString(expectation.comparison);
  absl::StrAppend(&text, ToString(expectation.quantity), " ", std::string(comparison));
  if (expectation.UsesBaseline()) return text + " baseline * 2";
  switch (expectation.quantity.kind) {
    case Quantity::Kind::kLongest:
      return text + " 5ms";
    case Quantity::Kind::kPercentile:
      return text + " 5";
    case Quantity::Kind::kMean:
    case Quantity::Kind::kGaps:
    case Quantity::Kind::kHot:
      break;
  }
  return text + " 5%";
}

void CheckOne(std::string_view text) {
  const auto one = ParseExpectation(text);
  if (!one.ok()) {
    return CheckMessage({one.status().message().data(), one.status().message().size()}, "column ");
  }
  Check(one->limit >= 0 || one->UsesBaseline());
  Check(one->baseline_factor >= 0 && text.find(one->text) != std::string_view::npos);
  const auto again = ParseExpectation(one->text);
  Check(again.ok() && *again == *one);
  // A name with a quote in it cannot be written within quotes.
  for (const auto& name : {one->selector.vm, one->phase}) {
    if (name && name->find('"') != std::string::npos) return;
  }
  const auto rewritten = ParseExpectation(Written(*one));
  Check(rewritten.ok() && rewritten->selector == one->selector && rewritten->phase == one->phase &&
        rewritten->quantifier == one->quantifier &&
        rewritten->UsesBaseline() == one->UsesBaseline() && rewritten->quantity == one->quantity &&
        rewritten->comparison == one->comparison);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckOne(text);
  if (const auto all = ExpectationsFromText(text); !all.ok()) {
    CheckMessage({all.status().message().data(), all.status().message().size()}, "");
  } else {
    Check(!all->empty());
  }
  return 0;
}
